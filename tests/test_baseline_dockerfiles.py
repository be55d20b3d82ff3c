"""Dockerfiles, as the baseline reads them: their words, and what their steps do on this machine."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from referee.adapters.agents.baseline.ecosystems import dockerfile
from referee.adapters.agents.baseline.ecosystems import dockerfile_syntax as syntax
from tests.baseline_trees import tree, workshop

_DOCKERFILE = """\
# syntax=docker/dockerfile:1
ARG TAG=3.11-slim
FROM python:${TAG} AS build
WORKDIR /src
# a comment
RUN apt-get update && \\
    # inside a continued line
    apt-get install -y --no-install-recommends jq \\
    && rm -rf /var/lib/apt/lists/*
RUN <<EOT
set -e
echo made > out.txt
EOT
FROM scratch AS unused
RUN false
FROM python:${TAG}
ARG MODE=fast
ENV PORT=8000 GREETING="hello there" WHERE=/srv/$MODE
WORKDIR $WHERE
COPY --from=build /src/out.txt ./
COPY --chown=1:1 app.py data/ ./
EXPOSE ${PORT}/tcp
HEALTHCHECK CMD curl -f http://localhost:8000/health || exit 1
ENTRYPOINT ["python3", "app.py"]
CMD ["--port", "8000"]
"""


def test_a_dockerfile_is_read_with_continuations_comments_flags_and_here_documents() -> None:
    stages = syntax.stages(_DOCKERFILE)
    assert [(stage.base, stage.name) for stage in stages] == [
        ("python:3.11-slim", "build"),
        ("scratch", "unused"),
        ("python:3.11-slim", "2"),
    ]
    run, document = stages[0].instructions[1:3]
    assert run.value == (
        "apt-get update && apt-get install -y --no-install-recommends jq && rm -rf /var/lib/apt/lists/*"
    )
    assert document.heredocs == (("EOT", "set -e\necho made > out.txt\n"),)
    copy = stages[2].instructions[3]
    assert (copy.name, copy.flag("from"), copy.value) == ("COPY", "build", "/src/out.txt ./")
    assert [stage.name for stage in syntax.needed(stages)] == ["build", "2"]


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$A/${A}", "one/one"),
        ("${NONE:-two}", "two"),
        ("${A:+three}", "three"),
        ("${NONE:+x}", ""),
        (r"\$A", "$A"),
        ("${NONE:-$A}", "one"),
    ],
)
def test_variables_are_filled_in_as_a_builder_does(text: str, expanded: str) -> None:
    assert syntax.expand(text, {"A": "one"}) == expanded


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ('A=1 B="two words" C=three\\ words', [("A", "1"), ("B", "two words"), ("C", "three words")]),
        ("OLD the whole rest", [("OLD", "the whole rest")]),
        ("A='x y'", [("A", "x y")]),
    ],
)
def test_settings_are_read_in_both_forms(text: str, pairs: list[tuple[str, str]]) -> None:
    assert syntax.pairs(text) == pairs


def test_the_start_of_a_described_program_carries_its_environment_and_directory(tmp_path: Path) -> None:
    project = tree(tmp_path / "p", {"Dockerfile": _DOCKERFILE, "app.py": "", "data/x": ""})
    made = dockerfile.plan(workshop(project, tmp_path))
    assert made is not None
    assert made.servers[0].command == (
        "cd /srv/fast && PORT=8000 GREETING='hello there' WHERE=/srv/fast python3 app.py --port 8000"
    )
    assert made.servers[0].paths == ("/health", "/")
    assert not any("false" in step or "apt/lists" in step for step in made.install)


@pytest.mark.parametrize(
    ("line", "translated"),
    [
        ("apk add --no-cache build-base jq",
         "apt-get update -qq && apt-get install -y -qq --no-install-recommends build-essential jq"),
        ("apk add --virtual .deps musl-dev", "true"),
        ("apt-get update && apt-get install -y jq && rm -rf /var/lib/apt/lists/* && echo ok",
         "apt-get update && apt-get install -y jq  && echo ok"),
        ("adduser -D -u 1000 app", "(id -u app || useradd -m app || useradd -m -g app app)"),
    ],
)  # fmt: skip
def test_lines_for_other_images_are_translated(line: str, translated: str) -> None:
    assert dockerfile.for_debian(line) == translated


def test_the_steps_of_a_dockerfile_do_on_this_machine_what_they_say(tmp_path: Path) -> None:
    room = tmp_path / "room"
    text = f"""\
FROM debian:12
WORKDIR {room}/a
COPY . .
COPY one.txt renamed.txt
COPY sub {room}/copied/
RUN cat sub/two.txt > joined && cat one.txt >> joined
RUN ["sh", "-c", "echo json > form"]
RUN <<EOF
echo here > document
EOF
CMD cat joined
"""
    project = tree(tmp_path / "p", {"Dockerfile": text, "one.txt": "1\n", "sub/two.txt": "2\n"})
    made = dockerfile.plan(workshop(project, tmp_path))
    assert made is not None
    for step in made.install:
        subprocess.run(["/bin/bash", "-c", step], check=True, cwd=project)
    assert (room / "a/joined").read_text() == "2\n1\n"
    assert (room / "a/renamed.txt").read_text() == "1\n"
    assert (room / "copied/two.txt").read_text() == "2\n"
    assert [(room / "a" / name).read_text() for name in ("form", "document")] == ["json\n", "here\n"]
    ran = subprocess.run(["/bin/bash", "-c", made.invocations[0]], check=True, capture_output=True, text=True)
    assert ran.stdout == "2\n1\n"


@pytest.mark.parametrize(
    "base", ["nvidia/cuda:12.4.1-base", "mcr.microsoft.com/dotnet/sdk:8.0", "continuumio/miniconda3"]
)
def test_a_base_that_this_machine_cannot_stand_in_for_makes_no_plan(tmp_path: Path, base: str) -> None:
    project = tree(tmp_path / "p", {"Dockerfile": f"FROM {base}\nCMD true\n"})
    assert dockerfile.plan(workshop(project, tmp_path)) is None
