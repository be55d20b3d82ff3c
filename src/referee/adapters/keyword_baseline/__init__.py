"""The embedded target: picks a tool by words and types, and serves that over loopback in OpenAI's format."""
