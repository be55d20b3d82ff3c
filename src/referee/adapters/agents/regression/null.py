"""``null``: does nothing and claims nothing. It must earn nothing (methodology §5)."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main() -> None:
    """Leave a report that claims nothing."""
    mission = json.loads(Path("/work/mission.json").read_text(encoding="utf-8"))
    report = {
        "installed": False,
        "started": False,
        "errors": [],
        "test_depth": "tier3_none",
        "verified_how": "not verified",
        "final_state": "Nothing was done.",
    }
    Path(mission["report"]).write_text(json.dumps(report), encoding="utf-8")
    sys.stdout.write("null: did nothing, claims nothing\n")


if __name__ == "__main__":
    main()
