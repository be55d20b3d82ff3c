"""Traces of a serving side that did not do its work: template marks in names, calls left standing as text. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

#: How chat templates mark a call or a channel; none of it belongs into a name or into an answer to a reader.
_MARKS = re.compile(
    r"<\|[a-z_]+\|>|<\uff5c|</?tool_calls?>|</?function_calls?>|</?tool_code>|<function[= ]|<invoke |<\|tool"
    r"|\[TOOL_CALLS\]|\[/?TOOL_REQUEST\]",
    re.IGNORECASE,
)

_NAMED = re.compile(r"""["'](?:name|function|tool|tool_name)["']\s*:\s*["']([^"'\n]{1,200})["']""")
_ENVELOPE = re.compile(
    r"""^\s*(?:```\w*\s*)?[\[{]\s*\{?\s*["'](?:tool_calls|tool_call|function_call)["']\s*:\s*[\[{]\s*[^\s\]}]"""
)

#: Only the beginning of a long text is searched.
_SEARCHED = 20_000


def leaked(name: str) -> bool:
    """Whether the marks of a chat template leaked into a tool's name."""
    return _MARKS.search(name[:_SEARCHED]) is not None


def attempted(text: str, tools: Collection[str]) -> bool:
    """Whether a text attempts a call: the marks of a template, an envelope, or JSON that names one of the tools."""
    text = text[:_SEARCHED]
    if _MARKS.search(text) or _ENVELOPE.match(text):
        return True
    return any(named in tools for named in _NAMED.findall(text))
