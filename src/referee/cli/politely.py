"""A polite end of a command that holds machines."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def ended_politely() -> Iterator[None]:
    """A polite kill, or a terminal that is closed, ends the work as Ctrl-C does: recorded, machine destroyed."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    previous = {polite: signal.getsignal(polite) for polite in (signal.SIGTERM, signal.SIGHUP)}
    for polite, handler in previous.items():
        if handler is not signal.SIG_IGN:  # nohup: whoever started us wants it ignored
            signal.signal(polite, interrupt)
    try:
        yield
    finally:
        for polite, handler in previous.items():
            signal.signal(polite, handler)
