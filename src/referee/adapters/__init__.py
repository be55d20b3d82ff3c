"""One foreign thing each, strangers to each other."""
