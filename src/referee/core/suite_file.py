"""Reads a suite's JSON: schema first, then that every name in it leads somewhere.

It stands in core because a protocol's ``cases.json`` and a bundled suite are read by rooms that are strangers.
"""

from __future__ import annotations

from collections import Counter

from pydantic import ValidationError

from referee.core.canonical import canonical_bytes, strict_loads
from referee.core.cases import Suite
from referee.errors import ConfigError, UsageError


def parse_suite(data: bytes, where: str) -> Suite:
    """The suite in these bytes; ``where`` names them in messages.

    Raises:
        ConfigError: no strict JSON, against the schema, an id that stands twice, or a name that leads nowhere.
    """
    try:
        content = strict_loads(data)
        canonical_bytes(content)  # what has no canonical form (1e999, a lone surrogate) could not be digested later
        suite = Suite.model_validate(content)
    except UsageError as exc:
        raise ConfigError(f"{where}: {exc.message}") from exc
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{where}: {place + ': ' if place else ''}{first['msg']}") from exc
    for what, names in (
        ("case", [case.id for case in suite.cases]),
        ("arm", [arm.name for arm in suite.arms]),
        *((f"tool of {name}", [tool.name for tool in tools]) for name, tools in suite.toolsets.items()),
    ):
        doubled = next((name for name, times in Counter(names).items() if times > 1), None)
        if doubled is not None:
            raise ConfigError(f"{where}: the {what} {doubled} stands twice", todo="give each a name of its own")
    for case in suite.cases:
        for kind, name, known in (
            ("toolset", case.toolset, suite.toolsets),
            ("prompt", case.prompt, suite.prompts),
            ("arm", case.arm, suite.arm_of),
            ("twin", case.twin, suite.by_id),
        ):
            if name is not None and name not in known:
                raise ConfigError(f"{where}: the case {case.id} names the {kind} {name}, which the suite does not have")
    return suite
