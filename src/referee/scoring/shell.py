"""A shell command taken apart by a grammar (tree-sitter-bash): its simple commands, in the order of its text.

Only the shape is read; nothing is run, and what the shape cannot tell (a word made at run time) stays ``UNKNOWN``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tree_sitter import Node

from referee.scoring.by_itself import speaks
from referee.scoring.lost_failures import Judge, LostFailures
from referee.scoring.shell_files import RunFiles
from referee.scoring.shell_grammar import SEQUENCES, STATEMENTS, parsed, statements
from referee.scoring.shell_values import Values
from referee.scoring.shell_words import (
    UNKNOWN,
    Mode,
    Step,
    bare,
    nested_shell,
    said,
    switched,
    text_of,
)

_MAX_NESTING = 8
#: A command that comes to more simple commands than these (functions and scripts that call each other) is not read on.
_MOST_STEPS = 20_000
#: The same for an attempt of a harness that did not look at scripts, which knew no such bound.
_MOST_STEPS_THEN = 1_000_000
#: The same for one function of a file that a command reads in.
_MOST_OF_A_FUNCTION = 1_000


@dataclass
class Script:
    """A command taken apart. ``traps`` holds ways in which a failure would be lost, by name, in order of finding.

    ``sets`` are the variables that it sets, with their values as far as they are written out; ``mentioned`` words of
    loops, arrays and positional parameters, any of which a variable may come to.
    """

    steps: list[Step] = field(default_factory=list)
    traps: list[str] = field(default_factory=list)
    sets: list[tuple[str, str]] = field(default_factory=list)
    mentioned: list[str] = field(default_factory=list)
    parsed: bool = True

    def trap(self, name: str) -> None:
        """Note a way in which a failure would be lost, once."""
        if name not in self.traps:
            self.traps.append(name)


def take_apart(command: str, role: Judge, scripts: Mapping[str, str] | None = None) -> Script:
    """Read ``command``.

    Args:
        command: shell text.
        scripts: texts of files that the command runs, by the word that names each. None for an attempt of a harness
            that did not look: then it is read exactly as it was then (methodology §14).
        role: says what a step is: ``works`` for one whose failure matters, ``says`` for one that cannot fail,
            ``fails`` for one that always does, ``keeps`` for one that hands on the status before it, or any other word.
    """
    script = Script()
    reader = _Reader(script, role, scripts)
    try:
        reader.text(command, Mode(), 0)
    except RecursionError:
        script.parsed = False
    script.mentioned += reader.values.mentioned
    return script


class _Reader:
    def __init__(self, script: Script, role: Judge, scripts: Mapping[str, str] | None) -> None:
        self.script = script
        self.run_files = RunFiles(scripts or {}, self._roles)
        self.lost = LostFailures(self._trap, role)
        self.later = scripts is not None
        self.most = _MOST_STEPS if self.later else _MOST_STEPS_THEN
        self.role = role
        self.values = Values(later=scripts is not None)
        self.functions: dict[str, Node] = {}
        self.sourced: dict[str, Node] = {}
        self.spoken: dict[str, list[Step] | None] = {}
        self.depth = 0
        self.read = 0

    def _trap(self, name: str) -> None:
        self.script.trap(name)  # of the script that is read now: a function of another file has its own

    def text(self, command: str, mode: Mode, depth: int) -> list[Step]:
        """Read shell text; return the steps found in it."""
        root = parsed(command) if depth <= _MAX_NESTING else None
        if root is None:
            self.script.parsed = False
            return []
        self.depth, outer = depth, self.depth
        begin = len(self.script.steps)
        self.sequence(root, mode)
        self.depth = outer
        return self.script.steps[begin:]

    def sequence(self, node: Node, mode: Mode) -> Mode:
        """Statements one after the other: all but the last lose their status, unless ``set -e``."""
        groups: list[list[Step]] = []
        for statement, background in statements(node):
            steps = self.statement(statement, mode, background=background)
            mode = switched(steps, mode)
            groups.append(steps)
        if not mode.errexit:
            self.lost.behind_others(groups)
        return mode

    def statement(self, node: Node, mode: Mode, *, background: bool = False) -> list[Step]:
        """Read one statement; return its steps."""
        begin = len(self.script.steps)
        reader = getattr(self, f"_{node.type}", None) if node.type in STATEMENTS else None
        if reader is not None:
            reader(node, mode)
        elif node.type in SEQUENCES:
            self.sequence(node, mode)
        else:
            for child in node.named_children:
                if child.type in STATEMENTS or child.type in SEQUENCES:
                    self.statement(child, mode)
                else:
                    self._substitutions(child, mode)
        if background:
            steps = self.script.steps
            steps[begin:] = [replace(step, background=True) for step in steps[begin:]]
        return self.script.steps[begin:]

    def _list(self, node: Node, mode: Mode) -> None:
        left, right = node.named_children[0], node.named_children[-1]
        before = self.statement(left, mode)
        after = self.statement(right, switched(before, mode) if self.later else mode)
        if any(child.type == "||" for child in node.children):
            self.lost.by_fallback(before, after)

    def _pipeline(self, node: Node, mode: Mode) -> None:
        parts: list[list[Step]] = []
        for part in node.named_children:
            if part.type != "comment":
                fed = said(parts[-1]) if parts else None
                begin = len(self.script.steps)
                self._body(part, mode, fed)
                parts.append(self.script.steps[begin:])
        self.lost.in_pipe(parts, mode)

    def _negated_command(self, node: Node, mode: Mode) -> None:
        begin = len(self.script.steps)
        for child in node.named_children:
            self.statement(child, mode)
        in_condition = node.parent is not None and node.parent.type == "while_statement"
        if not in_condition:
            self.lost.by_negation(self.script.steps[begin:])

    def _test_command(self, node: Node, mode: Mode) -> None:
        self._substitutions(node, mode)
        self.script.steps.append(Step(("[",)))

    def _if_statement(self, node: Node, mode: Mode) -> None:
        branches: list[Step] = []
        condition: list[Step] = []
        for index, child in enumerate(node.children):
            if child.is_named:
                into = condition if node.field_name_for_child(index) == "condition" else branches
                into += self.statement(child, mode)
        self.lost.in_condition(condition, branches)

    def _for_statement(self, node: Node, mode: Mode) -> None:
        body, name = node.child_by_field_name("body"), node.child_by_field_name("variable")
        for child in node.named_children:
            if child not in {body, name}:
                self._substitutions(child, mode)
        if name is not None:
            self.values.goes_through(name, [child for child in node.named_children if child not in {body, name}])
        if body is not None:
            self.statement(body, mode)

    def _function_definition(self, node: Node, _mode: Mode) -> None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None:
            self.functions[self._word(name)] = body

    def _variable_assignment(self, node: Node, mode: Mode) -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is not None and value is not None:
            self._set(node)
            self.values.assign(self._word(name), value, self._substitutions(value, mode, lost=False))

    def _declaration_command(self, node: Node, mode: Mode) -> None:
        for child in node.named_children:
            self.statement(child, mode)
        self.script.steps.append(Step(("export",)))

    def _redirected_statement(self, node: Node, mode: Mode) -> None:
        body = node.child_by_field_name("body")
        begin = len(self.script.steps)
        redirects = [child for child in node.named_children if child.type.endswith("redirect")]
        feeds = [text for redirect in redirects if (text := self._fed(redirect)) is not None]
        writes = tuple(target for redirect in redirects if (target := self._target(redirect)))
        if body is not None:
            self._body(body, mode, feeds[-1] if feeds else None)
        steps = self.script.steps
        if writes:
            steps[begin:] = [replace(step, writes=step.writes + writes) for step in steps[begin:]]
            self.run_files.wrote(writes, said(steps[begin:]))
        for redirect in redirects:
            if redirect.type == "heredoc_redirect":
                self._after_heredoc(redirect, steps[begin:], mode)

    def _body(self, body: Node, mode: Mode, fed: str | None) -> None:
        if body.type == "command":
            self._command(body, mode, fed)
        else:
            self.statement(body, mode)

    def _after_heredoc(self, redirect: Node, before: list[Step], mode: Mode) -> None:
        """What stands on the line of ``<<EOF`` behind it belongs to the same statement."""
        feeds = self._fed(redirect)
        for child in redirect.named_children:
            if child.type == "pipeline":
                parts = [self._fed_statement(part, mode, feeds) for part in child.named_children]
                self.lost.in_pipe([before, *parts], mode)
        right = redirect.child_by_field_name("right")
        if right is not None:
            after = self.statement(right, mode)
            if any(child.type == "||" for child in redirect.children):
                self.lost.by_fallback(before, after)

    def _fed_statement(self, node: Node, mode: Mode, feeds: str | None) -> list[Step]:
        begin = len(self.script.steps)
        if node.type == "list" and node.named_children[0].type == "command":
            self._command(node.named_children[0], mode, feeds)
            after = self.statement(node.named_children[-1], mode)
            if any(child.type == "||" for child in node.children):
                self.lost.by_fallback(self.script.steps[begin : len(self.script.steps) - len(after)], after)
        elif node.type == "command":
            self._command(node, mode, feeds)
        else:
            self.statement(node, mode)
        return self.script.steps[begin:]

    def _command(self, node: Node, mode: Mode, fed: str | None = None) -> None:
        words, inside, stdin = self._words(node, mode, fed)
        if not words:
            return
        self.read += 1
        if self.read > self.most:
            self.script.parsed = False
            return
        step = self.run_files.read_in(Step(tuple(words), stdin=stdin), self.script.sets)
        self.lost.in_words(step, inside)
        if words[0] in self.functions and self.depth < _MAX_NESTING:
            self.depth += 1
            self.statement(self.functions[words[0]], mode)
            self.depth -= 1
            return
        if self._of_a_sourced_file(words, mode):
            return
        if bare(step.words)[:1] == (UNKNOWN,):
            self.script.parsed = False  # its very name is made at run time
        inner = nested_shell(step)
        if inner is None or (step.scripted and not self._readable(step)):
            self.script.steps.append(replace(step, words=tuple(words), stdin=None) if inner else step)
        else:
            self._nested(step, inner, mode)

    def _words(self, node: Node, mode: Mode, fed: str | None) -> tuple[list[str], list[Step], str | None]:
        """The words of a command, the steps inside them, and what is fed to it."""
        words: list[str] = []
        inside: list[Step] = []
        stdin = fed
        for child in node.named_children:
            if child.type == "variable_assignment":
                self._substitutions(child, mode)
                self._set(child)
            elif child.type == "herestring_redirect":
                stdin = self._fed(child)
            elif not child.type.endswith("redirect"):
                words += self.values.words(child)
                inside += self._substitutions(child, mode)
        self.values.given(words, stdin)
        return words, inside, stdin

    def _nested(self, step: Step, inner: tuple[str, Mode | None], mode: Mode) -> None:
        """Read the text that a step hands to a shell."""
        text, inner_mode = inner
        before = self.script.parsed
        self.text(text, mode if inner_mode is None else inner_mode, self.depth + 1)
        if step.scripted and self.read <= self.most:
            # What a file does is known less well than what is written out: only what it surely says counts.
            self.script.parsed = before

    def _readable(self, step: Step) -> bool:
        """Whether a script from a file can be read here: the grammar takes it, and it does not run itself."""
        return self.depth < _MAX_NESTING and parsed(step.stdin or "") is not None

    def _set(self, assignment: Node) -> None:
        name, value = assignment.child_by_field_name("name"), assignment.child_by_field_name("value")
        if name is not None and value is not None:
            self.script.sets.append((self._word(name), self._word(value)))

    def _roles(self, text: str) -> list[str] | None:
        read = take_apart(text, self.role, self.run_files.named())
        return [self.role(step) for step in read.steps] if read.parsed else None

    def _of_a_sourced_file(self, words: list[str], mode: Mode) -> bool:
        """Whether a command is a function of a file read before that only says something; then its steps are added."""
        self.sourced |= {self._word(name): body for name, body in self.run_files.functions_of(words)}
        name = words[0]
        if name not in self.sourced or self.depth >= _MAX_NESTING:
            return False
        if name not in self.spoken:
            self.spoken[name] = None  # one that calls itself is none that only says something
            self.spoken[name] = self._spoken(self.sourced[name], mode)
        steps = self.spoken[name]
        self.script.steps += steps or []
        return steps is not None

    def _spoken(self, body: Node, mode: Mode) -> list[Step] | None:
        outer, read = self.script, self.read
        self.script, self.read, self.depth = Script(), max(read, self.most - _MOST_OF_A_FUNCTION), self.depth + 1
        self.statement(body, mode)
        inner = self.script
        self.script, self.read, self.depth = outer, read, self.depth - 1
        return inner.steps if inner.parsed and speaks(self.role(step) for step in inner.steps) else None

    def _word(self, node: Node) -> str:
        return self.values.word(node)

    def _substitutions(self, node: Node, mode: Mode, *, lost: bool = True) -> list[Step]:
        """Commands inside ``$(...)`` or ``<(...)`` of a word; where ``lost``, their status goes no further."""
        begin = len(self.script.steps)
        if node.type in {"command_substitution", "process_substitution"}:
            self._substitution(node, mode, lost=lost)
        else:
            for child in node.named_children:
                self._substitutions(child, mode, lost=lost)
        return self.script.steps[begin:]

    def _substitution(self, node: Node, mode: Mode, *, lost: bool) -> None:
        begin = len(self.script.steps)
        for child in node.named_children:
            self.statement(child, mode)
        steps = self.script.steps
        if lost:
            steps[begin:] = [replace(step, substituted=True) for step in steps[begin:]]

    def _fed(self, redirect: Node) -> str | None:
        if redirect.type == "herestring_redirect":
            return self._word(redirect.named_children[-1]) if redirect.named_children else UNKNOWN
        if redirect.type == "heredoc_redirect":
            bodies = [child for child in redirect.named_children if child.type == "heredoc_body"]
            return text_of(bodies[0]) if bodies else ""
        return None

    def _target(self, redirect: Node) -> str:
        destination = redirect.child_by_field_name("destination")
        if redirect.type != "file_redirect" or destination is None:
            return ""
        writes = any(child.type in {">", ">>", ">|", "&>", "&>>"} for child in redirect.children)
        return self._word(destination) if writes else ""
