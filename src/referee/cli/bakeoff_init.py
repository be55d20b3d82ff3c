"""What ``referee bakeoff init`` writes: a plan whose every key is explained, the cases, and a place for subsets."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

from referee.adapters.catalog.bakeoff_protocols import CASES, PROTOCOL, SUBSETS
from referee.adapters.store.durable import sync_directory
from referee.adapters.suites import bundled_names, bundled_subsets, bundled_suite, load_suite, suite_bytes
from referee.cli.cases import rotating_suite
from referee.core.bakeoff import Bootstrap, Guards, Retry, Sampling
from referee.core.cases import Suite
from referee.errors import NothingMatched, UsageError

#: Names the cases that are made from a private seed.
ROTATING = "rotating"
#: A gate has 200 to 400 cases.
ROTATING_CASES = 300

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,119}")

_PLAN = """\
# The protocol of a bake-off: metrics, thresholds and rules, settled before there is a result.
# `referee bakeoff freeze {name}` freezes this file, the cases, the subsets and the targets' files by one digest. From
# then on a change needs an entry of the decision log that amends the protocol, and says so on the report.

name = {name_text}
title = {title}
question = "Which model, through which lane, calls tools rightly, and abstains when none fits?"
suite = {suite}

# Attempts for each case and target. Temperature 0 is not deterministic under batched serving: hence more than one.
repeats = {repeats}
{arms}
# What is ranked: targets of targets/NAME.toml, or bundled ones. `subset` names a registered part of the suite.
{targets}
# How answers are drawn. Lanes that cannot pin temperature or seed say so on every row.
[sampling]
temperature = {sampling.temperature}
seed = {sampling.seed}
max_tokens = {sampling.max_tokens}
# tool_choice = "required" where a call is expected by design; never on a case that must be abstained from.
require_call = true

# Retries of infrastructure errors within one attempt; a server's Retry-After wins over these waits.
[retry]
tries = {retry.tries}
first_seconds = {retry.first_seconds}
factor = {retry.factor}
most_seconds = {retry.most_seconds}

# Guards: a target or a command line may tighten them, never loosen them.
[guards]
breaker = {guards.breaker}             # infrastructure errors in a row that stop a target
infra_share = {guards.infra_share}       # more infrastructure errors than this share: lane-limited, not ranked
credit_floor_usd = {guards.credit_floor_usd}  # below this credit no metered call is made
concurrency = {guards.concurrency}
deadline_seconds = {guards.deadline_seconds}
cli_deadline_seconds = {guards.cli_deadline_seconds}

# The second interval: a sensitivity figure, never a rank criterion.
[bootstrap]
iterations = {bootstrap.iterations}
seed = {bootstrap.seed}

# Comparisons that are registered before the run, for instance:
# [[comparisons]]
# a = "TARGET"
# b = "OTHER"
# why = "the same model through two lanes"
# matched_lanes = true
# registered_after_one_side_was_public = false
"""

_SUBSETS = """\
# Registered parts of the suite, balanced over categories, for targets that cannot run all of it. Their rows are marked.
# [[subset]]
# name = "twenty"
# why = "metered lane: the budget guard allows 40 calls"
# repeats = 2
# cases = ["CASE", "CASE"]
"""


def write_protocol(directory: Path, name: str, *, suite: str, targets: list[str], seed: Path | None = None) -> None:
    """Write a protocol's directory under a temporary name, then give it its own: whole or not at all.

    Args:
        directory: where it goes.
        name: its name; for rotating cases the name of the cycle too.
        suite: a bundled suite, ``rotating``, or a file of cases.
        targets: the targets to plan.
        seed: the file of the private seed for rotating cases; drawn and kept there where it is not there yet.

    Raises:
        UsageError: the name cannot name a directory, or the protocol is there already.
        NothingMatched: no such suite.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is no name of a protocol", todo="use small letters, digits, dots and hyphens")
    if directory.exists():
        raise UsageError(f"the protocol {name} is there already", todo=f"edit {directory}, or choose another name")
    read, data, subsets = _suite(suite, name, seed)
    fresh = directory.parent / f".{name}-{os.getpid()}"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    try:
        (fresh / PROTOCOL).write_text(_plan(name, read, targets), encoding="utf-8")
        (fresh / CASES).write_bytes(data)
        (fresh / SUBSETS).write_bytes(subsets)
        fresh.rename(directory)
        sync_directory(directory.parent)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _plan(name: str, suite: Suite, targets: list[str]) -> str:
    aside = [arm.name for arm in suite.arms if not arm.headline]
    return _PLAN.format(
        name=name,
        name_text=json.dumps(name),
        title=json.dumps(f"Bake-off {name}"),
        suite=json.dumps(suite.name),
        repeats=3,
        arms="# Another number for an arm that stands beside the headline, for instance:\n# arm_repeats = "
        f"{{ {json.dumps(aside[0])} = 2 }}\n"
        if aside
        else "",
        targets="".join(f"[[targets]]\ntarget = {json.dumps(target)}\n" for target in targets),
        sampling=Sampling(),
        retry=Retry(),
        guards=Guards(),
        bootstrap=Bootstrap(),
    )


def _suite(given: str, name: str, seed: Path | None) -> tuple[Suite, bytes, bytes]:
    """A bundled suite with its registered subsets; fresh cases, or a file as it stands, with none."""
    file = Path(given)
    if file.suffix == ".json" or "/" in given:
        suite = load_suite(file)
        return suite, file.read_bytes(), _SUBSETS.encode()
    if given == ROTATING and seed is not None:
        suite = rotating_suite(seed, cycle=name, count=ROTATING_CASES, new_seed=not seed.exists())
        return suite, suite_bytes(suite), _SUBSETS.encode()
    if given not in bundled_names():
        raise NothingMatched(
            f"there is no suite named {given!r}",
            todo=f"there are: {', '.join(bundled_names())}; {ROTATING}, from a private seed; a file such as ./my.json",
        )
    suite = bundled_suite(given)
    registered = bundled_subsets(given)
    subsets = _SUBSETS + "".join(
        f"\n[[subset]]\nname = {json.dumps(one.name)}\nwhy = {json.dumps(one.why, ensure_ascii=False)}\n"
        f"repeats = {one.repeats}\ncases = [\n{''.join(f'  {json.dumps(case)},{chr(10)}' for case in one.cases)}]\n"
        for one in registered
    )
    return suite, suite_bytes(suite), subsets.encode()
