"""Fetching pinned subjects: repositories and packages."""
