"""How much input a request can have at most, before it is sent.

A token is at least one byte of the request, so its length bounds its tokens; an agent's requests grow by appending,
so where an earlier request of the run was counted by the upstream, only what is new need be bounded by its bytes. The
length alone is about four times too much and would end a run long before its cap.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from referee.core.spending import Dialect

#: What providers add to a request of their own: the frame of each conversation, the instructions for calling tools.
ADDED_TOKENS = 2_000
#: A picture or recording can be more tokens than bytes of its file; a file that is only named, far more.
MEDIA_TOKENS = 20_000
REFERENCE_TOKENS = 200_000
#: Where the kept part of a text begins or ends inside a token, a few more come about.
_SEAM_TOKENS = 64

#: In a body that was written by ``asked`` these stand for members, never inside a text (there the marks are escaped).
_OPENAI_MEDIA = (
    b'"image_url":',
    b'"type":"input_image"',
    b'"type":"input_audio"',
    b'"type":"input_file"',
    b'"type":"file"',
)
_OPENAI_REFERENCES = (b'"file_id":"', b'"file_url":"')
_MEDIA: dict[Dialect, tuple[bytes, ...]] = {
    "openai-chat": _OPENAI_MEDIA,
    "openai-responses": _OPENAI_MEDIA,
    "anthropic-messages": (b'"type":"image"', b'"type":"document"'),
    "gemini": (b'"inlineData":', b'"inline_data":'),
}
_REFERENCES: dict[Dialect, tuple[bytes, ...]] = {
    "openai-chat": _OPENAI_REFERENCES,
    "openai-responses": _OPENAI_REFERENCES,
    "anthropic-messages": (b'"type":"url"', b'"file_id":"'),
    "gemini": (b'"fileData":', b'"file_data":'),
}

_KEPT = 4
#: A request of which less than one part in so many is new is an earlier one, grown.
_MOSTLY = 8
_LARGEST_KEPT = 4 * 2**20


class Seen:
    """The latest requests of one run whose input the upstream counted."""

    def __init__(self) -> None:
        self._latest: deque[tuple[bytes, int, int]] = deque(maxlen=_KEPT)

    def counted(self, dialect: Dialect, body: bytes, input_tokens: int) -> None:
        """Remember how many tokens ``body``, a request of ``dialect``, was."""
        if len(body) <= _LARGEST_KEPT:
            self._latest.appendleft((body, input_tokens, _extra(dialect, body)))

    def most_tokens(self, dialect: Dialect, body: bytes) -> int:
        """No fewer than the input tokens of ``body``, a request of ``dialect``."""
        extra = _extra(dialect, body)
        least = len(body) + ADDED_TOKENS + extra
        for earlier, tokens, extra_then in self._latest:
            fresh = len(body) - common(earlier, body)
            least = min(least, tokens + fresh + ADDED_TOKENS + _SEAM_TOKENS + max(0, extra - extra_then))
            if fresh * _MOSTLY < len(body):
                break  # it is that one grown: no other will tell more
        return least


def _extra(dialect: Dialect, body: bytes) -> int:
    media = sum(body.count(mark) for mark in _MEDIA[dialect])
    references = sum(body.count(mark) for mark in _REFERENCES[dialect])
    return media * MEDIA_TOKENS + references * REFERENCE_TOKENS


def common(one: bytes, other: bytes) -> int:
    """How many bytes two texts share at their beginning and at their end together, none of them twice."""
    shortest = min(len(one), len(other))
    ahead = _most(shortest, lambda low, high: one[low:high] == other[low:high])
    a, b = len(one), len(other)
    behind = _most(shortest - ahead, lambda low, high: one[a - high : a - low] == other[b - high : b - low])
    return ahead + behind


def _most(limit: int, same: Callable[[int, int], bool]) -> int:
    """The largest length up to ``limit`` for which ``same`` holds from 0 on."""
    if same(0, limit):
        return limit
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if same(low, middle):
            low = middle
        else:
            high = middle - 1
    return low
