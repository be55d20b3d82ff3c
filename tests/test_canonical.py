"""Canonical JSON and digests: one form for one value, and no second reading."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.core.canonical import canonical_bytes, digest_of, digest_of_bytes, strict_loads
from referee.errors import UsageError

TEXT = st.text(st.characters(codec="utf-8"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_a_value_survives_its_canonical_form(value: Any) -> None:
    data = canonical_bytes(value)
    assert strict_loads(data) == value
    assert canonical_bytes(strict_loads(data)) == data
    assert json.loads(data) == value


@pytest.mark.parametrize(
    ("value", "data"),
    [
        ({"b": 1, "a": [True, None, "ü"]}, '{"a":[true,null,"ü"],"b":1}'),
        ({"é": 1, "z": 2, "Z": 3}, '{"Z":3,"z":2,"é":1}'),
        (0.1, "0.1"),
        (1e300, "1e+300"),
        (2.0, "2.0"),
        ('\u007f\u2028\n"\\', '"\u007f\u2028\\n\\"\\\\"'),
    ],
)
def test_the_form_is_the_one_that_is_written_down(value: Any, data: str) -> None:
    assert canonical_bytes(value) == data.encode()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", {1, 2}, b"x", {"a": object()}])
def test_a_value_without_canonical_form_is_refused(value: Any) -> None:
    with pytest.raises(UsageError, match="no canonical JSON form"):
        canonical_bytes(value)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\xff", "not UTF-8: byte 0"),
        (b"", "not JSON"),
        (b'{"a": NaN}', "NaN is no JSON number"),
        (b"-Infinity", "-Infinity is no JSON number"),
        (b'{"a": 1, "a": 2}', "'a' stands twice"),
        (b"[" * 200_000, "nested too deeply"),
        (b"{} x", "not JSON: Extra data"),
    ],
)
def test_json_is_read_strictly(data: bytes, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        strict_loads(data)


def test_a_digest_says_what_it_digests() -> None:
    expected = hashlib.sha256(b'referee/record/1\n{"a":1}').hexdigest()
    assert digest_of("record", {"a": 1}) == f"record:sha256:{expected}"
    assert digest_of("report", {"a": 1}) != digest_of("record", {"a": 1}).replace("record", "report", 1)
    assert digest_of_bytes(b"abc") == f"sha256:{hashlib.sha256(b'abc').hexdigest()}"
