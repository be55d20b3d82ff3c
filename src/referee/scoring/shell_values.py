"""What the variables of a command hold, as far as that is written out in the command itself."""

from __future__ import annotations

from tree_sitter import Node

from referee.scoring.shell_words import LAST_STATUS, UNKNOWN, Step, literal, said, text_of

_EXPANSIONS = {"simple_expansion", "expansion"}
_ALL = ("[@]", "[*]")
#: Longer values, characters, and longer lists are not followed: a command may double them again and again.
_LONGEST, _MOST = 8_192, 1_000


class Values:
    """The values so far.

    Args:
        later: also read loops over one value, arrays, positional parameters, ``read``, ``$(echo …)`` and splitting into
            words, which a harness that did not look at scripts did not read (methodology §14).
    """

    def __init__(self, *, later: bool) -> None:
        self._later = later
        self._values: dict[str, str] = {}
        self._arrays: dict[str, list[str]] = {}
        #: Words that some variable holds, one after the other: files among them may be run by its name.
        self.mentioned: list[str] = []

    def word(self, node: Node) -> str:
        """One word as the shell would see it."""
        return literal(node, self._values)

    def words(self, node: Node) -> list[str]:
        """The words that one word of the command comes to."""
        found = self._split(node)
        return found if len(found) <= _MOST else [UNKNOWN]

    def _split(self, node: Node) -> list[str]:
        if self._later:
            inner = _expanded(node)
            if inner is not None and inner.endswith(_ALL):
                return self._arrays.get(inner[:-3], [UNKNOWN])
            if inner is not None and inner in {"@", "*"}:
                return self._arrays.get("@", [UNKNOWN])
            if node.type in _EXPANSIONS or (node.type == "command_name" and _is_bare(node)):
                return self.word(node).split() or [""]
        return [self.word(node)]

    def assign(self, name: str, value: Node, inside: list[Step]) -> None:
        """An assignment.

        Args:
            name: the variable.
            value: what it is given.
            inside: the steps of commands within that.
        """
        written = self.word(value)
        if self._later and value.type == "array":
            self._arrays[name] = _few([word for child in value.named_children for word in self.words(child)])
            written = self._arrays[name][0] if self._arrays[name] else ""
            self.mentioned += self._arrays[name]
        elif self._later and value.type == "command_substitution":
            text = said(inside)
            written = UNKNOWN if text is None else text.strip()
        self._values[name] = UNKNOWN if written == LAST_STATUS or len(written) > _LONGEST else written

    def given(self, words: list[str], stdin: str | None) -> None:
        """What ``set --`` and ``read`` give to variables."""
        if not self._later:
            return
        if words[:1] == ["set"] and "--" in words:
            rest = _few(words[words.index("--") + 1 :])
            self._arrays["@"] = rest
            self.mentioned += rest
            self._values |= {str(number): word for number, word in enumerate(rest, start=1)}
        elif words[:1] == ["read"] and len(words) > 1 and not words[-1].startswith("-"):
            self._values[words[-1]] = UNKNOWN if stdin is None or len(stdin) > _LONGEST else stdin.strip()

    def goes_through(self, name: Node, over: list[Node]) -> None:
        """A loop: its variable is known where it goes through one value."""
        if self._later:
            every = _few([word for node in over for word in self.words(node)])
            self._values[text_of(name)] = every[0] if len(every) == 1 else UNKNOWN
            self.mentioned += every


def _few(words: list[str]) -> list[str]:
    return words if len(words) <= _MOST and all(len(word) <= _LONGEST for word in words) else [UNKNOWN, UNKNOWN]


def _expanded(node: Node) -> str | None:
    """The name in a word that is nothing but one expansion, quoted or not."""
    inner = (
        node.named_children[0] if node.type in {"string", "command_name"} and len(node.named_children) == 1 else node
    )
    if inner is not node and inner.type == "string":
        return _expanded(inner)
    if inner.type not in _EXPANSIONS or text_of(node).strip('"') != text_of(inner):
        return None
    return text_of(inner).strip("${}")


def _is_bare(node: Node) -> bool:
    return len(node.named_children) == 1 and node.named_children[0].type in _EXPANSIONS
