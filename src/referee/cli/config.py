"""``referee config show``: every setting, its value and where it comes from."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel

from referee.adapters.catalog.workspace import CONFIG_NAME, Workspace, find_root, open_workspace
from referee.cli.options import JsonOption, WorkspaceOption
from referee.core import toml_text

#: What needs no quotes in a key of TOML.
_BARE = re.compile(r"[A-Za-z0-9_-]+")

app = typer.Typer(no_args_is_help=True, help="The workspace's configuration.")


@app.callback()
def _group() -> None:
    """Keep ``show`` a command of its own."""


@app.command()
def show(
    workspace: WorkspaceOption = None,
    origin: Annotated[bool, typer.Option("--origin", help="Say where each value comes from.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Print every setting in force."""
    opened = open_workspace(find_root(Path.cwd(), workspace, reads=True))
    rows = settings(opened)
    if as_json:
        document = {"schema": "referee.config/1", "workspace": str(opened.root), "settings": rows}
        print(json.dumps(document, ensure_ascii=False, indent=2))  # noqa: T201 — the document is the output
        return
    print(f"# workspace {opened.root}")  # noqa: T201
    for row in rows:
        text = f"{row['key']} = {json.dumps(row['value'], ensure_ascii=False)}"
        print(f"{text:<60} # {row['origin']}" if origin else text)  # noqa: T201


def settings(workspace: Workspace) -> list[dict[str, Any]]:
    """Each setting as key, value and origin (``default``, the file, or the environment)."""
    file = workspace.root / CONFIG_NAME
    written = toml_text.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    rows = [
        {"key": _key(path), "value": value, "origin": CONFIG_NAME if _has(written, path) else "default"}
        for path, value in _flat(workspace.config, ())
    ]
    for row in rows:
        if row["key"] == "ca_bundle" and row["value"] is None and os.environ.get("SSL_CERT_FILE"):
            row["value"], row["origin"] = os.environ["SSL_CERT_FILE"], "environment SSL_CERT_FILE"
    return rows


def _flat(node: BaseModel | dict[str, Any], path: tuple[str, ...]) -> list[tuple[tuple[str, ...], Any]]:
    """Every setting by its path; of upstreams and prices, which have names of the user's, those that are written."""
    members = node if isinstance(node, dict) else {name: getattr(node, name) for name in type(node).model_fields}
    rows: list[tuple[tuple[str, ...], Any]] = []
    for name, value in members.items():
        here = (*path, name)
        if isinstance(value, BaseModel) or (isinstance(value, dict) and value):
            rows += _flat(value, here)
        else:
            rows.append((here, list(value) if isinstance(value, tuple) else value))
    return rows


def _key(path: tuple[str, ...]) -> str:
    """The key as TOML writes it."""
    return ".".join(part if _BARE.fullmatch(part) else json.dumps(part, ensure_ascii=False) for part in path)


def _has(written: dict[str, Any], path: tuple[str, ...]) -> bool:
    node: Any = written
    for part in path:
        if not isinstance(node, dict) or part not in node:
            return False
        node = node[part]
    return True
