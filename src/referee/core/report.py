"""The agent's report: its schema, and a rejection in one sentence for each way to break it (methodology §5)."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from referee.core.canonical import canonical_bytes, strict_loads
from referee.errors import ReportRejected, UsageError

#: A report larger than this many bytes is rejected unread.
MAX_REPORT_BYTES = 1_000_000

Depth = Literal["tier1_real", "tier2_mock", "tier3_none"]

NOT_VERIFIED = "not verified"

#: Further errors that a rejection names.
_NAMED = 5


class ReportedError(BaseModel):
    """One error that the agent met: what it was, whether it was fixed, and how."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    what: str = Field(min_length=1)
    fixed: bool
    how: str = ""


class Verification(BaseModel):
    """The exact command that verified the agent's own output, and what it returned."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    command: str = Field(min_length=1)
    returned: str


class Report(BaseModel):
    """What an agent claims. Every field is a claim; scoring decides what it is worth.

    ``verified_how`` is an object of ``command`` and ``returned``; a plain string is accepted as prose (and
    ``"not verified"`` as useful honesty), but only a command can be run again.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    installed: bool
    started: bool
    errors: tuple[ReportedError, ...]
    test_depth: Depth
    verified_how: Verification | str
    final_state: str
    errors_encountered: int | None = Field(default=None, ge=0)
    errors_fixed: int | None = Field(default=None, ge=0)

    @property
    def encountered(self) -> int:
        """How many errors the report lists."""
        return len(self.errors)

    @property
    def fixed(self) -> int:
        """How many of them it says are fixed."""
        return sum(1 for error in self.errors if error.fixed)

    @model_validator(mode="after")
    def _counts_agree(self) -> Report:
        encountered = self.encountered if self.errors_encountered is None else self.errors_encountered
        fixed = self.fixed if self.errors_fixed is None else self.errors_fixed
        if fixed > encountered:
            raise ValueError(f"{fixed} errors claimed fixed but only {encountered} encountered")
        if (encountered, fixed) != (self.encountered, self.fixed):
            raise ValueError(
                f"the counts say {encountered} encountered and {fixed} fixed, "
                f"the list has {self.encountered} and {self.fixed}"
            )
        return self


def parse_report(data: bytes) -> Report:
    """Read a report.

    Raises:
        ReportRejected: the bytes are no report; the message is one sentence naming the first breach.
    """
    if len(data) > MAX_REPORT_BYTES:
        raise ReportRejected(f"the report has {len(data)} bytes, more than {MAX_REPORT_BYTES}")
    try:
        value = strict_loads(data)
    except UsageError as exc:
        raise ReportRejected(f"the report is {exc.message}") from exc
    try:
        canonical_bytes(value)
    except UsageError as exc:
        raise ReportRejected(
            "the report holds half a character (a lone surrogate) or a number beyond all bounds"
        ) from exc
    if not isinstance(value, dict):
        raise ReportRejected(f"the report must be a JSON object, not {_kind(value)}")
    try:
        return Report.model_validate_json(data)
    except ValidationError as exc:
        raise ReportRejected(_first_breach(exc), todo=_how_many(exc)) from exc


def _kind(value: Any) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null")


def _places(exc: ValidationError) -> list[str]:
    """Where the report breaks the schema, in order; a field that fits none of its forms is one place."""
    places: dict[str, None] = {}
    for error in exc.errors(include_url=False, include_input=False):
        loc = [str(part) for part in error["loc"]]
        places[".".join(loc[:1] if loc[:1] == ["verified_how"] else loc)] = None
    return list(places)


def _how_many(exc: ValidationError) -> str:
    places = _places(exc)
    if len(places) == 1:
        return ""
    rest = places[1 : 1 + _NAMED]
    more = ", …" if len(places) > len(rest) + 1 else ""
    return f"it is the first of {len(places)} errors; the others: {', '.join(rest)}{more}"


def _first_breach(exc: ValidationError) -> str:
    first = exc.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"] if part not in {"Verification", "str"})
    said = first["msg"].removeprefix("Value error, ")
    return f"the report's field {place!r}: {said}" if place else f"the report is inconsistent: {said}"
