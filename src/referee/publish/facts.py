"""From records and evidence to what is shown. Every figure is ``referee.scoring``'s, made from the same bytes that the
pages link: nothing is counted twice, nothing is read from a cache.
"""

from __future__ import annotations

from collections.abc import Mapping as Reviews
from collections.abc import Sequence
from dataclasses import dataclass, replace

from referee.core.records import AgentRef, AttemptEnded, AttemptFound, AttemptPlanned, Correction, Record, Replayed
from referee.core.sessions.reading import read
from referee.core.sessions.steps import Told
from referee.errors import NothingMatched, UsageError
from referee.protocols import Evidence
from referee.publish.attachments import Attachments
from referee.publish.brands import brand_of
from referee.publish.gate import never, objections
from referee.publish.mapping import BUILT_IN, REGRESSION, Mapping
from referee.publish.names import AgentNames
from referee.publish.neutral import Copies, Face, Neutralizer
from referee.publish.replays import replay_views
from referee.publish.standings import boards, entry
from referee.publish.views import DetailView, RowView, RunView, ScoreView, SiteView, SubjectView, VerdictView
from referee.publish.words import ROWS
from referee.scoring.attempts import Judgement, judge
from referee.scoring.boards import by_edition, spread, under_review
from referee.scoring.bringup import EDITIONS, Edition, Score
from referee.scoring.corroboration import Corroboration
from referee.scoring.gather import gather
from referee.scoring.verdicts import deciding, speaking, verdict

#: Of a recording with more bytes than this, pages list no steps.
MAX_READ = 32_000_000

#: Points that each row can give (methodology §6).
OUT_OF = {"install": 30.0, "start": 30.0, "fixes": 20.0, "depth": 20.0}


@dataclass(frozen=True)
class Known:
    """How far something that was made of the records knew a run: its state, and how many notes and replays it had."""

    state: str
    notes: int
    replays: int

    def before(self, now: Known) -> bool:
        """Whether records that give ``now`` may have given this earlier: records are added, never taken away."""
        return self.state in {"open", now.state} and self.notes <= now.notes and self.replays <= now.replays


