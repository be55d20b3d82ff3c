"""The engine, which is not here."""
