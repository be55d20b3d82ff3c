"""Entry point inside the machine: reads the mission, works, and always leaves a report."""

from __future__ import annotations

import sys

sys.stdout.write(
    "baseline: reads the README and manifests, installs, starts, works through errors, verifies, reports\n"
)
sys.stdout.flush()

import contextlib  # noqa: E402 — the first line must not wait for anything
import os  # noqa: E402
import signal  # noqa: E402
import traceback  # noqa: E402
from pathlib import Path  # noqa: E402

from .mission import Mission, read_mission  # noqa: E402
from .report import Draft  # noqa: E402
from .terminal import say  # noqa: E402


class OutOfTime(BaseException):
    """The deadline is near: what was observed so far is the report."""


def _alarm(_signal: int, _frame: object) -> None:
    raise OutOfTime


def main(mission_file: str = "/work/mission.json") -> int:
    """Carry the mission out; 0 when a report was written."""
    draft = Draft()
    path = Path("/work/report.json")
    try:
        mission = read_mission(Path(mission_file))
        path = mission.report
        draft.write(path)  # claims nothing, but is there whatever happens
        signal.signal(signal.SIGALRM, _alarm)
        signal.setitimer(signal.ITIMER_REAL, max(1.0, mission.left() + 15))
        _work(mission, draft)
    except OutOfTime:
        draft.note("the time limit came before the end")
    except Exception:  # noqa: BLE001 — what was observed is reported even when we break
        say(traceback.format_exc())
        draft.note("baseline itself broke off with an internal error")
    signal.setitimer(signal.ITIMER_REAL, 0)
    draft.write(path)
    say("# report:")
    say(path.read_text(encoding="utf-8"))
    return 0


def _work(mission: Mission, draft: Draft) -> None:
    from .drive import bring_up  # noqa: PLC0415 — loaded after the first line
    from .workshop import Workshop  # noqa: PLC0415

    say(f"# subject: {mission.name} ({mission.kind}), {mission.left():.0f} s to work with")
    with contextlib.suppress(OSError):
        os.chdir(mission.project)
    bring_up(Workshop(mission, draft))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
