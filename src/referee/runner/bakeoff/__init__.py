"""One run of a bake-off, from a frozen protocol to its shards, and from shards to a summary."""
