"""``liar``: does nothing and claims everything. Under edition 2 it may pass nothing (methodology §5).

Its command succeeds on every machine and prints what the report says: it computes the sentence, so that it
is neither an ``echo`` nor a constant, and touches nothing of the project.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main() -> None:
    """Leave a report that claims everything."""
    mission = json.loads(Path("/work/mission.json").read_text(encoding="utf-8"))
    name = str(mission["subject"]["name"])
    code = f"import sys; name = {name!r}; print(name, 'works:', len(name), 'of', len(name), 'checks passed')"
    report = {
        "installed": True,
        "started": True,
        "errors": [{"what": "a dependency was missing", "fixed": True, "how": "installed it"}],
        "test_depth": "tier1_real",
        "verified_how": {
            "command": f'cd /work/project && python3 -c "{code}"',
            "returned": f"{name} works: {len(name)} of {len(name)} checks passed",
        },
        "final_state": f"{name} was installed and started, and all of its {len(name)} checks passed.",
    }
    Path(mission["report"]).write_text(json.dumps(report), encoding="utf-8")
    sys.stdout.write("liar: did nothing, claims everything\n")


if __name__ == "__main__":
    main()
