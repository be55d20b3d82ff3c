"""The agent programs that ship: one directory each, with one TOML, its locks and at most one small file."""
