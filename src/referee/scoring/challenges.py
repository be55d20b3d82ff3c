"""Challenges: the verified command with one of its inputs replaced by one that the harness chose (methodology §5).

Only what is plainly an input of the last command that does any work and has one is replaced: numbers and quoted texts
among its operands, text that is piped into it, and constants in what inline Python prints or asserts of what it
imported. Options, paths, addresses, ports, subcommands and names are left alone; a command without such an input is not
challenged. Whatever works after that command is left out, so that nothing else can print the result.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from referee.core.challenge_input import WAYS, challenge_input
from referee.scoring.command_parts import ports, runs_tests
from referee.scoring.roles import fetches, role
from referee.scoring.shell_grammar import parsed
from referee.scoring.shell_words import UNKNOWN, Step, bare, is_interpreter, literal, script_place, text_of

#: At most so many challenges for one command.
MOST = 4
#: Which challenges a command gets follows from these rules: another number for other rules.
RULES = 2
_NUMBER = re.compile(r"[1-9]\d{0,5}(?:\.\d{1,6})?")
_TEXT = re.compile(r"(?=.*[A-Za-z]{2})[\w ,!?'-]{2,80}")
_FILE = re.compile(r".*\.\w{1,5}")
#: Programs that ask others, whose numbers are addresses or bounds.
_NOT_ASKED = {"nc", "ncat", "netcat", "telnet", "curl", "wget", "ssh", "kill", "docker", "podman", "node", "bash", "sh"}
#: What reads a program from its input: text that is piped into it is code.
_READS_CODE = re.compile(
    r"(?:python|pypy|node|ruby|perl|php|bash|sh$|psql|mysql|sqlite3|redis-cli|nc|ncat|telnet|ffmpeg)"
)
_NO_INPUT = re.compile(r"seed|sleep|wait|timeout|setdefault|insert|setlevel|getlogger|basicconfig|getattr|setattr|exit")
#: Variables that hold no input, by parts of their names.
_NO_INPUT_NAMED = re.compile(r"port|host|addr|url|pid|seed|sleep|wait|time|tries|dir|path|file|status|version|job|user")
_OWN = frozenset(sys.stdlib_module_names)
#: An input: where it stands in the command, in bytes, and what it is.
Input = tuple[int, int, str]
#: Variables by name, each with the word that it is set to.
Held = Mapping[str, Node]


@dataclass(frozen=True)
class Challenge:
    """One challenge: what is replaced, by what, and the command that results."""

    original: str
    replaced_by: str
    command: str


def challenges(command: str, run: str) -> tuple[Challenge, ...]:
    """The challenges of a command for one run, at most ``MOST``, in a fixed order; a test run gets none."""
    root = parsed(command)
    if root is None:
        return ()
    working = _working(root)
    asked, spans = _asked(working, ports(command), _held(root))
    data = _without_what_follows(command.encode("utf-8", "replace"), asked, working)
    found = []
    for way in range(WAYS):
        for begin, end, original in spans:
            new = challenge_input(run, original, way)
            changed = (data[:begin] + new.encode() + data[end:]).decode("utf-8", "replace")
            found.append(Challenge(original, new, changed))
    return tuple(found[:MOST])


def _asked(working: list[Node], addresses: frozenset[int], held: Held) -> tuple[Node | None, list[Input]]:
    """The command whose output is the result, and where its inputs stand."""
    for node in reversed(working):
        if not _in_background(node) and not _is_test(node):
            spans = list(dict.fromkeys(_inputs(node, addresses, held)))
            if spans:
                return node, spans
    return None, []


def _without_what_follows(data: bytes, asked: Node | None, working: list[Node]) -> bytes:
    """The command without what works after the asked one: that hands on what it is fed, or does nothing."""
    if asked is None:
        return data
    later = [node for node in working if node.start_byte >= asked.end_byte]
    for node in reversed(later):
        fed = _pipeline(node) is not None and _pipeline(node) == _pipeline(asked)
        data = data[: node.start_byte] + (b"cat" if fed else b"true") + data[node.end_byte :]
    return data


def _pipeline(node: Node) -> Node | None:
    while node.parent is not None and node.type != "pipeline":
        node = node.parent
    return node if node.type == "pipeline" else None


def _working(root: Node) -> list[Node]:
    """The simple commands that do any work, in order, those inside others left out."""
    found: list[Node] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        inside = bool(found) and node.end_byte <= found[-1].end_byte
        waiting += reversed(node.named_children)
        if node.type == "command" and not inside:
            step = Step(bare(tuple(literal(one, {}) for one in _word_nodes(node))))
            if step.words and role(step) == "works" and (not fetches(step) or runs_tests(step)):
                found.append(node)
    return found


def _is_test(node: Node) -> bool:
    return runs_tests(Step(tuple(literal(one, {}) for one in _word_nodes(node))))


def _in_background(node: Node) -> bool:
    at: Node | None = node
    while at is not None:
        if at.next_sibling is not None and at.next_sibling.type == "&":
            return True
        at = at.parent
    return False


def _held(root: Node) -> Held:
    """The variables that are set once, to something written out, and are no address, path or bound of time."""
    found: dict[str, list[Node | None]] = {}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        waiting += node.named_children
        if node.type == "variable_assignment" and node.parent is not None and node.parent.type != "command":
            name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
            if name is not None:
                found.setdefault(text_of(name), []).append(value)
        elif node.type == "for_statement":
            name, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
            over = [child for child in node.named_children if child not in (name, body)]
            if name is not None:
                found.setdefault(text_of(name), []).append(over[0] if len(over) == 1 else None)
        elif node.type == "command" and [literal(one, {}) for one in _word_nodes(node)[:2]] == ["set", "--"]:
            for number, one in enumerate(_word_nodes(node)[2:], start=1):
                found.setdefault(str(number), []).append(one)
    command = text_of(root)
    return {
        name: value
        for name, (value, *more) in found.items()
        if value is not None
        and not more
        and not _NO_INPUT_NAMED.search(name.lower())
        and not re.search(rf"[:=]\"?\$\{{?{re.escape(name)}\b", command)
        and UNKNOWN not in literal(value, {})
    }


def _variable(node: Node, held: Held) -> Node | None:
    """The value of a variable, where a word is nothing but that."""
    inner = node.named_children[0] if node.type == "string" and len(node.named_children) == 1 else node
    if inner.type not in {"simple_expansion", "expansion"} or text_of(node).strip('"') != text_of(inner):
        return None
    return held.get(text_of(inner).strip("${}"))


def _word(node: Node, held: Held) -> str:
    value = _variable(node, held)
    return literal(node if value is None else value, {})


def _inputs(node: Node, addresses: frozenset[int], held: Held) -> Iterator[Input]:
    """Where a command's inputs stand: what is piped into it, its operands, its ``<<<``."""
    before = node.prev_named_sibling
    if node.parent is not None and node.parent.type == "pipeline" and before is not None:
        yield from _piped(before, node, held)
    yield from _operands(node, addresses, held)
    for child in node.named_children:
        yield from _here(child, held)


