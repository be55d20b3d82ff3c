"""The agents that bring-up ranks."""
