"""The chain of a record file: every change to any byte of it is found, only a torn tail is tolerated."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from referee.core.canonical import canonical_bytes, digest_of
from referee.core.chain import forge, genesis, read_chain
from referee.errors import Finding

NAME = "attempts-x.jsonl"


def build(*bodies: dict[str, Any]) -> bytes:
    data, prev = b"", genesis(NAME)
    for seq, body in enumerate(bodies):
        line, prev = forge(body, seq=seq, prev=prev)
        data += line
    return data


THREE = build({"n": 0}, {"n": 1, "text": "zwei ü"}, {"n": 2})


def test_a_whole_chain_is_read() -> None:
    links, tail = read_chain(THREE, file_name=NAME)
    assert tail == b""
    assert [link.seq for link in links] == [0, 1, 2]
    assert links[1].prev == links[0].digest
    assert links[0].prev == genesis(NAME) == digest_of("genesis", NAME)
    assert read_chain(b"", file_name=NAME) == ([], b"")


@settings(deadline=None)
@given(st.integers(0, len(THREE) - 1))
def test_a_cut_leaves_whole_lines_and_a_tail(at: int) -> None:
    links, tail = read_chain(THREE[:at], file_name=NAME)
    assert len(links) == THREE[:at].count(b"\n")
    assert THREE[:at].endswith(tail)
    assert b"\n" not in tail


@settings(deadline=None, max_examples=300)
@given(st.integers(0, len(THREE) - 1), st.integers(0, 255))
def test_any_changed_byte_is_found(at: int, value: int) -> None:
    changed = THREE[:at] + bytes([value]) + THREE[at + 1 :]
    if changed == THREE:
        return
    digests = [link.digest for link in read_chain(THREE, file_name=NAME)[0]]
    try:
        links, _ = read_chain(changed, file_name=NAME)
    except Finding:
        return
    # Only the last line has no line after it that vouches for it: its own digest tells.
    assert [link.digest for link in links] != digests
    assert [link.digest for link in links[:2]] == digests[:2]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda lines: [lines[1], lines[0], lines[2]], "line 1: says it is number 1"),
        (lambda lines: [lines[0], lines[2]], "line 2: says it is number 2"),
        (lambda lines: [lines[0], lines[0], lines[1]], "line 2: says it is number 0"),
        (lambda lines: [b"[]", *lines[1:]], "line 1: is no record line"),
        (lambda lines: [lines[0].replace(b":", b": "), *lines[1:]], "line 1: is not in canonical form"),
        (lambda lines: [lines[0].replace(b'"n":0', b'"n":9'), *lines[1:]], "line 2: does not continue"),
        (lambda lines: [b"", *lines], "line 1: not JSON"),
        (lambda lines: [lines[0].replace(b'"n":0', b'"n":1e999'), *lines[1:]], "line 1: .* no canonical JSON form"),
        (lambda lines: [lines[0].replace(b'"n":0', b'"n":"\\ud800"'), *lines[1:]], "line 1: .* no canonical JSON form"),
        (lambda lines: [lines[0].replace(b'"seq":0', b'"seq":0.0'), *lines[1:]], "line 1: says it is number 0.0"),
    ],
)
def test_the_first_line_that_does_not_hold_is_named(change: Any, said: str) -> None:
    lines = THREE.splitlines()
    data = b"\n".join(change(lines)) + b"\n"
    with pytest.raises(Finding, match=said):
        read_chain(data, file_name=NAME)


def test_a_stranger_can_compute_the_digests() -> None:
    links, _ = read_chain(THREE, file_name=NAME)
    line = {"body": {"n": 0}, "prev": digest_of("genesis", NAME), "seq": 0}
    assert THREE.splitlines()[0] == canonical_bytes(line)
    assert links[0].digest == digest_of("record", line)
