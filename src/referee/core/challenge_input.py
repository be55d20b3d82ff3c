"""The input that a harness chooses for a challenge: from the run's id, so that anyone can choose it again."""

from __future__ import annotations

import hashlib
import re

_NUMBER = re.compile(r"\d{1,9}(?:\.\d{1,6})?")
_SYLLABLES = ("ba", "de", "fi", "go", "lu", "ma", "ne", "pi", "ro", "su", "ta", "vo", "ke", "zi", "wa", "hu")
#: Each input can be replaced in so many ways.
WAYS = 2


def challenge_input(run: str, original: str, way: int) -> str:
    """What to put instead of ``original``: a number for a number, words for words.

    A number changes its parity in way 0 and keeps it in way 1, and at most about doubles. Text gets one word more, and
    every word is another.

    Args:
        run: the run's id.
        original: what stands in the command.
        way: 0 or 1.
    """
    seed = hashlib.sha256(f"referee.challenge/1\0{run}\0{original}\0{way}".encode()).digest()
    if _NUMBER.fullmatch(original):
        whole, _, fraction = original.partition(".")
        number = int(whole)
        step = 1 + int.from_bytes(seed[:4], "big") % (number + 7)
        step += (step + way + 1) % 2
        return f"{number + step}.{fraction}" if fraction else str(number + step)
    words = max(1, len(original.split()))
    return " ".join(
        "".join(_SYLLABLES[seed[(word * 5 + at) % 32] % 16] for at in range(3 + (word + way) % 2))
        for word in range(words + 1)
    )
