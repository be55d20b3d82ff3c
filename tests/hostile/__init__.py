"""Projects that are hostile to whoever brings them up."""