class Facts:
    """What pages and terminals show of one workspace.

    Args:
        records: all its records.
        evidence: the store behind them, also for whoever writes the pages; a blob that is missing is shown as missing.
        neutral: whether agents appear under neutral identities, as the methodology asks of public pages (§1).
        mapping: the private mapping of names; with it, runs of named agents are shown by their public face alone.

    Raises:
        Finding: the records do not hold together (a run planned twice, ended twice, or never planned).
    """

    def __init__(
        self, records: Sequence[Record], evidence: Evidence, *, neutral: bool = True, mapping: Mapping | None = None
    ) -> None:
        self._records, self._mapping = tuple(records), mapping
        self._runs = gather(records)
        planned = [found.planned for found in self._runs.values()]
        self._planned = sorted(planned, key=lambda record: (record.at, record.run))
        self._names = AgentNames([record.lock.agent for record in self._planned], neutral=neutral, mapping=mapping)
        self._pins = {record.lock.subject.name: record.lock.subject.pin for record in self._planned}
        self.evidence = evidence
        self.served = Copies(evidence)
        self._neutralizer = Neutralizer(self.served, brand_of)

    def lacks_names(self) -> bool:
        """Whether there are named agents, and none has a letter: the private mapping is missing."""
        named = any(record.lock.agent.name not in BUILT_IN for record in self._planned)
        return named and self._mapping is not None and not self._mapping.agents

    def knows_names(self, digest: str | None) -> bool:
        """Whether the private mapping has, or once had, that digest; also where names are no matter."""
        return self._mapping is None or digest is None or self._mapping.as_of(digest) is not None

    def planned(self) -> list[str]:
        """The runs in the order in which they were planned."""
        return [record.run for record in self._planned]

    def known(self) -> dict[str, Known]:
        """How far the records know each run."""
        return {
            run: Known(_state(found.end), len(found.corrections), len(found.replays))
            for run, found in self._runs.items()
        }

    def as_of(self, known: Reviews[str, Known], names: str | None) -> Facts:
        """What was shown when the records knew their runs so far, and the mapping had the digest ``names``."""
        left = {
            kind: {run: getattr(one, count) for run, one in known.items()}
            for kind, count in ((Correction, "notes"), (Replayed, "replays"))
        }
        records: list[Record] = []
        for record in self._records:
            if isinstance(record, Correction | Replayed):
                counts = left[type(record)]
                counts[record.run] = counts.get(record.run, 0) - 1
                kept = counts[record.run] >= 0
            else:
                kept = record.run in known and (isinstance(record, AttemptPlanned) or known[record.run].state != "open")
            if kept:
                records.append(record)
        mapping = None if self._mapping is None else self._mapping.as_of(names) or self._mapping
        return Facts(records, self.evidence, neutral=self._names.neutral, mapping=mapping)

    def find(self, name: str) -> AttemptPlanned:
        """The run of that id, the only one whose id begins so, or the one planned ``last``.

        Raises:
            NothingMatched: there is none.
            UsageError: several begin so.
        """
        if name == "last" and self._planned:
            return self._planned[-1]
        starts = (name, f"r-{name}")
        found = [record for record in self._planned if record.run == name]
        found = found or [record for record in self._planned if name and record.run.startswith(starts)]
        if len(found) > 1:
            ids = ", ".join(record.run for record in found[:5])
            raise UsageError(f"{len(found)} runs begin with {name!r}: {ids}", todo="give more of the id")
        if not found:
            if name == "last":
                raise NothingMatched("there is no run here yet", todo="`referee bringup run SUBJECT` makes one")
            raise NothingMatched(f"there is no run {name!r} here", todo="`referee show` without a run lists them")
        return found[0]

    def site(self) -> SiteView:
        """All runs, subjects and the board."""
        runs = [self.run(record) for record in self._planned]
        measured = [run for run in runs if run.current and run.state != "open"]
        apart = by_edition([entry(run) for run in measured])
        review = {edition: under_review(entries) for edition, entries in apart.items()}
        return SiteView(
            subjects=tuple(
                _subject(name, [run for run in runs if run.subject == name], self.evidence, review)
                for name in sorted(self._pins)
            ),
            boards=boards(measured),
            runs=tuple(runs),
            names_digest=self._names.digest,
        )

    def run(self, planned: AttemptPlanned) -> RunView:
        """One run, from its records and its judgement."""
        lock, ended = planned.lock, self._runs[planned.run].end
        files = Attachments(ended, self.evidence)
        judged, reason = _judged(planned, ended, files)
        flagged = judged is not None and judged.flagged
        valid = judged is not None and judged.valid
        found = None if judged is None else judged.corroboration
        invalid = None if valid or ended is None else reason or "no reason recorded"
        view = RunView(
            run=planned.run,
            state=_state(ended),
            current=lock.subject.pin == self._pins[lock.subject.name],
            planned=planned,
            ended=ended,
            agent=self._names.view(lock.agent),
            valid=valid,
            reason=reason,
            outcome=None if judged is None else judged.outcome,
            total=None if judged is None else judged.total,
            scores=() if judged is None else tuple(_score(one, lock.edition) for one in judged.by_edition.values()),
            corroboration=None if found is None else found.status,
            corroboration_why=() if found is None else reasons(found),
            flagged=flagged,
            files=files.files(),
            manifest=files.manifest(),
            corrections=self._runs[planned.run].corrections,
            objections=tuple(objections(planned, ended, invalid=invalid, flagged=flagged)),
            never=never(planned),
            edition=_edition(planned),
            replays=replay_views(self._runs[planned.run], self.evidence),
        )
        named = self._names.named(lock.agent)
        return view if named is None else self._public(view, self._neutralizer.face(named, planned, ended))

    def _public(self, view: RunView, face: Face) -> RunView:
        """The view of a run by its public face: other records, other files, the same judgement."""
        files = Attachments(face.ended, self.served).files()
        manifest = view.manifest
        if manifest is not None and face.ended is not None:
            manifest = replace(manifest, digest=face.ended.evidence_digest, there=False)
        return replace(
            view,
            planned=face.planned,
            ended=face.ended,
            reason=None if view.reason is None else face.scrub(view.reason),
            corroboration_why=tuple(map(face.scrub_paths, view.corroboration_why)),
            objections=tuple(map(face.scrub, view.objections)),
            files=tuple(replace(file, original=face.originals.get(file.name)) for file in files),
            withheld=tuple(
                replace(file, digest=face.originals[file.name], there=False)
                for file in view.files
                if file.name in face.originals and file.name not in {one.name for one in files}
            ),
            manifest=manifest,
            masks=face.masks,
            neutral=True,
        )

    def detail(self, run: RunView) -> DetailView:
        """What the run's own page adds, read from its evidence."""
        files = Attachments(run.ended, self.served)
        report, rejected = files.report()
        # Of masked and of original bytes the same is read: ``publish.neutral`` makes sure of it.
        raw = files.read("session.raw", MAX_READ)
        harness = self._runs[run.run].planned.lock.agent.harness
        recorded = run.ended.report_rejected if isinstance(run.ended, AttemptEnded) else None
        return DetailView(
            report=report,
            report_rejected=recorded or rejected,
            steps=files.steps(),
            log=files.log("transcript.txt"),
            rerun_output=files.log("rerun.txt"),
            instructions=files.instructions(),
            packages=files.packages(),
            told=Told() if raw is None else read(harness, [raw]),
        )


def _state(end: AttemptEnded | AttemptFound | None) -> str:
    return "open" if end is None else "ended" if isinstance(end, AttemptEnded) else "found"


