"""Reads and writes a suite's file (``cases.json``) and its registered subsets.

A suite is written in one form only, so that building it again gives the same bytes: UTF-8, two blanks of indent, keys
in the order of the model, one line feed at the end. Its digest is taken over the canonical form and does not depend
on this.
"""

from __future__ import annotations

import json
import os
import tempfile
import tomllib
from pathlib import Path

from pydantic import ValidationError

from referee.core import toml_text
from referee.core.bakeoff import Subset
from referee.core.cases import Suite
from referee.core.suite_file import parse_suite
from referee.errors import ConfigError, NothingMatched, UsageError

BUNDLED = Path(__file__).resolve().parents[2] / "bundled" / "suites"

#: No suite comes near this; a file that is larger is not read into memory.
MOST_BYTES = 256 * 1024 * 1024

_BOM = b"\xef\xbb\xbf"


def load_suite(path: Path) -> Suite:
    """The suite in the file ``path``.

    Raises:
        NothingMatched: there is no such file.
        ConfigError: it cannot be read, or is no suite: one sentence says what is wrong and where.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ConfigError(f"{path}: larger than {MOST_BYTES // 2**20} MiB", todo="name the file of a suite")
        data = path.read_bytes()
    except FileNotFoundError as exc:
        raise NothingMatched(f"there is no file {path}", todo="name the cases.json of a suite") from exc
    except IsADirectoryError as exc:
        raise ConfigError(f"{path} is a directory", todo="name the cases.json in it") from exc
    except OSError as exc:
        raise ConfigError(f"{path} cannot be read: {exc.strerror}") from exc
    if data.startswith(_BOM):
        raise ConfigError(f"{path}: begins with a byte order mark", todo="save it as UTF-8 without BOM")
    return parse_suite(data, str(path))


def suite_bytes(suite: Suite) -> bytes:
    """The suite's file, byte for byte."""
    return (json.dumps(suite.document(), ensure_ascii=False, indent=2, allow_nan=False) + "\n").encode()


def write_suite(suite: Suite, path: Path, *, replace: bool = False) -> None:
    """Write the suite's file; it is there whole or not at all.

    Raises:
        UsageError: the file is there already and ``replace`` is off, or it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.")
    except OSError as exc:
        raise UsageError(f"{path} cannot be written: {exc.strerror}", todo="name another file") from exc
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(suite_bytes(suite))
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        if replace:
            Path(name).replace(path)
        else:
            os.link(name, path)
    except FileExistsError as exc:
        raise UsageError(f"{path} is there already", todo="name another file, or pass --replace") from exc
    except OSError as exc:
        raise UsageError(f"{path} cannot be written: {exc.strerror}", todo="name another file") from exc
    finally:
        Path(name).unlink(missing_ok=True)


def bundled_names() -> tuple[str, ...]:
    """The names of the suites that come with the package."""
    return tuple(sorted(path.stem for path in BUNDLED.glob("*.json")))


def bundled_suite(name: str) -> Suite:
    """The suite ``name`` that comes with the package.

    Raises:
        NothingMatched: there is none of this name.
    """
    if name not in bundled_names():
        raise NothingMatched(f"no suite named {name!r} is bundled", todo=f"there are: {', '.join(bundled_names())}")
    return load_suite(BUNDLED / f"{name}.json")


def bundled_subsets(name: str) -> tuple[Subset, ...]:
    """The registered subsets of the bundled suite ``name``; none where it has none."""
    path = BUNDLED / name / "subsets.toml"
    return load_subsets(path) if path.is_file() else ()


def load_subsets(path: Path) -> tuple[Subset, ...]:
    """The subsets registered in a ``subsets.toml``: one ``[[subset]]`` each.

    Raises:
        ConfigError: the file cannot be read or breaks the schema.
    """
    try:
        content = toml_text.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as exc:
        raise ConfigError(f"{path}: {exc}") from exc
    if unknown := sorted(content.keys() - {"subset"}):
        raise ConfigError(f"{path}: unknown key {unknown[0]}", todo="it holds [[subset]] tables only")
    try:
        return tuple(Subset.model_validate(table) for table in content.get("subset", []))
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{path}: {place}: {first['msg']}") from exc
