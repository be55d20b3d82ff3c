"""What a workspace says: its configuration and its pinned subjects, agents and editions, all TOML files."""
