"""Machines as hardened containers of a Docker Engine."""
