"""The guards of one target while it runs: the circuit breaker, the pace, and how a run is halted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

#: A server that tells us to wait longer than this is not waited for: the target stops until a later run, seconds.
LONGEST_WAIT = 600.0


class Breaker:
    """Trips at so many consecutive infrastructure errors (bake-off §11). Counted are finished attempts."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.consecutive = 0

    def count(self, *, infrastructure: bool) -> bool:
        """Count one attempt; return whether the target must stop."""
        self.consecutive = self.consecutive + 1 if infrastructure else 0
        return self.consecutive >= self.limit


class Halt:
    """Why and how far something stops: nothing new begins once it is set; waits end at once."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._parts: list[Halt] = []
        self.why = ""

    def part(self) -> Halt:
        """A halt of one part: it stops with the whole, and can stop alone."""
        part = Halt()
        self._parts.append(part)
        if self.asked:
            part.ask(self.why)
        return part

    @property
    def asked(self) -> bool:
        """Whether to stop."""
        return self._event.is_set()

    def ask(self, why: str) -> None:
        """Stop; the first reason stands."""
        if not self._event.is_set():
            self.why = why
            self._event.set()
            for part in self._parts:
                part.ask(why)

    async def set(self) -> None:
        """Return when it is asked to stop."""
        await self._event.wait()

    async def wait(self, seconds: float) -> bool:
        """Sleep so long; return false at once when it is asked to stop."""
        if self.asked:
            return False
        if seconds <= 0:
            return True
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return True
        return False

    async def until(self, event: asyncio.Event) -> bool:
        """Wait for an event; return false when it is asked to stop."""
        waits = [asyncio.create_task(one.wait()) for one in (self._event, event)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()
        return not self.asked


class Pace:
    """Spaces the calls of one target evenly, and holds all of them while the server wants that."""

    def __init__(self, per_minute: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._gap = 60.0 / per_minute if per_minute else 0.0
        self._clock = clock
        self._next = 0.0
        self._held_until = 0.0
        #: Whether the server asked for longer than is waited for.
        self.left_alone = False

    def hold(self, seconds: float) -> None:
        """Let no call begin for so long: a server said ``Retry-After``."""
        self.left_alone = self.left_alone or seconds > LONGEST_WAIT
        self._held_until = max(self._held_until, self._clock() + seconds)
        self._next = max(self._next, self._held_until)

    def held(self) -> bool:
        """Whether no call may begin now, not even one whose turn has come."""
        return self._clock() < self._held_until

    def due(self) -> float:
        """Take the next turn; return how long until it comes, seconds."""
        now = self._clock()
        if not self._gap:
            return max(0.0, self._next - now)
        turn = max(now, self._next)
        self._next = turn + self._gap
        return turn - now
