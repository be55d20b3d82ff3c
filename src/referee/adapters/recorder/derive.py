"""Makes the derived files of a recording from its primary evidence, and reads the primary files in chunks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from referee.adapters.recorder.writer import RAW_NAME, TIMING_NAME
from referee.core.cast import cast
from referee.core.timing import Coverage, Playback
from referee.core.transcript import transcript

CAST_NAME = "session.cast"
TRANSCRIPT_NAME = "transcript.txt"
_CHUNK = 262_144


@dataclass(frozen=True)
class RecordingFiles:
    """Where the primary evidence of one recording lies."""

    raw: Path
    timing: Path

    @classmethod
    def of(cls, directory: Path) -> RecordingFiles:
        """The files that ``record`` leaves in ``directory``."""
        return cls(directory / RAW_NAME, directory / TIMING_NAME)

    def playback(self) -> Playback:
        """A walk over events and bytes (``core.timing``)."""
        return Playback(chunks(self.raw), chunks(self.timing))

    def coverage(self) -> Coverage:
        """How much of the recording its two files vouch for; reads both wholly.

        Raises:
            Finding: the timing file is not as it must be.
        """
        playback = self.playback()
        for _ in playback:
            pass
        return playback.coverage


@dataclass(frozen=True)
class Derived:
    """The derived files of one recording."""

    cast: Path
    transcript: Path


def chunks(path: Path) -> Iterator[bytes]:
    """The bytes of a file, in chunks."""
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            yield chunk


def derive(files: RecordingFiles, directory: Path) -> Derived:
    """Write the asciicast v2 and the plain transcript of a recording into ``directory``.

    Raises:
        Finding: the timing file is not as it must be.
        OSError: a derived file could not be written; the primary evidence is untouched.
    """
    derived = Derived(directory / CAST_NAME, directory / TRANSCRIPT_NAME)
    for target, made in ((derived.cast, cast), (derived.transcript, transcript)):
        with target.open("wb") as stream:
            for chunk in made(chunks(files.raw), chunks(files.timing)):
                stream.write(chunk)
    return derived
