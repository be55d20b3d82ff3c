"""Freezes a protocol before its first row, and refuses a run whose plan is not the frozen one (bake-off §1).

What is frozen is every file of the protocol by name and bytes, and what the harness itself adds to the method: the
fixed prompts and the generation of grading rules.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NoReturn

from referee.adapters.catalog.bakeoff_protocols import PROTOCOL, LoadedProtocol, digest_of_files, parse_protocol
from referee.adapters.store.evidence import LocalEvidence
from referee.adapters.store.records import RecordFiles
from referee.benchmarks.bakeoff.asking import prompt_digest
from referee.core import toml_text
from referee.core.records import BakeoffRecord, DecisionLogged, ProtocolFrozen
from referee.errors import Finding, NothingMatched, UsageError
from referee.runner.bakeoff.changes import Change, changes
from referee.scoring.lint import lint, lint_subset

#: The harness's own part of the method, as a file beside the protocol's.
HARNESS = "harness.json"

#: Tokens that an answer may have (§7): fewer cut off a model that reasons, more let it reason without end.
FEWEST_TOKENS, MOST_TOKENS = 4096, 8192


def plan_files(loaded: LoadedProtocol) -> dict[str, bytes]:
    """Everything that is frozen, by name: the protocol's files and ``harness.json``."""
    part = {"grading": loaded.suite.grading, "prompts": prompt_digest()}
    return {**loaded.files, HARNESS: json.dumps(part, indent=1, sort_keys=True).encode() + b"\n"}


def digest_of_plan(loaded: LoadedProtocol) -> str:
    """What a freeze carries, and every row: one digest over all that is frozen."""
    return digest_of_files(plan_files(loaded))


def freezes_of(records: Sequence[BakeoffRecord], protocol: str) -> list[ProtocolFrozen]:
    """The freezes of a protocol in order: the first, then one for each decision that renewed it."""
    found = [one for one in records if isinstance(one, ProtocolFrozen) and one.protocol == protocol]
    return sorted(found, key=lambda one: one.decision or 0)


def freeze(
    log: RecordFiles, evidence: LocalEvidence, loaded: LoadedProtocol, *, by: str, decision: int | None = None
) -> ProtocolFrozen:
    """Freeze the plan as it stands. A plan that is frozen as it stands already is returned, and nothing is appended.

    Args:
        log: the workspace's bake-off records.
        evidence: where the frozen bytes are kept, so that a later change can be named to the line.
        loaded: the protocol.
        by: who freezes it.
        decision: number of the logged decision that amends the protocol and that a renewed freeze carries out.

    Raises:
        Finding: the linter objects to a case, answers are drawn in another way than the method allows, or the plan
            changed and no amending decision is named.
        UsageError: the decision does not amend, was carried out already, or has nothing to carry out.
        NothingMatched: there is no such decision.
    """
    refuse_objections(loaded)
    files, digest = plan_files(loaded), digest_of_plan(loaded)
    name = loaded.protocol.name
    with log.numbering():
        records = log.read_bakeoff()
        before = freezes_of(records, name)
        if before and before[-1].digest == digest:
            if decision is not None and decision != before[-1].decision:
                _refuse_idle(records, before, name, decision)
            return before[-1]
        refuse_sampling(loaded)
        if before and decision is None:
            raise _changed(loaded, before[-1], changes_since(before[-1], evidence, loaded))
        if decision is not None:
            _check_decision(records, before, name, decision)
        record = ProtocolFrozen(
            protocol=name,
            at=datetime.now(UTC).isoformat(),
            digest=digest,
            files=tuple(evidence.keep(file, data) for file, data in sorted(files.items())),
            by=by,
            decision=decision,
        )
        log.append(record)
    return record


def require_frozen(log: RecordFiles, evidence: LocalEvidence, loaded: LoadedProtocol) -> ProtocolFrozen:
    """The freeze under which a run may begin: its ``digest`` is what the run's rows carry.

    Raises:
        Finding: the protocol is not frozen, or a line of it changed since; the message names that line.
    """
    freezes = freezes_of(log.read_bakeoff(), loaded.protocol.name)
    if not freezes:
        raise Finding(
            f"the protocol {loaded.protocol.name} is not frozen, so no row of it can be recorded",
            todo=f"freeze it first: `referee bakeoff freeze {loaded.protocol.name}`",
        )
    if freezes[-1].digest != digest_of_plan(loaded):
        raise _changed(loaded, freezes[-1], changes_since(freezes[-1], evidence, loaded))
    return freezes[-1]