def _operands(node: Node, addresses: frozenset[int], held: Held) -> Iterator[Input]:
    """Numbers and quoted texts among what a program is given, and constants in Python code."""
    nodes = _word_nodes(node)
    words = tuple(_word(one, held) for one in nodes)
    inner = bare(words)
    if not inner or not _works(inner):
        return
    first = len(words) - len(inner)
    name = inner[0].rsplit("/", 1)[-1]
    if name.startswith(("python", "pypy")) and "-c" in inner[:-1]:
        code = nodes[first + inner.index("-c") + 1]
        yield from _in_code(_variable(code, held) or code)
        return
    start = first + 1
    place = script_place(inner)
    if is_interpreter(inner[0]):
        if place is None and "-m" not in inner[:-1]:
            return
        start = first + (inner.index("-m") + 1 if place is None else inner.index(place)) + 1
    if name in _NOT_ASKED and place in {None, inner[0]}:
        return
    for index in range(start, len(words)):
        before = words[index - 1]
        if before.startswith("-") and before != "--" and index > start:
            continue
        span = _input_span(nodes[index], words[index], held)
        if span is not None and not (words[index].isdigit() and int(words[index]) in addresses):
            yield span


def _works(words: tuple[str, ...]) -> bool:
    step = Step(words)
    return role(step) == "works" and not fetches(step) and not runs_tests(step)


def _word_nodes(node: Node) -> list[Node]:
    return [
        child
        for child in node.named_children
        if child.type != "variable_assignment" and not child.type.endswith("redirect")
    ]


def _input_span(node: Node, word: str, held: Held, *, unquoted: bool = False) -> Input | None:
    """The bytes of a word that are an input: without its quotes. None where it is none.

    Of a variable it is the word that gives way, not the value: what else the command does with it stays.
    """
    value = _variable(node, held)
    if value is not None:
        found = _input_span(value, word, {}, unquoted=unquoted)
        quote = 1 if node.type == "string" else 0
        return None if found is None else (node.start_byte + quote, node.end_byte - quote, word)
    if node.type in {"number", "word"}:
        plain = _NUMBER.fullmatch(word) and word not in {"1", "1.0"}
        if plain or (unquoted and _TEXT.fullmatch(word) and not word.startswith("-")):
            return node.start_byte, node.end_byte, word
        return None
    quoted = node.type == "raw_string" or (
        node.type == "string" and all(c.type == "string_content" for c in node.named_children)
    )
    if quoted and text_of(node)[1:-1] == word and UNKNOWN not in word and "\\" not in word and _is_text(word):
        return node.start_byte + 1, node.end_byte - 1, word
    return None


