"""``referee subject``: pin a project as a subject, list and show subjects, check that pins still hold."""

from __future__ import annotations

import json
import re
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import tomlkit
import typer
from rich.console import Console

from referee.adapters.catalog.subjects import SCHEMA, Subject, find_subject, list_subjects, parse_subject
from referee.adapters.catalog.workspace import Workspace, find_root, making, open_workspace
from referee.adapters.sources.make import make_source
from referee.adapters.sources.package import PackageSource
from referee.adapters.sources.repository import RepositorySource
from referee.cli.options import JsonOption, WorkspaceOption
from referee.cli.terminal import columns, lay, out
from referee.errors import EXIT_COULD_NOT_VERIFY, EXIT_FINDING, DigestMismatch, RefereeError, UsageError
from referee.protocols import Placement

app = typer.Typer(no_args_is_help=True, help="Pin projects as subjects, list them, check their pins.")

_PYPI_SPEC = re.compile(r"pypi:(?P<name>[^=@\s]+)(?:==(?P<version>\S+))?")
_NPM_SPEC = re.compile(r"npm:(?P<name>@?[^@\s]+)(?:@(?P<version>\S+))?")
_URL_SPEC = re.compile(r"(?P<url>(?:https|http|ssh|git|file)://[^\s#]+)(?:#(?P<commit>[0-9a-f]{40}))?")
_AT_A_TIME = 4


def pin(
    spec: str,
    workspace: Workspace,
    *,
    name: str | None = None,
    directory: Path | None = None,
    sdist: bool = False,
    display: bool = False,
    gpu: bool = False,
    heavy: bool = False,
    summary: str | None = None,
) -> Subject:
    """Fetch what ``spec`` means now and pin it; nothing is written but the workspace's cache.

    Args:
        spec: ``pypi:NAME[==VERSION]``, ``npm:NAME[@VERSION]``, a git URL (``URL#COMMIT`` for a commit that is not
            the default branch's), or the path of a directory or archive.
        workspace: whose cache is used.
        name: the subject's name; by default the project's own in lower case.
        directory: where the subject's file is to stand; by default the workspace's ``subjects/``.
        sdist: PyPI: pin the source distribution even where a wheel fits.
        display: the subject needs a display.
        gpu: the subject needs a GPU.
        heavy: mark the subject heavy.
        summary: one line about it.

    Raises:
        UsageError: ``spec`` is none of these, or does not go with the options.
        NothingMatched: the registry has no such package or version.
        SourceUnreachable: the registry or host does not answer.
    """
    if sdist and not spec.startswith("pypi:"):
        raise UsageError("only a Python package has a source distribution to choose")
    with making(workspace.root):
        table, what, placement = _resolve(spec, workspace, sdist=sdist)
    kind = str(placement.facts["kind"])
    name = name or _name_of(str(table.get("name") or table.get("url") or table.get("path")))
    file = (directory or workspace.subjects) / f"{name}.toml"
    path = table.get("path")
    if isinstance(path, str) and Path(path).is_relative_to(file.parent.parent.resolve()):
        table["path"] = f"../{Path(path).relative_to(file.parent.parent.resolve())}"
    document = tomlkit.document()
    document |= {"schema": SCHEMA, "name": name, "kind": kind}
    marks = {"tier": "gpu" if gpu else "heavy" if heavy else None, "display": display or None, "gpu": gpu or None}
    document |= {key: value for key, value in marks.items() if value is not None}
    document["summary"] = summary or what
    document[kind] = table
    facts = placement.facts
    seen = {"licence": facts["licence"], "readme": facts["readme"] is not None, "size_bytes": placement.size_bytes}
    document["facts"] = {key: value for key, value in seen.items() if value is not None} | {
        "languages": facts["languages"]
    }
    return parse_subject(tomlkit.dumps(document).encode(), file)


_SPECS = "name pypi:NAME, npm:NAME, a git URL, or the path of a directory or archive"


def _resolve(spec: str, workspace: Workspace, *, sdist: bool) -> tuple[dict[str, object], str, Placement]:
    """The table that pins ``spec``, one line on what it is, and the placement to read facts from."""
    repositories = RepositorySource(workspace.cache)
    if not spec.strip():  # a variable of the shell that is not set; as a path it would be the current directory
        raise UsageError("the subject has no name", todo=_SPECS)
    if match := _PYPI_SPEC.fullmatch(spec) or _NPM_SPEC.fullmatch(spec):
        registry, packages = spec.partition(":")[0], PackageSource(workspace.cache)
        found = packages.resolve(registry, match["name"], match["version"], sdist=sdist)
        table = {"registry": registry, "name": found["package"]} | {
            key: found[key] for key in ("version", "artifact", "sha256")
        }
        where = "PyPI" if registry == "pypi" else "npm"
        return table, f"{found['package']} {found['version']} from {where}", packages.fetch(found)
    if match := _URL_SPEC.fullmatch(spec):
        commit = match["commit"]
        table = repositories.resolve(match["url"], commit)
        return table, f"{match['url']} at {str(table['commit'])[:12]}", repositories.fetch(table)
    if Path(spec).exists():
        if not (Path(spec).is_dir() or Path(spec).is_file()):
            raise UsageError(f"{spec} is neither a directory nor an archive", todo=_SPECS)
        table = repositories.resolve_path(Path(spec))
        return (
            table,
            f"the local {'tree' if Path(spec).is_dir() else 'archive'} {Path(spec).name}",
            repositories.fetch(table),
        )
    raise UsageError(
        f"{spec!r} is no subject to pin",
        todo=_SPECS,
    )


