"""From tallies to a summary: intervals, ties, pairs, gold trust, coverage. Pure."""
