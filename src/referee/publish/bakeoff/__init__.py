"""The bake-off for readers: report, pages, raw export."""
