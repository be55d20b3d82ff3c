"""Values of the client."""

from __future__ import annotations

from typing import Any


class Json:
    """A JSON value."""

    def __init__(self, data: Any) -> None:
        self.data = data
