"""The form of everything that is written down."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Fact(BaseModel):
    """Root of all record parts: frozen, strict about unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")