def changes_since(frozen: ProtocolFrozen, evidence: LocalEvidence, loaded: LoadedProtocol) -> list[Change]:
    """Every line that differs between a freeze and the plan as it stands.

    Raises:
        Finding: a frozen file is not in the store of evidence.
    """
    return changes({ref.name: evidence.read(ref.digest) for ref in frozen.files}, plan_files(loaded))


def refuse_objections(loaded: LoadedProtocol) -> None:
    """Raise where the linter objects to the suite or a registered subset; what a case declares itself may stand.

    Raises:
        Finding: the first objection, and how many more there are.
    """
    found = [one for one in lint(loaded.suite) if not one.known]
    for subset in loaded.subsets.values():
        found += lint_subset(subset, loaded.suite)
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise Finding(
            f"the linter refuses {found[0].case}, {found[0].rule}: {found[0].sentence}{more}",
            todo="correct it; a case that is to stand all the same says why in `known_objection`, and is unranked",
        )


def refuse_sampling(loaded: LoadedProtocol) -> None:
    """Raise where the plan draws answers otherwise than every report says that they are drawn (§2, §7).

    Raises:
        Finding: another temperature than 0, an answer that may be shorter or longer than the control allows, or a
            number without end.
    """
    name, sampling = loaded.protocol.name, loaded.protocol.sampling
    if (place := toml_text.beyond_json(toml_text.loads(loaded.files[PROTOCOL].decode()))) is not None:
        raise Finding(f"{place} of the protocol {name} is no finite number: no guard, wait or bound is without end")
    if sampling.temperature != 0:
        raise Finding(
            f"the protocol {name} draws answers at temperature {sampling.temperature}; this benchmark draws them at 0",
            todo="say temperature = 0 under [sampling]; a model that takes none has takes_sampling = false",
        )
    if not FEWEST_TOKENS <= sampling.max_tokens <= MOST_TOKENS:
        raise Finding(
            f"the protocol {name} allows answers of {sampling.max_tokens} tokens; {FEWEST_TOKENS} to {MOST_TOKENS} are "
            "the control for models that reason",
            todo=f"say max_tokens = {FEWEST_TOKENS} under [sampling], or another number up to {MOST_TOKENS}",
        )


def frozen_protocol(frozen: ProtocolFrozen, evidence: LocalEvidence) -> LoadedProtocol:
    """The protocol as it was frozen, from the bytes that were kept: what a report is made with.

    Raises:
        Finding: a frozen file is not in the store of evidence, or its bytes changed.
    """
    return parse_protocol({ref.name: evidence.read(ref.digest) for ref in frozen.files if ref.name != HARNESS})


def _refuse_idle(
    records: Sequence[BakeoffRecord], before: Sequence[ProtocolFrozen], name: str, decision: int
) -> NoReturn:
    """A freeze that would change nothing says what is wrong with its decision, or that it has nothing to carry out."""
    _check_decision(records, before, name, decision)
    raise UsageError(
        f"nothing of {name} changed since it was frozen on {before[-1].at[:10]}: decision {decision} has nothing to "
        "carry out",
        todo="make the change first, then freeze with the decision's number",
    )


def _check_decision(
    records: Sequence[BakeoffRecord], before: Sequence[ProtocolFrozen], name: str, decision: int
) -> None:
    if not before:
        raise UsageError(f"the protocol {name} was never frozen: its first freeze carries out no decision")
    logged = [one for one in records if isinstance(one, DecisionLogged) and one.protocol == name]
    found = next((one for one in logged if one.number == decision), None)
    if found is None:
        raise NothingMatched(
            f"the decision log of {name} has no entry {decision}",
            todo=f"`referee bakeoff decisions {name}` lists it; `referee bakeoff decide {name} --amends` adds to it",
        )
    if not found.amends:
        raise UsageError(
            f"decision {decision} of {name} does not amend the protocol",
            todo="log the change as a decision with --amends, and freeze with its number",
        )
    last = before[-1].decision or 0
    if decision <= last:
        raise UsageError(
            f"decision {decision} of {name} was followed by a freeze under decision {last} already",
            todo="log the new change as a decision of its own with --amends",
        )


def _changed(loaded: LoadedProtocol, frozen: ProtocolFrozen, found: Sequence[Change]) -> Finding:
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    name = loaded.protocol.name
    return Finding(
        f"the protocol {name} changed since it was frozen on {frozen.at[:10]}: {found[0].sentence}{more}",
        todo=f"undo the change, or log it (`referee bakeoff decide {name} --amends …`) and freeze with `--decision N`",
    )
