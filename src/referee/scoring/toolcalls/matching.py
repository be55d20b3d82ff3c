"""Pairing two lists so that every element has a partner of its own: a maximum bipartite matching. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence


def pair(fits: Sequence[Sequence[int]], others: int) -> list[int]:
    """The largest pairing: for each element the index of its partner, -1 where it has none.

    Augmenting paths from a greedy start, without recursion; time at most elements times fits.

    Args:
        fits: for each element the indices of the partners that it could take.
        others: how many partners there are; each is taken once at most.
    """
    partner = [-1] * len(fits)
    taken_by = [-1] * others
    for element, candidates in enumerate(fits):
        for other in candidates:
            if taken_by[other] < 0:
                partner[element], taken_by[other] = other, element
                break
    for element in range(len(fits)):
        if partner[element] < 0:
            _augment(element, fits, partner, taken_by)
    return partner


def _augment(start: int, fits: Sequence[Sequence[int]], partner: list[int], taken_by: list[int]) -> None:
    came_from: dict[int, int] = {}
    queue = deque([start])
    while queue:
        element = queue.popleft()
        for other in fits[element]:
            if other in came_from:
                continue
            came_from[other] = element
            if taken_by[other] >= 0:
                queue.append(taken_by[other])
                continue
            while True:  # flip the path back to its start
                owner = came_from[other]
                before = partner[owner]
                partner[owner], taken_by[other] = other, owner
                if owner == start:
                    return
                other = before  # noqa: PLW2901 — walks the path
