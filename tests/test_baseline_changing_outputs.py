"""A documented output that is another one each time (an identifier, the time) is no difference, and a use."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from referee.adapters.agents.baseline.documents import parse_document
from referee.adapters.agents.baseline.ecosystems.plan import Plan
from referee.adapters.agents.baseline.quickstart import Quickstart, place_payload
from tests.test_baseline_honesty import make_shop

MODULE = """
import random, string
def identifier(): return "".join(random.SystemRandom().choice(string.ascii_letters) for _ in range(21))
def three(): return 3
"""


def follow(tmp_path: Path, text: str) -> Quickstart:
    """The examples of a README on a package of one module, tried on this machine."""
    readme = f"# t\n\n## Usage\n\n```python\n{text}```\n"
    shop = make_shop(tmp_path, readme)
    (shop.project / "tinyid.py").write_text(MODULE)
    (shop.project / ".venv" / "bin").mkdir(parents=True)
    (shop.project / ".venv" / "bin" / "python").symlink_to(sys.executable)
    plan = Plan(ecosystem="x", confidence=50, languages=frozenset({"python"}), packages=("tinyid",))
    place_payload(shop)
    quickstart = Quickstart(shop, plan, parse_document(readme, ".md"))
    quickstart.examples("python")
    return quickstart


@pytest.mark.parametrize(
    ("line", "uses", "differs"),
    [
        ('tinyid.identifier()  # "VstGXRZjdHiBmyTqWertY"', True, 0),
        ("tinyid.three()  # 4", False, 1),
        ('import random\nrandom.SystemRandom().random()  # "0.3172"', False, 0),
        ('tinyid.identifier()  # "VstGXRZjdHiBmyTqWertY"\ntinyid.three()  # 4', False, 1),
    ],
)
def test_only_an_output_that_stays_can_differ(tmp_path: Path, line: str, uses: bool, differs: int) -> None:
    tried: Any = follow(tmp_path, f"import tinyid\n{line}\n").tried
    assert (tried.uses, len(tried.differs)) == (uses, differs)
