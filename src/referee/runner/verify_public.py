"""A built site, checked by a stranger who has nothing else: no records, no store, no key, no network.

Every file of evidence by its digest; casts and transcripts derived again from the served recordings; masks by what
stands in their places; every score, every replay and the board judged again from served documents alone. The pages in
HTML are renderings of the documents beside them and are not compared here: that takes the records. Of bake-offs, what
their raw export gives (``bakeoff.verify_site_report``).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

import referee
from referee.core.branding import Mask
from referee.core.canonical import canonical_bytes
from referee.core.cast import cast
from referee.core.records import AttemptEnded, AttemptFound, AttemptPlanned, Lock, Replayed
from referee.core.sessions.reading import told_from
from referee.core.sessions.steps import StepDone
from referee.core.transcript import transcript
from referee.errors import CouldNotVerify, DigestMismatch, Finding, NothingMatched, UsageError
from referee.publish.facts import reasons
from referee.publish.gate import never
from referee.publish.mapping import BUILT_IN, Mapping
from referee.publish.neutral import public_facts, public_lock
from referee.runner.bakeoff.verify_site_report import SiteReports, verify_site_reports
from referee.runner.seal import facts_bytes, lock_bytes
from referee.runner.site_files import pieces_of, read_document, reader_of, report_among, sha256_of
from referee.runner.verify import MANIFEST_SCHEMA
from referee.runner.verify_results import Shown, check_boards, check_runs, check_subjects, current
from referee.runner.verify_told import check_age, check_identities, formed, told_of_run
from referee.scoring.attempts import Judgement, judge
from referee.scoring.bringup import EDITIONS
from referee.scoring.cold import judge_replay

_AGAIN = "get the site again from where it is published, and compare"
_END: TypeAdapter[AttemptEnded | AttemptFound] = TypeAdapter(AttemptEnded | AttemptFound)


@dataclass
class PublicVerified:
    """What was found to hold, in counts.

    ``names``: the revealed mapping is the one that the site quotes. ``built_by``: the version that the site says built
    it, where that is another than this one; all was checked by the rules of this one. ``bakeoffs``: what was checked of
    the reports of bake-offs.
    """

    files: int = 0
    runs: int = 0
    recordings: int = 0
    masks: int = 0
    scores: int = 0
    replays: int = 0
    agents: int = 0
    names: bool = False
    built_by: str | None = None
    bakeoffs: SiteReports = field(default_factory=SiteReports)


def verify_public(site: Path, names: Mapping | None = None) -> PublicVerified:
    """Check a built site by itself.

    Args:
        site: its directory.
        names: the mapping of neutral names, where it has been revealed.

    Raises:
        NothingMatched: there is no site, or there is neither a run nor a report in it.
        CouldNotVerify: it was built before its documents told what that takes; or it says that another version built
            it, and what that version told of its runs is not what this one finds.
        Finding: the first thing that does not hold.
    """
    if not (site / "index.json").is_file():
        raise NothingMatched(f"there is no built site in {site}", todo="name the directory that holds index.json")
    index = read_document(site / "index.json")
    told = index.get("built_by")
    other = told if isinstance(told, str) and told != referee.__version__ else None
    try:
        return _verified(site, index, names, PublicVerified(built_by=other))
    except Finding as exc:
        if other is None or isinstance(exc, DigestMismatch):  # bytes are no matter of version
            raise
        raise CouldNotVerify(
            f"the site says that version {other} built it, this is {referee.__version__}, which finds: {exc.message}",
            todo=f"check it with version {other}: only what that finds tells whether the site was changed",
        ) from exc


def _verified(site: Path, index: dict[str, Any], names: Mapping | None, done: PublicVerified) -> PublicVerified:
    shown: list[tuple[_Run, Shown]] = []
    seen: set[str] = set()
    with formed("index.json"):
        check_age(index)
        listings = [(str(listed["run"]), dict(listed)) for listed in index["runs"]]
    for name, listed in listings:
        run = _Run(site, name, done, seen)
        with formed(f"runs/{name}/run.json"):
            run.check()
            if listed != {key: run.document[key] for key in listed}:
                raise Finding(f"index.json and runs/{run.name}/run.json do not say the same of the run {run.name}")
            shown.append((run, run.shown()))
    with formed("index.json or board.json"):
        _results(site, index, shown, done)
    with formed("evidence/"):
        _nothing_loose(site, seen)
    done.bakeoffs = verify_site_reports(site)
    if not done.runs and not done.bakeoffs.reports:
        raise NothingMatched(f"there is nothing to verify: the site in {site} shows no run and no bake-off")
    if names is not None:
        _names(index, names)
        done.names = True
    return done


class _Run:
    """One run of the site: its document and its evidence."""

    def __init__(self, site: Path, name: str, done: PublicVerified, seen: set[str]) -> None:
        self._site = site
        self._done = done
        self._seen = seen
        self.name = name
        self.document = read_document(site / "runs" / name / "run.json")
        self._judged: Judgement | None = None
        self._planned: AttemptPlanned | None = None
        self._found: dict[str, Path] = {}

    def check(self) -> None:
        self._done.runs += 1
        files = self._files(self.document["files"])
        if (self.document["end"] is None) != (self.document["state"] == "open"):
            raise self._finding("its state is not that of its end")
        if self.document["end"] is None:
            self._unjudged()
            return
        self._found = files
        self._manifest()
        planned, end = self._records(files)
        self._told_alike(planned, end, files)
        self._recording(files)
        self._masks(files)
        otherwise = told_of_run(self.document, end, self._site)
        if otherwise is not None:
            raise self._finding(otherwise)
        self._judge(planned, end, files)
        for replay in self.document["replays"]:
            self._replay(replay, files)

    def shown(self) -> Shown:
        """The run as its served lock and evidence give it, and nothing else that the site says of it."""
        judged, planned = self._judged, self._planned or self._plan({})
        lock = planned.lock
        told = (self.document["subject"], self.document["index"], self.document["edition"])
        if told != (lock.subject.name, lock.index, lock.edition):
            raise self._finding("run.json tells another subject, number or edition than its lock")
        if self.document["never_publishable"] != list(never(planned)):
            raise self._finding("whether it can ever be published is not what its lock gives")
        return Shown(
            run=self.name,
            at=planned.at,
            subject=lock.subject.name,
            pin=lock.subject.pin,
            agent=str(self.document["agent"]),
            locked=lock.agent.name if "lock.json" in self._found else str(self.document["agent"]).partition(" (")[0],
            digest=str(self.document["agent_digest"]),
            agent_tier=lock.agent.tier,
            index=lock.index,
            edition=next((one for one in EDITIONS if one == lock.edition), EDITIONS[-1]),
            open=self.document["state"] == "open",
            outcome=None if judged is None else judged.outcome,
            total=None if judged is None else judged.total,
            never=never(planned),
        )

    def _unjudged(self) -> None:
        """A run without an end has no result."""
        if self.document["valid"] or self.document["scores"] or self.document["total"] is not None:
            raise self._finding("it has a result, and no end is recorded")

    def _files(self, listed: list[dict[str, Any]]) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for file in listed:
            if not file["there"]:
                continue
            digits = str(file["digest"]).rpartition(":")[2]
            place = self._site / "evidence" / digits[:2] / f"{digits}.bin"
            if not place.is_file() or sha256_of(place) != digits:
                raise self._changed(f"the evidence file {file['name']} ({file['digest']}) is missing or has changed")
            self._done.files += digits not in self._seen
            self._seen.add(digits)
            found[str(file["name"])] = place
        return found

    def _manifest(self) -> None:
        """The manifest that results quote names exactly these files; of a neutral copy it is not served."""
        told = self.document["evidence"]
        if told is None:
            raise self._finding("it has ended, and names no evidence")
        digits = str(told).rpartition(":")[2]
        self._seen.add(digits)
        place = self._site / "evidence" / digits[:2] / f"{digits}.bin"
        neutral = str(self.document["agent"]).partition(" (")[0] not in BUILT_IN
        if not place.is_file():
            if not neutral:
                raise self._finding("the manifest of its evidence is not in the site")
            return
        if sha256_of(place) != digits:
            raise self._changed("the manifest of its evidence has changed")
        listed = [{key: file[key] for key in ("bytes", "digest", "name")} for file in self.document["files"]]
        wanted = {
            "schema": MANIFEST_SCHEMA,
            "run": self.name,
            "files": sorted(listed, key=lambda one: str(one["name"])),
        }
        if place.read_bytes() != canonical_bytes(wanted):
            raise self._finding("its files are not those that the manifest of its evidence names")

    def _records(self, files: dict[str, Path]) -> tuple[AttemptPlanned, AttemptEnded | AttemptFound]:
        planned = self._planned = self._plan(files)
        try:
            return planned, _END.validate_python(self.document["end"])
        except ValidationError as exc:
            raise self._finding(f"its end cannot be read: {type(exc).__name__}") from exc

    def _plan(self, files: dict[str, Path]) -> AttemptPlanned:
        try:
            lock = dict(self.document["lock"])
            if "lock.json" in files:
                lock = json.loads(files["lock.json"].read_bytes())
            else:  # a harness that died early, or a run of an early version
                lock["agent"] = {"name": lock["agent"]["label"], "version": "", "digest": lock["agent"]["digest"],
                                 "tier": lock["agent"]["tier"]}  # fmt: skip
            lock = {key: value for key, value in lock.items() if key not in {"schema", "run"}}
            return AttemptPlanned(run=self.name, at=self.document["planned_at"], lock=Lock.model_validate(lock))
        except (KeyError, ValueError, ValidationError) as exc:
            raise self._finding(f"its lock cannot be read: {type(exc).__name__}") from exc

    def _told_alike(self, planned: AttemptPlanned, end: AttemptEnded | AttemptFound, files: dict[str, Path]) -> None:
        """What run.json says of lock and end is what stands in their own files."""
        lock = files["lock.json"].read_bytes() if "lock.json" in files else lock_bytes(planned)
        if lock not in {lock_bytes(planned), public_lock(planned)}:
            raise self._finding("its lock.json is not canonical, or is another run's")
        said = {key: value for key, value in self.document["lock"].items() if key != "agent"}
        if said != planned.lock.model_dump(mode="json", exclude={"agent"}):
            raise self._finding("run.json tells another lock than its lock.json")
        if isinstance(end, AttemptEnded) and "facts.json" in files:
            facts = files["facts.json"].read_bytes()
            if facts not in {facts_bytes(end), public_facts(end)}:
                raise self._finding("run.json tells another end than its facts.json")

    def _recording(self, files: dict[str, Path]) -> None:
        if "session.raw" not in files or "session.timing" not in files:
            return
        for name, derive in (("session.cast", cast), ("transcript.txt", transcript)):
            if name in files and isinstance(self.document["end"], dict) and self.document["state"] == "ended":
                sha = hashlib.sha256()
                for piece in derive(pieces_of(files["session.raw"]), pieces_of(files["session.timing"])):
                    sha.update(piece)
                if sha.hexdigest() != files[name].name.removesuffix(".bin"):
                    raise self._finding(f"its {name} is not what the served recording gives")
                self._done.recordings += 1

    def _masks(self, files: dict[str, Path]) -> None:
        """In the place of each mask nothing is drawn but the mask."""
        if "masked.json" not in files or "session.raw" not in files:
            return
        masks = [Mask.model_validate(one) for one in read_document(files["masked.json"])["masks"]]
        if self.document["masked"] != [mask.model_dump(mode="json") for mask in masks]:
            raise self._finding("run.json tells other masks than its masked.json")
        with files["session.raw"].open("rb") as raw:
            for mask in masks:
                raw.seek(mask.at)
                data = raw.read(mask.bytes)
                if len(data) != mask.bytes or b"*" not in data:
                    raise self._finding(f"nothing is masked at byte {mask.at} of its recording")
                self._done.masks += 1

    def _judge(self, planned: AttemptPlanned, end: AttemptEnded | AttemptFound, files: dict[str, Path]) -> None:
        read = reader_of(files)
        judged = judge(planned, end, report_bytes=read("report.json"), rerun_output=read("rerun.txt"), read=read)
        told = [
            (
                one["edition"],
                one["counts"],
                one["total"],
                one["outcome"],
                [(row["row"], row["points"]) for row in one["rows"]],
            )
            for one in self.document["scores"]
        ]
        if told != [
            (one.edition, one.edition == judged.edition, one.total, one.outcome, list(asdict(one.rows).items()))
            for one in judged.by_edition.values()
        ]:
            raise self._finding("its scores are not what the served evidence gives")
        rows = None if judged.rows is None else asdict(judged.rows)
        found = None if judged.corroboration is None else judged.corroboration.status
        result = ("valid", "total", "outcome", "rows", "corroboration", "flagged")
        wanted = (judged.valid, judged.total, judged.outcome, rows, found, judged.flagged)
        if tuple(self.document[key] for key in result) != wanted:
            raise self._finding("its result is not what the served evidence gives")
        why = () if judged.corroboration is None else reasons(judged.corroboration)
        if tuple(self.document["corroboration_reasons"]) != why:
            raise self._finding("the reasons of its result are not what the served evidence gives")
        self._judged = judged
        self._done.scores += len(told)

    def _replay(self, told: dict[str, Any], of_run: dict[str, Path]) -> None:
        files = self._files(told["files"])
        if told["evidence"] is not None:
            self._seen.add(str(told["evidence"]).rpartition(":")[2])
        try:
            facts = json.loads(files["facts.json"].read_bytes())
            facts = {key: value for key, value in facts.items() if key != "schema"}
            replayed = Replayed.model_validate(
                {**_ABSENT, **facts, "at": told["at"], "evidence": (), "evidence_digest": told["evidence"]}
            )
            steps = told_from(files["commands.json"].read_bytes())
            done = [StepDone.model_validate(one) for one in json.loads(files["replay.json"].read_bytes())["steps"]]
        except (KeyError, ValueError, ValidationError, UsageError) as exc:
            raise self._finding(f"the replay {told['replay']} cannot be read: {type(exc).__name__}") from exc
        cold = judge_replay(report_among(of_run), replayed, reader_of(files)("rerun.txt"), steps, done)
        if (cold.status, cold.reason) != (told["status"], told["reason"]):
            raise self._finding(f"the replay {told['replay']} does not say what the site says of it")
        self._done.replays += 1

    def _finding(self, what: str) -> Finding:
        return Finding(f"run {self.name}: {what}", todo=_AGAIN)

    def _changed(self, what: str) -> DigestMismatch:
        return DigestMismatch(f"run {self.name}: {what}", todo=_AGAIN)


#: Fields of a replay's record that are left out where they are absent.
_ABSENT = {"stopped_at": None, "rerun": None}


def _results(site: Path, index: dict[str, Any], shown: list[tuple[_Run, Shown]], done: PublicVerified) -> None:
    """Boards and verdicts from the runs alone; no run of the site is left out of its index."""
    runs = [one for _, one in shown]
    check_runs(runs, names=index.get("names"))
    listed = {one.run for one in runs}
    for file in sorted((site / "runs").glob("*/run.json")):
        if file.parent.name not in listed:
            raise Finding(f"{file} is a run that index.json does not list")
    now = current(runs)
    for run, one in shown:
        if run.document["current_pin"] != (one.run in now):
            raise Finding(
                f"run {one.run}: whether its pin is the latest of its subject is not what the site's runs give"
            )
    at_pin = [one for one in runs if one.run in now]
    board = read_document(site / "board.json")
    done.agents = check_boards([one for one in at_pin if not one.open], board)
    check_identities([run.document for run, one in shown if one.run in now and not one.open], board)
    check_subjects(at_pin, index["subjects"])
    for listing in index["subjects"]:
        name = str(listing["subject"])
        told = read_document(site / "subjects" / f"{name}.json")
        attempts = [listed for listed in index["runs"] if listed["subject"] == name]
        if {key: told.get(key) for key in listing} != listing or told.get("attempts") != attempts:
            raise Finding(f"index.json and subjects/{name}.json do not say the same of {name}")


def _names(index: dict[str, Any], names: Mapping) -> None:
    """Of every run, whatever board it is on: boards have the identities of runs (``check_identities``)."""
    if names.digest() != index.get("names"):
        raise DigestMismatch(
            "the mapping is not the one that the site quotes",
            todo="take the mapping of the day on which the site was built",
        )
    known = {one.label: one.commitment() for one in names.agents}
    for run in index["runs"]:
        if known.get(run["agent"], run["agent_digest"]) != run["agent_digest"]:
            raise DigestMismatch(f"{run['agent']} is not the configuration that the mapping names")


def _nothing_loose(site: Path, seen: set[str]) -> None:
    for file in sorted((site / "evidence").glob("*/*")) if (site / "evidence").is_dir() else ():
        digits = file.name.removesuffix(".bin")
        if digits not in seen:
            raise Finding(f"{file} is evidence of no run of the site")
        if sha256_of(file) != digits:
            raise DigestMismatch(f"{file} is not the evidence that its name says", todo=_AGAIN)