def agents_of(records: Sequence[Record]) -> list[AgentRef]:
    """Every agent of these records, in the order in which its attempts were planned."""
    planned = [record for record in records if isinstance(record, AttemptPlanned)]
    return [record.lock.agent for record in sorted(planned, key=lambda record: (record.at, record.run))]


def _judged(
    planned: AttemptPlanned, ended: AttemptEnded | AttemptFound | None, files: Attachments
) -> tuple[Judgement | None, str | None]:
    """The judgement and its reason; without the bytes that it needs there is none, and the reason says so."""
    if ended is None:
        return None, None
    for name in ("report.json", "rerun.txt"):
        if files.lost(name):
            return None, f"it cannot be judged: the evidence file {name} is not in the store as it was recorded"
    judged = judge(
        planned,
        ended,
        report_bytes=files.read("report.json"),
        rerun_output=files.read("rerun.txt"),
        read=files.read,
    )
    return judged, judged.reason or None


def reasons(found: Corroboration) -> tuple[str, ...]:
    """Why a claim's status is what it is, in sentences, each once."""
    further = (one.sentence for one in (*found.flags, *found.notes))
    return (found.reason, *(sentence for sentence in further if sentence not in found.reason))


def _score(score: Score, edition: int) -> ScoreView:
    rows = tuple(RowView(name, ROWS[name], getattr(score.rows, name), OUT_OF[name]) for name in OUT_OF)
    return ScoreView(score.edition, rows, score.total, score.outcome, counting=score.edition == edition)


def _subject(
    name: str, runs: Sequence[RunView], evidence: Evidence, review: Reviews[Edition, frozenset[str]]
) -> SubjectView:
    current = [run for run in runs if run.current]
    # Agents that are made not to pass test the rules; they say nothing of a project.
    tested = [run for run in current if run.planned.lock.agent.name not in REGRESSION]
    editions = sorted({run.edition for run in tested or current}, reverse=True)
    speaks = speaking([(run.edition, run.valid) for run in tested or current])
    verdicts = {
        edition: _verdict(
            edition, [run for run in tested if run.edition == edition], under=name in review.get(edition, ())
        )
        for edition in editions
    }
    last = current[-1]
    pinned = Attachments(last.ended, evidence).subject()
    facts, repository = pinned.get("facts", {}), pinned.get("repository", {})
    return SubjectView(
        name=name,
        kind=last.planned.lock.subject.kind,
        pin=last.planned.lock.subject.pin,
        licence=_text(facts, "licence"),
        summary=_text(pinned, "summary"),
        repository=_text(repository, "url"),
        runs=tuple(runs),
        earlier=sum(1 for run in runs if not run.current),
        others=tuple(said for edition, said in verdicts.items() if edition != speaks),
        **vars(verdicts[speaks]),
    )


def _verdict(edition: Edition, tested: Sequence[RunView], *, under: bool) -> VerdictView:
    """The verdict by the attempts of one edition alone: no rule reaches back to a run of another (methodology §14)."""
    aside = [run for run in tested if run.valid and run.never]
    deciders = deciding([run for run in tested if not run.never], aside)
    counted = [run for run in deciders if run.valid]
    said = str(verdict(deciders))
    return VerdictView(
        edition=edition,
        verdict=said,
        by=_deciding(said, counted),
        counted=len(counted),
        invalid=sum(1 for run in tested if not run.valid and run.state != "open"),
        under_review=under,
        unstable=_unstable(counted),
        aside=tuple(aside),
        rests_on_aside=bool(aside) and deciders is aside,
    )


def _edition(planned: AttemptPlanned) -> Edition:
    found = next((edition for edition in EDITIONS if edition == planned.lock.edition), None)
    if found is None:
        raise UsageError(
            f"run {planned.run} is of edition {planned.lock.edition}, which this installation does not know",
            todo="show it with the version of referee that made it",
        )
    return found


def _deciding(said: str, counted: Sequence[RunView]) -> RunView | None:
    """The run that decided the verdict: the first that passed as it says; of failures the best, the first of equals."""
    wanted = {"runs": "pass_full", "runs_with_mocks": "pass_mock"}.get(said)
    if wanted is None:
        return max(counted, key=lambda run: run.total or 0.0, default=None)
    return next(run for run in counted if run.outcome == wanted)


def _unstable(counted: Sequence[RunView]) -> tuple[str, ...]:
    totals: dict[str, list[float]] = {}
    for run in counted:
        if run.total is not None:
            totals.setdefault(run.agent.digest, []).append(run.total)
    names = {run.agent.digest: run.agent.label for run in counted}
    return tuple(names[digest] for digest, made in totals.items() if spread(made).unstable)


def _text(table: object, key: str) -> str | None:
    value = table.get(key) if isinstance(table, dict) else None
    return value if isinstance(value, str) and value else None
