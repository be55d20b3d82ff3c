"""An independent referee for AI agents and models."""

__version__ = "0.2.0"
