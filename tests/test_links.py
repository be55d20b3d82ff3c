"""Links that are said to stay lead nowhere else, whatever the others of their tree are."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from referee.core.links import stays


@pytest.mark.parametrize(
    ("folder", "text", "inside"),
    [
        ("", "a", True),
        ("", ".", True),
        ("a/b", "../..", True),
        ("a/b", "./../c//d", True),
        ("a", "b/../c", True),
        ("a", "../a/../b", True),
        ("", "..", False),
        ("a/b", "../../..", False),
        ("a", "b/../../..", False),
        ("", "/", False),
        ("", "link", True),
        ("", "link/x", True),
        ("", "link/..", False),
        ("", "link/x/../y", False),
        ("a", "../link/../y", False),
    ],
)
def test_a_link_stays_or_leads_out(folder: str, text: str, inside: bool) -> None:
    assert stays({"link"}, folder, text) is inside


NAMES = st.sampled_from(["a", "b", "c"])
PLACES = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
TEXTS = st.lists(NAMES | st.just(".."), min_size=1, max_size=6).map("/".join)


@settings(max_examples=150, deadline=None)
@given(wanted=st.dictionaries(PLACES, TEXTS, min_size=1, max_size=6))
def test_no_path_through_links_that_stay_leaves_the_tree(wanted: dict[str, str]) -> None:
    links = {at: to for at, to in wanted.items() if not any(at.startswith(f"{other}/") for other in wanted)}
    links = {at: to for at, to in links.items() if stays(links, at.rpartition("/")[0], to)}
    event(f"{len(links)} links stay")
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory).resolve() / "one" / "two" / "three" / "root"
        for at, to in links.items():
            place = root / at
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(to)
        for at in links:
            assert Path(os.path.realpath(root / at)).is_relative_to(root)
