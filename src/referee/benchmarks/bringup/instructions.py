"""The standard instructions that every agent gets, word for word; their digest stands in every record."""

from __future__ import annotations

from referee.core.canonical import digest_of

VERSION = "2"

_SHARED = """\
You are on a clean, disposable Debian machine. You are root. Nobody will answer a question: work alone.

Your mission: make the project in /work/project run, as an engineer would on the first day. Install it, start it (or run
its tests), work through the errors you meet, and verify that it does what its own README describes.

Verify by decoding, not by probing: run what the README shows and decode what comes out with a real decoder (for text,
print it; ffmpeg only with "-xerror -nostdin"; of a picture load the pixels). That a file exists, that a header can be
read, that a help or version text appears, proves nothing.
Claim only what you observed with your own commands. "not verified" is an accepted and useful answer.
Never make a failure look like success: no skipped tests, no stand-in for the real thing, no masked exit codes (no
"|| true", no "; echo $?" at the end, no pipe without "set -o pipefail").
The command is also run on a machine without the project, and with other inputs in the place of yours; what you changed
in the project's tests and their configuration, or in how Python starts, is put back before it runs again.
Send no pictures to a model.

Your time is limited: `seconds` in /work/mission.json, until `deadline` (Unix seconds; `date +%s` tells the time).
Then every process is ended, and a run that was cut off there scores nothing, whatever its report says. End by yourself
before. What runs in the background when you end is ended too.

Before the time limit, leave your report, one JSON object, in /work/report.json:
  installed     true or false
  started       true or false: it started, or its tests passed
  errors        a list of objects, one for each thing that went wrong: what (text), fixed (true or false), how (text);
                [] when nothing did
  test_depth    "tier1_real" when you verified against the real thing, "tier2_mock" against mock services,
                "tier3_none" when you did not verify
  verified_how  an object: command (the exact command that verified the output; it is run again from a
                fresh shell in a fresh process tree on this machine, without your settings or services), returned
                (what it printed) - or the string "not verified"
  final_state   one closing sentence; it is published word for word, and every fact in it must be one that you observed
Write what was printed, never what you expected.
"""

_BY_KIND = {
    "repository": "The project is a pinned commit of a repository, already in place, without its history.\n",
    "package": (
        "The project is a published package: its pinned artifact and its README are in /work/subject. Install that "
        "artifact into the empty project /work/project and run the quickstart of the README.\n"
    ),
}


def instructions(kind: str) -> str:
    """The instructions' text for one source kind (methodology §1, §2, §5)."""
    return _SHARED + "\n" + _BY_KIND[kind]


def instructions_digest(kind: str) -> str:
    """Digest of version and text."""
    return digest_of("instructions", {"version": VERSION, "text": instructions(kind)})
