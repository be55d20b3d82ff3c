"""The public face of a run of a named agent: nothing in it tells which agent made it (methodology §1, §11).

Of its records: the agent is its letter, the model is withheld, and so is what of the machine would let someone try
configurations until a digest fits. Of its evidence: the recording is served as a copy with banners masked, and cast and
transcript are derived from that copy; documents of ours are served as copies without names; all else, and with it what
the agent and the project did, left and printed, is served as it is: a name that occurs there is not censored. Originals
stay in the store; each is committed to by a salted fingerprint.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from referee.core.branding import SHORTEST_NAME, Mask, Masker, Rules
from referee.core.canonical import canonical_bytes, digest_of_bytes
from referee.core.cast import cast
from referee.core.failure import FAILURES, Cause
from referee.core.records import AgentRef, AttemptEnded, AttemptFound, AttemptPlanned, EvidenceRef, ListenerFacts
from referee.core.sessions.reading import read
from referee.core.transcript import transcript
from referee.errors import Finding, UsageError
from referee.protocols import AGENT_HOME, Evidence
from referee.publish.mapping import Named

WITHHELD = "withheld"
MASKED_NAME = "masked.json"
MASKED_SCHEMA = "referee.masked/1"

#: What of a machine's facts is public: the rest holds its ids, which nobody can guess and which guard the digests.
_OF_MACHINE = {"used", "limits"}
#: Written by the agent or the project, or the same for every agent: served as it is.
_AS_IT_IS = {
    *(
        "session.timing",
        "report.json",
        "rerun.txt",
        "scripts.json",
        "control.txt",
        "challenge-1.txt",
        "challenge-2.txt",
    ),
    *("challenge-3.txt", "challenge-4.txt", "mission.json", "subject.toml", "packages.json", "commands.json"),
    *("replay.txt", "replay.json"),
}
#: A machine's id of 256 random bits: with it in ``facts.json``, nobody can try what a manifest may list.
_UNGUESSED = re.compile(r"[0-9a-f]{64}")
#: Where the agent's own program lies: the only paths in what was observed that may tell it.
_OWN_PATH = re.compile(rf"{re.escape(AGENT_HOME)}/[^\s'\"]*")
#: What of an exchange with the model tells which model or program it was: tokens beside a cost give the price.
_OF_EXCHANGE = {"model", "path", "dialect", "price", "usage", "upper_usd"}
_PIECE = 1 << 20


@dataclass(frozen=True)
class Brand:
    """What tells an agent: how its recording is masked, and the words that stand for it in documents of ours."""

    rules: Rules
    words: tuple[str, ...]


class Copies(Evidence):
    """The store, and beside it copies made for the public, by digest; they go with this object."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence

    @cached_property
    def _directory(self) -> tempfile.TemporaryDirectory[str]:
        return tempfile.TemporaryDirectory(prefix="referee-public-")

    def keep(self, name: str, source: Path | bytes, *, given_up: bool = False) -> EvidenceRef:  # noqa: ARG002 — the seam's
        """Keep a copy."""
        data = source if isinstance(source, bytes) else source.read_bytes()
        digest = digest_of_bytes(data)
        place = self._place(digest)
        if not place.exists():
            place.write_bytes(data)
        return EvidenceRef(name=name, digest=digest, bytes=len(data))

    def keep_pieces(self, name: str, pieces: Iterable[bytes]) -> EvidenceRef:
        """Keep a copy that comes in pieces."""
        draft = Path(self._directory.name) / "draft"
        sha, size = hashlib.sha256(), 0
        with draft.open("wb") as file:
            for piece in pieces:
                file.write(piece)
                sha.update(piece)
                size += len(piece)
        digest = f"sha256:{sha.hexdigest()}"
        draft.replace(self._place(digest))
        return EvidenceRef(name=name, digest=digest, bytes=size)

    def open(self, digest: str) -> BinaryIO:
        """Open a copy, else a blob of the store."""
        place = self._place(digest)
        return place.open("rb") if place.is_file() else self._evidence.open(digest)

    def path(self, digest: str) -> Path:
        """Where a copy lies, else a blob of the store."""
        place = self._place(digest)
        return place if place.is_file() else self._evidence.path(digest)

    def _place(self, digest: str) -> Path:
        return Path(self._directory.name) / re.sub(r"[^0-9a-f]", "-", digest.rpartition(":")[2])


@dataclass(frozen=True)
class Face:
    """A run as the public sees it: records, evidence that is served, originals by name, the log of what was masked."""

    planned: AttemptPlanned
    ended: AttemptEnded | AttemptFound | None
    originals: dict[str, str]
    masks: tuple[Mask, ...]
    scrub: Callable[[str], str]
    scrub_paths: Callable[[str], str]


