"""Every error a user can meet, drawn as a tree; each class carries its exit code.

::

    RefereeError                      exit  what it means to the caller
    ├── UsageError                      2   the command line, a file or a setting is not as it must be
    │   ├── ConfigError                 2   a TOML file of the workspace cannot be used
    │   └── ReportRejected              2   an agent's report breaks the report's schema
    ├── Finding                         1   something was checked and does not hold
    │   └── DigestMismatch              1   bytes are not the bytes that were pinned
    ├── CouldNotVerify                  4   no measurement came about; nothing is said about the subject
    │   ├── EngineUnavailable           4   no container engine answers
    │   ├── SourceUnreachable           4   the subject could not be fetched
    │   ├── EnvironmentUnavailable      4   the environment image is missing or could not be built
    │   ├── MachineFault                4   the disposable machine failed for a reason of ours
    │   ├── KeyUnavailable              4   the run's model key could not be made: try again later
    │   └── AgentUnavailable            4   an agent's program could not be installed
    ├── NothingMatched                  5   a name matches no subject, agent, run or file
    └── InternalError                   3   a fault of the referee itself

A message is one sentence that says what is wrong; ``todo`` is one that says what to do next.
"""

from __future__ import annotations

EXIT_PASS = 0
EXIT_FINDING = 1
EXIT_USAGE = 2
EXIT_INTERNAL = 3
EXIT_COULD_NOT_VERIFY = 4
EXIT_NOTHING_MATCHED = 5
EXIT_INTERRUPTED = 130


class RefereeError(Exception):
    """Root of the tree: a sentence on what is wrong and one on what to do.

    Args:
        message: one sentence, what is wrong.
        todo: one sentence, what the reader can do next; empty when there is nothing to do.
    """

    exit_code: int = EXIT_INTERNAL

    def __init__(self, message: str, *, todo: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.todo = todo


class UsageError(RefereeError):
    """The command line, a file or a setting is not as it must be."""

    exit_code = EXIT_USAGE


class ConfigError(UsageError):
    """A TOML file of the workspace cannot be used."""


class ReportRejected(UsageError):
    """An agent's report breaks the report's schema; the message names the first breach."""


class Finding(RefereeError):
    """Something was checked and does not hold."""

    exit_code = EXIT_FINDING


class DigestMismatch(Finding):
    """Bytes are not the bytes that were pinned."""


class CouldNotVerify(RefereeError):
    """No measurement came about; nothing is said about the subject."""

    exit_code = EXIT_COULD_NOT_VERIFY


class EngineUnavailable(CouldNotVerify):
    """No container engine answers."""


class SourceUnreachable(CouldNotVerify):
    """The subject could not be fetched."""


class EnvironmentUnavailable(CouldNotVerify):
    """The environment image is missing or could not be built."""


class MachineFault(CouldNotVerify):
    """The disposable machine failed for a reason of ours."""


class KeyUnavailable(CouldNotVerify):
    """The run's model key could not be made; the run is not started, and a shared key is never used instead."""


class AgentUnavailable(CouldNotVerify):
    """An agent's program could not be installed, or is not what its lock pins."""


class NothingMatched(RefereeError):
    """A name matches no subject, agent, run or file."""

    exit_code = EXIT_NOTHING_MATCHED


class InternalError(RefereeError):
    """A fault of the referee itself: please report it."""

    exit_code = EXIT_INTERNAL