def _name_of(origin: str) -> str:
    last = origin.removeprefix("@") if origin.startswith("@") else origin.rstrip("/").rpartition("/")[2]
    plain = re.sub(r"\.(git|tar\.gz|tgz|tar\.xz|zip)$", "", last.lower())
    return re.sub(r"[^a-z0-9._-]+", "-", plain).strip("-._") or "subject"


@app.command()
def add(
    spec: Annotated[
        str, typer.Argument(help="pypi:NAME[==VERSION], npm:NAME[@VERSION], a git URL[#COMMIT], or a path.")
    ],
    name: Annotated[str | None, typer.Option(help="The subject's name; by default the project's.")] = None,
    sdist: Annotated[
        bool, typer.Option("--sdist", help="Pin the source distribution even where a wheel fits.")
    ] = False,
    display: Annotated[bool, typer.Option("--display", help="It needs a display.")] = False,
    gpu: Annotated[bool, typer.Option("--gpu", help="It needs a GPU.")] = False,
    heavy: Annotated[bool, typer.Option("--heavy", help="Mark it heavy: 120 minutes.")] = False,
    summary: Annotated[str | None, typer.Option(help="One line about it.")] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Pin a project and write its file into the workspace's ``subjects/``."""
    opened = open_workspace(find_root(Path.cwd(), workspace))
    subject = pin(spec, opened, name=name, sdist=sdist, display=display, gpu=gpu, heavy=heavy, summary=summary)
    try:
        subject.file.parent.mkdir(parents=True, exist_ok=True)
        with subject.file.open("xb") as file:
            file.write(subject.file_bytes)
    except FileExistsError as exc:
        raise UsageError(
            f"a subject named {subject.name!r} is already in {subject.file.parent}",
            todo="choose another with --name, or remove its file to pin anew",
        ) from exc
    if as_json:
        _print_json({"schema": "referee.subject-added/1", "file": str(subject.file), "subject": describe(subject)})
        return
    Console(stderr=True).print(
        f"pinned {subject.name} in {subject.file}", markup=False, highlight=False, soft_wrap=True
    )
    for objection in subject.cycle_objections():
        Console(stderr=True).print(f"  not for a cycle's pool: {objection}", markup=False, highlight=False)


@app.command(name="list")
def list_(workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """List the workspace's and the bundled subjects."""
    subjects = list_subjects(find_root(Path.cwd(), workspace, reads=True))
    if as_json:
        _print_json({"schema": "referee.subjects/1", "subjects": [describe(subject) for subject in subjects]})
        return
    table = columns("name", "kind", "licence", "what it stands for")
    for subject in subjects:
        table.add_row(subject.name, subject.kind, subject.content.facts.licence or "not known", subject.content.summary)
    lay(out(), table)


@app.command()
def show(name: str, workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Show one subject: its pin, its facts, the digest that stands in records."""
    subject = find_subject(name, find_root(Path.cwd(), workspace, reads=True))
    described = describe(subject)
    if as_json:
        _print_json({"schema": "referee.subject-shown/1", "subject": described})
        return
    console = Console(soft_wrap=True, highlight=False)
    for key, value in described.items():
        if isinstance(value, dict):
            value = ", ".join(f"{fact} {_plain(seen)}" for fact, seen in value.items())  # noqa: PLW2901 — as printed
        console.print(f"{key:16} {_plain(value)}", markup=False)


@app.command()
def check(
    names: Annotated[list[str] | None, typer.Argument(help="Subjects to check; by default all.")] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fetch each subject anew, past the cache, and compare it with its pin.

    Exit code 1 when a pin does not hold (each is named), else 4 when a source did not answer, else 0.
    """
    root = find_root(Path.cwd(), workspace)
    subjects = [find_subject(name, root) for name in names] if names else list_subjects(root)
    progress = Console(stderr=True, soft_wrap=True, highlight=False)
    results = []
    with tempfile.TemporaryDirectory(prefix="referee-check-") as fresh, ThreadPoolExecutor(_AT_A_TIME) as workers:
        for result in workers.map(lambda subject: _check_one(subject, Path(fresh)), subjects):
            results.append(result)
            progress.print(f"{result['status']:12} {result['name']}  {result['detail']}".rstrip(), markup=False)
    if as_json:
        _print_json({"schema": "referee.subject-check/1", "subjects": results})
    statuses = {result["status"] for result in results}
    if "differs" in statuses:
        raise typer.Exit(EXIT_FINDING)
    if statuses - {"holds"}:
        raise typer.Exit(EXIT_COULD_NOT_VERIFY)


def _check_one(subject: Subject, cache: Path) -> dict[str, str]:
    result = {"name": subject.name, "pin": subject.pin_text(), "status": "holds", "detail": ""}
    try:
        make_source(subject.kind, cache).fetch(subject.pin())
    except DigestMismatch as exc:
        return result | {"status": "differs", "detail": exc.message}
    except RefereeError as exc:
        return result | {"status": "unreachable", "detail": exc.message}
    return result


def describe(subject: Subject) -> dict[str, object]:
    """A subject as the ``--json`` documents show it."""
    content = subject.content
    return {
        "name": subject.name,
        "kind": subject.kind,
        "summary": content.summary,
        "pin": subject.pin_text(),
        "digest": subject.digest,
        "tier": content.tier,
        "display": content.display,
        "gpu": content.gpu,
        "facts": content.facts.model_dump(mode="json"),
        "cycle_objections": subject.cycle_objections(),
        "bundled": subject.bundled,
        "file": str(subject.file),
    }


def _plain(value: object) -> str:
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "none"
    return str(value)


def _print_json(document: dict[str, object]) -> None:
    typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
