"""How much input a request can have at most, before it is sent.

Only text goes up, and a token of text is at least one byte of the request, so its length bounds its tokens. Where the
request is one that the upstream counted before, grown at its end, only what is new need be bounded by its bytes: the
length alone is about four times too much and would end a run long before its cap.
"""

from __future__ import annotations

from collections import deque

from referee.adapters.keys.gateway.asked import Asked

#: What providers add to a request of their own: the frame of each conversation, the instructions for calling tools.
ADDED_TOKENS = 2_000
#: Where the kept part of a text ends inside a token, a few more come about.
_SEAM_TOKENS = 64

_KEPT = 4
_LARGEST_KEPT = 4 * 2**20


class Seen:
    """The latest requests of one run, all of one surface, whose input the upstream counted."""

    def __init__(self) -> None:
        self._latest: deque[tuple[bytes, bytes, int]] = deque(maxlen=_KEPT)

    def counted(self, asked: Asked, input_tokens: int) -> None:
        """Remember how many tokens a request was."""
        if len(asked.body) <= _LARGEST_KEPT:
            self._latest.appendleft((asked.frame, asked.turns, input_tokens))

    def most_tokens(self, asked: Asked) -> int:
        """No fewer than the input tokens of a request.

        What was counted stands for a whole request that this one begins with: the same frame, then all of its turns. A
        part of it would not do, since providers count some turns only where others do not follow (thoughts of earlier
        turns, what a small context has no room for).
        """
        least = len(asked.body) + ADDED_TOKENS
        for frame, turns, tokens in self._latest:
            if frame == asked.frame and grown(turns, asked.turns):
                fresh = len(asked.body) - len(frame) - len(turns)
                least = min(least, tokens + fresh + ADDED_TOKENS + _SEAM_TOKENS)
        return least


def grown(before: bytes, now: bytes) -> bool:
    """Whether a list of JSON values, written one after the other, is an earlier one with values behind it."""
    return now.startswith(before) and (len(now) == len(before) or (bool(before) and now[len(before)] == _COMMA))


_COMMA = ord(",")
