"""Ways to a model: HTTP endpoints and agent CLIs. They carry a question there and bytes back, and read nothing."""