class Neutralizer:
    """Makes public faces.

    Args:
        copies: where served copies are kept.
        brand_of: what tells an agent.
    """

    def __init__(self, copies: Copies, brand_of: Callable[[AgentRef], Brand]) -> None:
        self._copies = copies
        self._brand_of = brand_of
        self._faces: dict[str, Face] = {}

    def face(self, named: Named, planned: AttemptPlanned, ended: AttemptEnded | AttemptFound | None) -> Face:
        """The public face of one run of a named agent."""
        known = self._faces.get(planned.run)
        if known is None or (known.ended is None) != (ended is None):
            known = _Making(self._copies, self._brand_of(planned.lock.agent), named, planned).face(ended)
            self._faces[planned.run] = known
        return known


class _Making:
    def __init__(self, copies: Copies, brand: Brand, named: Named, planned: AttemptPlanned) -> None:
        self._copies = copies
        self._brand = brand
        self._named = named
        self._planned = planned
        #: Why a key could not be made names the upstream, which is the workspace's own word for the maker.
        self._unsaid: tuple[str, ...] = ()
        words = sorted({word for word in brand.words if len(word) >= SHORTEST_NAME}, key=len, reverse=True)
        joined = "|".join(re.escape(word) for word in words)
        self._words = re.compile(rf"(?<![A-Za-z0-9])(?:{joined})(?![A-Za-z0-9])", re.IGNORECASE) if words else None

    def face(self, ended: AttemptEnded | AttemptFound | None) -> Face:
        agent = self._planned.lock.agent
        neutral = AgentRef(
            name=self._named.label, version=WITHHELD, digest=self._named.commitment(), tier=agent.tier,
            cap_usd=agent.cap_usd,
        )  # fmt: skip
        lock = self._planned.lock.model_copy(
            update={"agent": neutral, "not_publishable": tuple(map(self.scrub, self._planned.lock.not_publishable))}
        )
        planned = self._planned.model_copy(update={"lock": lock})
        if ended is None:
            return Face(planned, None, {}, (), self.scrub, self.scrub_paths)
        if ended.cause is Cause.KEY_UNAVAILABLE and ended.detail:
            detail = ended.detail
            said = f"{FAILURES[Cause.KEY_UNAVAILABLE].sentence}: {detail}"
            self._unsaid = (said, detail, json.dumps(detail, ensure_ascii=False)[1:-1])
        told = ended.model_copy(update={**self._facts(ended), "evidence_digest": self._manifest(ended)})
        served, originals, masks = self._evidence(planned, told, ended)
        public = told.model_copy(update={"evidence": served})
        return Face(planned, public, originals, masks, self.scrub, self.scrub_paths)

    def _manifest(self, ended: AttemptEnded | AttemptFound) -> str:
        """The digest that stands beside the numbers; salted where all that the manifest covers can be guessed."""
        machine = ended.machine if isinstance(ended, AttemptEnded) else {}
        guarded = _UNGUESSED.fullmatch(str(machine.get("container", ""))) is not None or not ended.evidence_digest
        return ended.evidence_digest if guarded else self._named.sealed(ended.evidence_digest)

    def scrub(self, text: str) -> str:
        """A sentence of ours without the words that tell the agent."""
        for told in self._unsaid:
            text = text.replace(told, FAILURES[Cause.KEY_UNAVAILABLE].sentence)
        return text if self._words is None else self._words.sub(self._named.label, text)

    def scrub_paths(self, text: str) -> str:
        """A sentence that quotes what was observed: only paths of the agent's own program tell it."""
        return _OWN_PATH.sub(lambda path: self.scrub(path[0]), text)

    def _listener(self, one: ListenerFacts) -> ListenerFacts:
        """The agent's own process without names; of any other only what lies in the agent's own place."""
        own = (one.executable or "").startswith(f"{AGENT_HOME}/")
        scrub = self.scrub if own else self.scrub_paths
        return one.model_copy(
            update={
                "executable": None if one.executable is None else scrub(one.executable),
                "argv": tuple(map(scrub, one.argv)),
                "cwd": None if one.cwd is None else scrub(one.cwd),
            }
        )

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.scrub(value)
        if isinstance(value, dict):
            return {key: self._value(one) for key, one in value.items()}
        return [self._value(one) for one in value] if isinstance(value, list | tuple) else value

    def _facts(self, ended: AttemptEnded | AttemptFound) -> dict[str, Any]:
        if isinstance(ended, AttemptFound):
            return {"detail": self.scrub(ended.detail), "reaped": tuple(map(self.scrub, ended.reaped))}
        found: dict[str, Any] = {
            "detail": self.scrub(ended.detail),
            "machine": {key: value for key, value in ended.machine.items() if key in _OF_MACHINE},
        }
        for name in ("quiet", "network"):
            fact = getattr(ended, name)
            if fact is not None:
                found[name] = type(fact).model_validate(self._value(fact.model_dump(mode="json")))
        if ended.spending is not None:
            hidden = {"model": WITHHELD, "key": WITHHELD, "price": None, "how": self.scrub(ended.spending.how)}
            found["spending"] = ended.spending.model_copy(update=hidden)
        if ended.observed is not None:
            listening = {
                name: tuple(map(self._listener, ports))
                for name in ("listening", "listening_in_rerun")
                if (ports := getattr(ended.observed, name)) is not None
            }
            found["observed"] = ended.observed.model_copy(update=listening)
        return found

    def _evidence(
        self, planned: AttemptPlanned, told: AttemptEnded | AttemptFound, ended: AttemptEnded | AttemptFound
    ) -> tuple[tuple[EvidenceRef, ...], dict[str, str], tuple[Mask, ...]]:
        served: list[EvidenceRef] = []
        originals: dict[str, str] = {}
        recording, masks = self._recording({ref.name: ref for ref in ended.evidence})
        for ref in ended.evidence:
            copy: EvidenceRef | None = ref
            if ref.name in recording:
                copy = recording[ref.name]
            elif ref.name == "lock.json":
                copy = self._copies.keep(ref.name, public_lock(planned))
            elif ref.name == "facts.json" and isinstance(told, AttemptEnded):
                copy = self._copies.keep(ref.name, public_facts(told))
            elif ref.name not in _AS_IT_IS:
                copy = self._document(ref)
            if copy is None or copy.digest != ref.digest:
                originals[ref.name] = self._named.sealed(ref.digest)
            if copy is not None:
                served.append(copy)
        if recording:
            data = canonical_bytes(masked_document(self._planned.run, masks))
            served.append(self._copies.keep(MASKED_NAME, data))
        return tuple(served), originals, masks

    def _recording(self, refs: dict[str, EvidenceRef]) -> tuple[dict[str, EvidenceRef | None], tuple[Mask, ...]]:
        """The served recording and what is derived from it; nothing where masking would touch what the agent did."""
        raw, timing = refs.get("session.raw"), refs.get("session.timing")
        names = [name for name in ("session.raw", "session.cast", "transcript.txt") if name in refs]
        nothing: dict[str, EvidenceRef | None] = dict.fromkeys(names)
        if raw is None or timing is None:
            return nothing, ()
        masker = Masker(self._brand.rules)
        try:
            copy = self._copies.keep_pieces("session.raw", masker.masked(self._pieces(raw.digest)))
            harness = self._planned.lock.agent.harness
            if masker.masks and read(harness, self._pieces(raw.digest)) != read(harness, self._pieces(copy.digest)):
                return nothing, ()
            made: dict[str, EvidenceRef | None] = {"session.raw": copy}
            for name, derive in (("session.cast", cast), ("transcript.txt", transcript)):
                if name in refs:
                    pieces = derive(self._pieces(copy.digest), self._pieces(timing.digest))
                    made[name] = self._copies.keep_pieces(name, pieces)
        except (Finding, UsageError, OSError):
            return nothing, ()
        return made, tuple(masker.masks)

    def _document(self, ref: EvidenceRef) -> EvidenceRef | None:
        """A document of ours without names; the file itself where it has none."""
        try:
            data = b"".join(self._pieces(ref.digest))
        except (Finding, UsageError, OSError):
            return ref
        text = data.decode("utf-8", "surrogateescape")
        if ref.name == "exchanges.jsonl":
            text = "".join(_exchange(line) for line in text.splitlines())
        neutral = self.scrub(text).encode("utf-8", "surrogateescape")
        return ref if neutral == data else self._copies.keep(ref.name, neutral)

    def _pieces(self, digest: str) -> Iterator[bytes]:
        with self._copies.open(digest) as blob:
            while piece := blob.read(_PIECE):
                yield piece


def public_lock(planned: AttemptPlanned) -> bytes:
    """``lock.json`` as it is served."""
    lock = planned.lock.model_dump(mode="json", exclude_none=True)
    return canonical_bytes({"schema": "referee.public-lock/1", "run": planned.run, **lock})


def public_facts(ended: AttemptEnded) -> bytes:
    """``facts.json`` as it is served."""
    facts = ended.model_dump(mode="json", exclude={"kind", "at", "evidence", "evidence_digest"}, exclude_none=True)
    return canonical_bytes({"schema": "referee.public-facts/1", **facts})


def masked_document(run: str, masks: Iterable[Mask]) -> dict[str, Any]:
    """``masked.json``: each place that was masked, by kind and number of its rule; the rules themselves would tell."""
    return {"schema": MASKED_SCHEMA, "run": run, "masks": [mask.model_dump(mode="json") for mask in masks]}


def _exchange(line: str) -> str:
    try:
        value = json.loads(line)
    except ValueError:
        return ""
    kept = {key: one for key, one in value.items() if key not in _OF_EXCHANGE}
    return json.dumps(kept, ensure_ascii=False, sort_keys=True) + "\n"
