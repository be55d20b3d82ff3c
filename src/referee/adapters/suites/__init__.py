"""Suites of cases: those that ship, those that are built from templates, and public ones that are imported."""
