"""baseline reads READMEs by parsers and sorts what it finds by kind."""

from __future__ import annotations

import pytest

from referee.adapters.agents.baseline import blocks, commands, documents

MARKDOWN = """\
# tool

Some words, and `pip install tool[extra]`.

## Install

    pip install tool

## Usage

Save this as `main.py`:

```python
import tool
tool.run()
```

Then:

```console
$ tool make thing \\
    --fast
made thing
$ curl http://localhost:8000/hello
```

```
{"a": 1}
```

## Uninstall

```sh
pip uninstall tool
```

<pre>
const x = require('x');
</pre>
"""

RST = """\
tool
====

Quick start
-----------

>>> import tool
>>> tool.double(2)
4

.. code-block:: python

   import tool

Run it::

   $ tool run

.. unknown:: x

.. testcode::

   print(1)
"""


def test_markdown_blocks_keep_heading_label_and_the_sentence_before() -> None:
    document = documents.parse_document(MARKDOWN, ".md")
    texts = [(b.language, b.headings[-1], b.before) for b in document.blocks[:3]]
    assert texts == [
        ("", "Install", ""),
        ("python", "Usage", "Save this as main.py:"),
        ("console", "Usage", "Then:"),
    ]
    assert "pip install tool[extra]" in document.spans


def test_rst_blocks_of_all_forms_are_found() -> None:
    document = documents.parse_document(RST, ".rst")
    kinds = [blocks.classify(b, frozenset({"tool"}), "python").kind for b in document.blocks]
    assert kinds == ["pycon", "python", "shell", "python"]


def test_a_readme_without_a_suffix_is_told_by_its_marks() -> None:
    assert documents.parse_document(RST, "").blocks[0].language == "pycon"
    assert documents.parse_document(MARKDOWN, "").blocks[1].language == "python"


def test_sections_for_others_are_left_out() -> None:
    document = documents.parse_document(MARKDOWN, ".md")
    kept = [b.headings[-1] for b in document.blocks if not blocks.excluded(b, package=True)]
    assert "Uninstall" not in kept
    assert "Usage" in kept


FLAT_MARKDOWN = (
    "# {title}\n    tool one\n# Usage\n    tool two\n# Uninstall\n    tool three\n# On Windows\n    tool four\n"
)
FLAT_RST = """\
{title}
=======
::

  tool one

Usage
=====
::

  tool two

Contributing
============
::

  tool three
"""


@pytest.mark.parametrize(("text", "suffix"), [(FLAT_MARKDOWN, ".md"), (FLAT_RST, ".rst")])
@pytest.mark.parametrize("title", ["tool", "Windows"])
def test_they_are_left_out_beside_the_title_too_and_the_title_is_none(text: str, suffix: str, title: str) -> None:
    document = documents.parse_document(text.format(title=title), suffix)
    kept = [block.text for block in document.blocks if not blocks.excluded(block, package=False)]
    assert [line.strip() for line in kept] == ["tool one", "tool two"]


@pytest.mark.parametrize(
    ("text", "default", "kind"),
    [
        ("$ anything at all\n", "python", "shell"),
        ("npm install x\nnpx x go\n", "javascript", "shell"),
        ("thing --go 3\n", "python", "shell"),
        ('{"a": [1, 2]}\n', "python", "data"),
        ("import os\nprint(os.name)\n", "python", "python"),
        ("const a = require('a')\na(1)\n", "javascript", "javascript"),
        ("ms('2 days')  // 172800000\n", "javascript", "text"),
        ("just some words here\n", "python", "text"),
        (">>> 1 + 1\n2\n", "python", "pycon"),
    ],
)
def test_unlabelled_blocks_are_told_by_prompt_verb_or_parser(text: str, default: str, kind: str) -> None:
    block = documents.Block(text, "", ("t",), "", 0)
    assert blocks.classify(block, frozenset({"thing"}), default).kind == kind


def test_prompted_lines_are_commands_and_the_rest_is_output() -> None:
    found = commands.lines_of("$ tool make thing \\\n    --fast\nmade thing\n$ tool end\n")
    assert [line for line, _ in found] == ["tool make thing \\\n--fast", "tool end"]
    assert found[0][1] == "made thing\n"


@pytest.mark.parametrize(
    ("line", "purpose"),
    [
        ("pip install thing", "install"),
        ("sudo apt-get install libfoo-dev", "install"),
        ("thing run file.txt", "own"),
        ("python -m thing run", "own"),
        ("npx thing@latest go", "own"),
        ("brew install thing", "skip"),
        ("docker run thing", "skip"),
        ("thing --key <your key>", "skip"),
        ("curl http://localhost:3000/x", "probe"),
        ("curl https://elsewhere.test/x", "skip"),
        ("cd thing", "directory"),
        ("git clone https://host/thing", "skip"),
        ("rm -rf /", "skip"),
    ],
)
def test_a_line_is_known_by_its_purpose(line: str, purpose: str) -> None:
    assert commands.read_command(line, 0, "", frozenset({"thing"}), frozenset({"thing"})).purpose == purpose


def test_scaffolding_lines_use_the_pinned_program() -> None:
    words = ["npm", "create", "thing@latest", "my-app", "--", "--template", "vue"]
    assert commands.rewrite(words, frozenset({"create-thing"}), frozenset()) == "create-thing my-app --template vue"
    assert commands.rewrite(["npx", "-y", "thing@2", "a b"], frozenset({"thing"}), frozenset()) == "thing 'a b'"


def test_further_installs_leave_out_the_subject_itself() -> None:
    made = commands.read_command("pip install thing other 'third[x]>=2'", 0, "", frozenset(), frozenset({"thing"}))
    assert made.installs == ["other", "third[x]>=2"]


def test_local_addresses_give_port_and_path_once() -> None:
    text = "See http://localhost:8000/docs. Or http://127.0.0.1:8000/docs and http://localhost/"
    assert commands.local_paths(text) == [(8000, "/docs"), (None, "/")]


@pytest.mark.parametrize(
    ("line", "does"),
    [
        ("npm install", False),
        ("npm run build", False),
        ("npm start", True),
        ("npm run dev", True),
        ("npm test", True),
        ("make", False),
        ("make JOBS=1", False),
        ("make test", True),
        ("cargo build --release", False),
        ("cargo run -- x", True),
        ("./setup.sh --yes", False),
        ("./build.sh", True),
        ("printf Wikipedia | ./adler", True),
        ("tail -n 1 out.txt", False),
        ("python3 app.py", True),
        ("python3 -m venv .venv", False),
        ("python3 -m pip install .", False),
        ("mkdir x && cd x", False),
    ],
)
def test_an_install_or_build_line_verifies_nothing(line: str, does: bool) -> None:
    assert commands.verifies(line, frozenset()) is does
