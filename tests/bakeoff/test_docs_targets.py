"""docs/targets.md: its tables are the schema of a target, key for key; its examples load, one for each lane."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from pydantic import BaseModel

from referee.adapters.catalog.targets import SCHEMA, SELF_HOSTED, read_target
from referee.cli.wiring import make_lane
from referee.core.bakeoff import Channel, Cli, LaneKind, Price, Target

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "targets.md").read_text("utf-8")
EXAMPLES = dict(re.findall(r"^```toml\n# targets/(\S+)\.toml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))


def _tables() -> list[dict[str, list[str]]]:
    """The tables of keys: each key with its meaning, its values and its default."""
    found: list[dict[str, list[str]]] = []
    for line in PAGE.splitlines():
        if line.startswith("| key |"):
            found.append({})
        elif line.startswith("| `"):
            key, *rest = (cell.strip() for cell in line.strip("|").split(" | "))
            assert len(rest) == 3, line
            found[-1][key.strip("` ")] = rest
    return found


def _choices(annotation: Any) -> list[str]:
    """The words that a key takes, where it takes one of a few."""
    if get_origin(annotation) is Literal:
        return [str(one) for one in get_args(annotation)]
    return [word for part in get_args(annotation) for word in _choices(part)]


@pytest.mark.parametrize(("number", "model"), [(0, Target), (1, Price), (2, Cli)])
def test_every_key_stands_in_its_table_and_no_other(number: int, model: type[BaseModel]) -> None:
    table = _tables()[number]
    assert next(iter(table)) == next(iter(model.model_fields))
    assert set(table) == set(model.model_fields)
    for key, field in model.model_fields.items():
        meaning, values, default = table[key]
        assert len(meaning) > 8
        for word in _choices(field.annotation):
            assert f"`{word}`" in values, (key, word)
        if key == "name":
            continue
        if field.is_required():
            assert default == "needed", key
        elif isinstance(field.default, bool | str):
            said = field.default if isinstance(field.default, str) else json.dumps(field.default)
            assert f"`{said}`" in default, key
        else:
            assert not default.startswith("needed"), key
            assert field.default is None or field.get_default(call_default_factory=True) in ({}, ()), key


def test_the_default_of_self_hosting_is_by_channel() -> None:
    default = _tables()[0]["self_host"][2]
    assert all(f"`{channel}`" in default for channel in SELF_HOSTED)
    assert read_target("small", "", EXAMPLES["small"].encode()).self_host == "feasible"
    assert read_target("paid", "", EXAMPLES["paid"].encode()).self_host == "not-feasible"


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_every_example_loads_and_makes_a_lane(tmp_path: Path, name: str) -> None:
    assert f'`schema = "{SCHEMA}"`' in PAGE
    target = read_target(name, f"{name}.toml", EXAMPLES[name].encode())
    environ = {} if target.key_env is None else {target.key_env: "not-a-real-key"}
    lane = make_lane(target, spool=tmp_path, environ=environ)
    assert lane.surface.channel == target.channel


def test_there_is_an_example_of_every_lane() -> None:
    lanes = {read_target(name, "", text.encode()).lane for name, text in EXAMPLES.items()}
    assert lanes == set(get_args(LaneKind)) - {"keyword-baseline"}
    assert all(f"`{channel}`" in PAGE for channel in get_args(Channel))


def test_it_is_linked() -> None:
    assert "(targets.md)" in (ROOT / "docs" / "bakeoff.md").read_text("utf-8")
    more = (ROOT / "README.md").read_text("utf-8").partition("## More")[2]
    assert "(docs/targets.md)" in more
