"""Pages made from records and scores; pages never compute numbers."""
