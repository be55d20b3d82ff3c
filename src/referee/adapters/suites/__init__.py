"""Suites of cases as files: read, written, built from pinned sources, imported from public ones."""

from __future__ import annotations

from referee.adapters.suites.files import (
    bundled_names,
    bundled_subsets,
    bundled_suite,
    load_suite,
    suite_bytes,
    write_suite,
)

__all__ = ["bundled_names", "bundled_subsets", "bundled_suite", "load_suite", "suite_bytes", "write_suite"]
