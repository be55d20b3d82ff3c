"""What an attempt has shown so far: survives whatever ends it."""

from __future__ import annotations

from dataclasses import dataclass

from referee.adapters.recorder import Recorded
from referee.core.failure import CLAIMS_NOTHING, FAILURES, Cause
from referee.core.records import NetworkFacts, ObservedFacts, QuietFacts, RerunFacts
from referee.core.report import Report
from referee.core.spending import SpendingFacts


@dataclass
class Seen:
    """The facts of one attempt as they come in, and the first cause that cut it short."""

    cause: Cause | None = None
    detail: str = ""
    recorded: Recorded | None = None
    quiet: QuietFacts | None = None
    spending: SpendingFacts | None = None
    report: Report | None = None
    report_rejected: str | None = None
    rerun: RerunFacts | None = None
    observed: ObservedFacts | None = None
    network: NetworkFacts | None = None
    machine: dict[str, object] | None = None

    def end(self, cause: Cause, detail: str = "") -> None:
        """Note the first cause; later ones are its consequences."""
        if self.cause is None:
            self.cause = cause
            self.detail = detail or FAILURES[cause].sentence

    def found_out(self, cause: Cause, detail: str = "") -> None:
        """Note a cause that explains, or outweighs, the one that was noted first."""
        self.cause = None
        self.end(cause, detail)

    @property
    def would_count_as_no_pass(self) -> bool:
        """Whether the attempt stands as a measurement of an agent that claims no pass.

        At the time limit it does whatever its report says: a timeout scores 0 in every row (methodology §6).
        """
        if self.cause in CLAIMS_NOTHING or self.cause is Cause.DEADLINE:
            return True
        return self.cause is None and (self.report is None or self.report.test_depth == "tier3_none")

    @property
    def may_lack_a_network(self) -> bool:
        """Whether a network of ours that is down may explain it: no pass is claimed, or the claim failed when it was
        run again.
        """
        again = self.rerun
        failed = again is not None and again.could_not_run is None and (again.timed_out or again.exit_status != 0)
        return self.would_count_as_no_pass or (self.cause is None and failed)
