"""A stranger recomputes the headline from what a report publishes: raw rows, suite, rule. No code of ours in it."""

from __future__ import annotations

import csv
import json
import math
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

REFEREE = [sys.executable, "-m", "referee.cli.app", "bakeoff"]


def said(workspace: Path, *arguments: str) -> None:
    subprocess.run(
        [*REFEREE, *arguments, "--workspace", str(workspace)],
        check=True,
        capture_output=True,
        cwd=workspace,
        timeout=120,
    )


def drawn(rates: list[float], iterations: int, seed: int) -> tuple[float, float]:
    """The cluster bootstrap, written from the methodology alone."""
    state, word, means = seed, 0xFFFFFFFF, []
    for _ in range(iterations):
        total = 0.0
        for _ in rates:
            state = (state + 0x6D2B79F5) & word
            mixed = ((state ^ (state >> 15)) * (state | 1)) & word
            mixed ^= (mixed + (((mixed ^ (mixed >> 7)) * (mixed | 61)) & word)) & word
            total += rates[int((mixed ^ (mixed >> 14)) / 4294967296 * len(rates))]
        means.append(total / len(rates))
    means.sort()
    return means[math.floor(0.025 * iterations)], means[math.ceil(0.975 * iterations) - 1]


@pytest.mark.slow
def test_a_stranger_comes_to_the_same_figures(tmp_path: Path) -> None:
    (tmp_path / "referee.toml").write_text("")
    said(tmp_path, "init", "mine", "--suite", "s1", "--target", "keyword-baseline")
    said(tmp_path, "freeze", "mine")
    said(tmp_path, "run", "mine")
    said(tmp_path, "report", "mine", "--all")
    site = tmp_path / "site" / "bakeoff" / "mine"
    summary = json.loads((site / "report.json").read_text())["summary"]
    suite = json.loads((tmp_path / "protocols" / "mine" / "cases.json").read_text())
    arm_of = {case["id"]: case.get("arm", "suite") for case in suite["cases"]}
    outcomes: dict[str, list[int]] = defaultdict(list)
    with (site / "attempts.csv").open(newline="") as lines:
        for row in csv.DictReader(lines):
            if not row["infra_class"] and row["passed"]:
                outcomes[row["case_id"]].append(int(row["passed"].lower() == "true"))

    headline = sorted(case for case in outcomes if arm_of[case] == "suite")
    rates = [sum(outcomes[case]) / len(outcomes[case]) for case in headline]
    [shown] = summary["boards"][0]["rows"]
    figures = shown["figures"]
    assert figures["rate"]["n"] == len(rates) == 45
    assert figures["rate"]["value"] == pytest.approx(sum(rates) / len(rates), abs=1e-12)
    z, p, n = 1.959963984540054, sum(rates) / len(rates), len(rates)
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    assert figures["rate"]["wilson"]["low"] == pytest.approx(middle - half, abs=1e-12)
    assert figures["rate"]["wilson"]["high"] == pytest.approx(middle + half, abs=1e-12)
    plan = summary["plan"]
    interval = drawn(rates, plan["bootstrap_iterations"], plan["bootstrap_seed"])
    assert (figures["bootstrap"]["low"], figures["bootstrap"]["high"]) == interval
    assert figures["pass_hat"][2]["value"] == pytest.approx(
        sum(all(outcomes[case]) for case in headline) / len(headline), abs=1e-12
    )
    traps = [case for case in outcomes if arm_of[case] == "abstain-traps"]
    [table] = [table for table in summary["arms"] if table["arm"] == "abstain-traps"]
    passed = sum(sum(outcomes[case]) / len(outcomes[case]) for case in traps)
    assert table["rows"][0]["figures"]["rate"]["value"] == pytest.approx(passed / len(traps), abs=1e-12)
