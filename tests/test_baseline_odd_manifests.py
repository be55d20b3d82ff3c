"""Manifests of a shape that their ecosystem never writes cost their own plan, and no other ecosystem's."""

from __future__ import annotations

from pathlib import Path

import pytest

from referee.adapters.agents.baseline.ecosystems import plans
from tests.baseline_trees import tree, workshop

_DEEP = "[" * 100_000

ODD = (
    *(("package.json", text) for text in ("[]", "null", "3", _DEEP, '{"scripts": 3}', '{"scripts": {"test": 3}}')),
    *(("composer.json", text) for text in (_DEEP, '{"bin": 3}')),
    *(
        ("pyproject.toml", text)
        for text in ("project = 3", "[project]\nscripts = 3", "tool = 3", f"a = {_DEEP[:20000]}")
    ),
    *(
        ("Cargo.toml", text)
        for text in ("workspace = 3", "[workspace]\nmembers = ['/abs/*']", "bin = [3]", "package = 3")
    ),
)


@pytest.mark.parametrize(("name", "text"), ODD)
def test_an_odd_manifest_leaves_the_plan_of_the_makefile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str
) -> None:
    project = tree(
        tmp_path / "t", {name: text, "Makefile": "all:\n\tcc -o x x.c\ntest: all\n\t./x\n", "x.c": "int main(){}"}
    )
    shop = workshop(project, tmp_path)
    assert "make" in [plan.ecosystem for plan in plans(shop)]
    assert "cannot be read" in capsys.readouterr().out
