"""The host-side recorder: raw bytes and their timing are primary, everything else is derived."""

from referee.adapters.recorder.derive import (
    CAST_NAME,
    TRANSCRIPT_NAME,
    Derived,
    RecordingFiles,
    chunks,
    derive,
)
from referee.adapters.recorder.hostpty import HostPtySession
from referee.adapters.recorder.record import Caps, Control, End, Recorded, record
from referee.adapters.recorder.writer import RAW_NAME, TIMING_NAME

__all__ = [
    "CAST_NAME",
    "RAW_NAME",
    "TIMING_NAME",
    "TRANSCRIPT_NAME",
    "Caps",
    "Control",
    "Derived",
    "End",
    "HostPtySession",
    "Recorded",
    "RecordingFiles",
    "chunks",
    "derive",
    "record",
]
