"""What the linter says: one sentence that names the case. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Objection:
    """One thing that is wrong with a case, an arm, a toolset or a subset.

    Args:
        case: the id of the case; of an objection to something else, its name.
        rule: a stable name.
        sentence: what is wrong, naming the case.
        known: the case declares why it stands all the same (``known_objection``): it may stay, unranked.
    """

    case: str
    rule: str
    sentence: str
    known: bool = False

    def document(self) -> dict[str, object]:
        """The objection as JSON."""
        return {"case": self.case, "rule": self.rule, "sentence": self.sentence, "known": self.known}
