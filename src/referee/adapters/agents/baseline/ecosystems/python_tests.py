"""How many tests passed, by what Python's test runners print."""

from __future__ import annotations

import re


def passed(output: str) -> int | None:
    """Passed tests of pytest, unittest, nose or our doctest runner; None when the output does not tell."""
    if re.search(r"\b[1-9]\d* (failed|errors?)\b|^FAILED|^ERROR\b", output, re.MULTILINE):
        return None
    counted = re.findall(r"\b(\d+) passed\b", output)
    if counted:
        return int(counted[-1])
    ran = re.findall(r"^Ran (\d+) tests? in", output, re.MULTILINE)
    return int(ran[-1]) if ran and re.search(r"^OK", output, re.MULTILINE) else None
