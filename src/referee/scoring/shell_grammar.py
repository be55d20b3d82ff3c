"""The grammar of a shell command (tree-sitter-bash): its tree, its statements, its functions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

#: Longer commands are not taken apart, bytes.
MAX_BYTES = 65_536
SEQUENCES = {"program", "compound_statement", "subshell", "do_group", "else_clause", "elif_clause", "case_item"}
STATEMENTS = {
    "command",
    "list",
    "pipeline",
    "redirected_statement",
    "negated_command",
    "test_command",
    "if_statement",
    "while_statement",
    "for_statement",
    "c_style_for_statement",
    "case_statement",
    "compound_statement",
    "subshell",
    "function_definition",
    "variable_assignment",
    "variable_assignments",
    "declaration_command",
    "unset_command",
}


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_bash.language()))


def parsed(command: str) -> Node | None:
    """The grammar's tree of a command; None where it is too long or none."""
    data = command.encode("utf-8", "replace")
    if len(data) > MAX_BYTES:
        return None
    root = _parser().parse(data).root_node
    return None if root.has_error else root


def functions(root: Node) -> Iterator[tuple[Node, Node]]:
    """The functions that shell text defines, each by name and body."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        waiting += node.named_children
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if node.type == "function_definition" and name is not None and body is not None:
            yield name, body


def statements(node: Node) -> Iterator[tuple[Node, bool]]:
    """The statements of a sequence, each with whether ``&`` sends it to the background."""
    children = node.children
    for index, child in enumerate(children):
        if child.type in STATEMENTS or child.type in SEQUENCES:
            following = children[index + 1].type if index + 1 < len(children) else ""
            yield child, following == "&"