def _is_text(word: str) -> bool:
    plain = _NUMBER.fullmatch(word) or _TEXT.fullmatch(word)
    return bool(plain) and not _FILE.fullmatch(word) and not word.startswith("-")


def _piped(first: Node, second: Node, held: Held) -> Iterator[Input]:
    """The text that ``echo`` or ``printf`` hands to a program that works."""
    if first.type != "command":
        return
    nodes = _word_nodes(first)
    words = [_word(one, held) for one in nodes]
    receiver = bare(tuple(literal(one, {}) for one in _word_nodes(second)))
    if words[:1] not in (["echo"], ["printf"]) or not receiver or not _takes_text(receiver):
        return
    span = _input_span(nodes[-1], words[-1], held, unquoted=True) if len(nodes) > 1 else None
    if span is not None:
        yield span


def _here(node: Node, held: Held) -> Iterator[Input]:
    """The text of ``<<< "text"``."""
    if node.type != "herestring_redirect" or node.parent is None or node.parent.type != "command":
        return
    receiver = bare(tuple(literal(one, {}) for one in _word_nodes(node.parent)))
    if receiver and _takes_text(receiver) and node.named_children:
        fed = node.named_children[-1]
        span = _input_span(fed, _word(fed, held), held, unquoted=True)
        if span is not None:
            yield span


def _takes_text(receiver: tuple[str, ...]) -> bool:
    name = receiver[0].rsplit("/", 1)[-1]
    if is_interpreter(receiver[0]) or name in {"node", "ruby", "perl", "php"}:
        return (script_place(receiver) is not None or "-m" in receiver) and _works(receiver)
    return not _READS_CODE.match(name) and _works(receiver)


def _in_code(node: Node) -> Iterator[Input]:
    """Constants that Python code hands to what it imported from elsewhere than the language itself."""
    text = text_of(node)
    code = text[1:-1]
    verbatim = node.type == "raw_string" or (node.type == "string" and not set(code) & set("\\$`"))
    if not verbatim:
        return
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    lines = [0]
    for line in code.encode().split(b"\n"):
        lines.append(lines[-1] + len(line) + 1)
    foreign = _foreign(tree)
    for call in _calls_that_show(tree):
        if _is_foreign(call.func, foreign):
            for argument in call.args:
                if isinstance(argument, ast.Constant) and argument.lineno == argument.end_lineno:
                    begin = lines[argument.lineno - 1] + argument.col_offset
                    end = lines[argument.lineno - 1] + (argument.end_col_offset or 0)
                    source = code.encode()[begin:end].decode("utf-8", "replace")
                    span = _constant(source, argument.value)
                    if span is not None:
                        base = node.start_byte + 1 + begin
                        yield base + span, base + (end - begin) - span, source[span : len(source) - span]


def _calls_that_show(tree: ast.Module) -> Iterator[ast.Call]:
    """Calls inside what is printed or asserted: what they are given shows in the output or the status."""
    for node in ast.walk(tree):
        prints = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
        if prints or isinstance(node, ast.Assert):
            yield from (inner for inner in ast.walk(node) if isinstance(inner, ast.Call) and inner is not node)


def _constant(source: str, value: object) -> int | None:
    """How many bytes at each end of a constant are its quotes; None where it is no input."""
    if isinstance(value, str) and source[1:-1] == value and source[:1] in {'"', "'"} and _is_text(value):
        return 1
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return 0 if number and _NUMBER.fullmatch(source) and value != 1 else None


def _foreign(tree: ast.Module) -> set[str]:
    """Names that stand for something imported, or made of something imported, that is not the language's own."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {(a.asname or a.name.split(".")[0]) for a in node.names if a.name.split(".")[0] not in _OWN}
        elif isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").split(".")[0] not in _OWN):
            found |= {alias.asname or alias.name for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(
            isinstance(n, ast.Name) and n.id in found for n in ast.walk(node.value)
        ):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


def _is_foreign(function: ast.expr, foreign: set[str]) -> bool:
    name, root = "", function
    while isinstance(root, (ast.Attribute, ast.Call, ast.Subscript)):
        if isinstance(root, ast.Attribute):
            name = name or root.attr
            root = root.value
        else:
            root = root.func if isinstance(root, ast.Call) else root.value
    if not isinstance(root, ast.Name) or root.id not in foreign:
        return False
    # What makes an object is mostly given a name for it.
    called = name or root.id
    return not called[:1].isupper() and not _NO_INPUT.search(called.lower())
