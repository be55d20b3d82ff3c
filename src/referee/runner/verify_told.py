"""What a built site tells beside its results: report, log, sizes, spending, identities; from its files alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from referee.core.records import AttemptEnded, AttemptFound
from referee.errors import CouldNotVerify, Finding
from referee.publish.attachments import Attachments
from referee.publish.spent import spent_document
from referee.scoring.money import Bill, add_up

_TODO = "get the site again from where it is published, and compare"


@contextmanager
def formed(name: str) -> Iterator[None]:
    """Reading a document of a site: one without the form of its schema is a finding, not a fault of ours.

    Raises:
        Finding: it has another form.
    """
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError, OSError) as exc:
        raise Finding(f"{name} has not the form that its schema says ({type(exc).__name__})", todo=_TODO) from exc


def check_age(index: Mapping[str, Any]) -> None:
    """Whether a site tells what it takes to make its results again.

    Raises:
        CouldNotVerify: it was built before each edition had a board of its own: none of its runs says its edition.
    """
    if index["runs"] and not any("edition" in run for run in index["runs"] if run["run"]):
        raise CouldNotVerify(
            "the site was built before each edition had a board of its own, so its results cannot be made again here",
            todo="check it with the program that built it, or ask for the site built anew",
        )


class _Served:
    """The evidence of a site, by digest (``protocols.KeptEvidence``)."""

    def __init__(self, site: Path) -> None:
        self._site = site

    def open(self, digest: str) -> BinaryIO:
        """Open a file."""
        return self.path(digest).open("rb")

    def path(self, digest: str) -> Path:
        """Where a file lies."""
        digits = digest.rpartition(":")[2]
        return self._site / "evidence" / digits[:2] / f"{digits}.bin"


def told_of_run(document: Mapping[str, Any], end: AttemptEnded | AttemptFound, site: Path) -> str | None:
    """What ``run.json`` says otherwise than the files that it names; None: nothing.

    Args:
        document: the run's document, whose files' digests hold.
        end: the end that it tells, which is that of its ``facts.json``.
        site: the site's directory.
    """
    listed = [(one["name"], one["digest"], one["bytes"]) for one in document["files"]]
    if listed != [(ref.name, ref.digest, ref.bytes) for ref in end.evidence]:
        return "the files that it lists are not those of its end"
    if end.evidence_digest != document["evidence"]:
        return "its end names another manifest than the one beside its numbers"
    files = Attachments(end, _Served(site))
    report, rejected = files.report()
    recorded = end.report_rejected if isinstance(end, AttemptEnded) else None
    told = (None if report is None else report.model_dump(mode="json"), recorded or rejected)
    if (document["report"], document["report_rejected"]) != told:
        return "run.json tells another report than its report.json"
    phases = [{"phase": one.text, "began": one.began, "seconds": one.took, "error": one.fault} for one in files.steps()]
    if document["phases"] != phases:
        return "run.json tells other phases than its harness.jsonl"
    spent = end.spent_usd if isinstance(end, AttemptEnded) else None
    if (document["spent"], document["spending"]) != (spent, spent_document(end)):
        return "run.json tells another sum that it spent than its end"
    return None


def check_identities(documents: Sequence[Mapping[str, Any]], board: Mapping[str, Any]) -> None:
    """Each line of each board has the identity, and the sum that its runs tell.

    Args:
        documents: the runs at their subject's latest pin that have ended.
        board: ``board.json``.

    Raises:
        Finding: one has another.
    """
    for one in documents:
        agent = one["lock"]["agent"]
        if (agent["label"], agent["digest"], agent["on_pages"]) != (
            one["agent"], one["agent_digest"], one["agent_on_pages"],
        ):  # fmt: skip
            raise Finding(f"run {one['run']}: its lock tells another agent than its result", todo=_TODO)
    boards = [board, *board.get("other_editions", ())]
    for shown in boards:
        for line in shown["standings"]:
            label = line["agent"]["label"]
            own = [one for one in documents if (one["edition"], one["agent"]) == (shown["edition"], label)]
            if [line["agent"]] * len(own) != [one["lock"]["agent"] for one in own]:
                raise Finding(f"board.json tells another configuration of {label} than its runs", todo=_TODO)
            spent = add_up([_bill(one) for one in own if one["spending"] is not None])
            if line["spent"] != (None if spent is None else asdict(spent)):
                raise Finding(f"board.json tells another sum that {label} spent than its runs", todo=_TODO)


def _bill(run: Mapping[str, Any]) -> Bill:
    spending = run["spending"]
    return Bill(spending["spent_usd"], counted=run["valid"] and not run["never_publishable"], capped=spending["capped"])
