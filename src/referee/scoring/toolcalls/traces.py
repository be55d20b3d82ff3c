"""Traces of a serving side that did not do its work: the marks of a chat template in a tool's name. Pure."""

from __future__ import annotations

import re

#: How chat templates mark a call, a channel or a turn; none of it belongs into a name.
_MARKS = re.compile(
    r"<\|[\w-]*\|?>?|<\uff5c|</?(?:tool_calls?|function_calls?|tool_code)\b|<function[= ]|<invoke |\[/?TOOL_"
)

#: Only the beginning of a long name is searched.
_SEARCHED = 2000


def leaked(name: str) -> bool:
    """Whether the marks of a chat template leaked into a tool's name."""
    return _MARKS.search(name[:_SEARCHED]) is not None
