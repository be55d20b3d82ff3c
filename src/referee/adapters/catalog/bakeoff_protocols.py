"""Protocols of a workspace: ``protocols/NAME/`` with ``protocol.toml``, ``cases.json`` and ``subsets.toml``.

The targets' files belong to a protocol too: they pin precision, quantisation, context and revision (bake-off §5), and
what they say is frozen with the rest.
"""

from __future__ import annotations

import os
import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import Field, ValidationError

from referee.adapters.catalog.targets import BUNDLED as BUNDLED_TARGETS
from referee.adapters.catalog.targets import load_target, read_target
from referee.adapters.catalog.workspace import one_sentence
from referee.core import toml_text
from referee.core.bakeoff import Protocol, Subset, Target
from referee.core.canonical import digest_of, digest_of_bytes
from referee.core.cases import Suite
from referee.core.facts import Fact
from referee.core.suite_file import parse_suite
from referee.errors import ConfigError, NothingMatched
from referee.regular_files import open_regular

PROTOCOL = "protocol.toml"
CASES = "cases.json"
SUBSETS = "subsets.toml"

_Model = TypeVar("_Model", bound=Fact)


class _Subsets(Fact):
    """``subsets.toml``: one ``[[subset]]`` table each."""

    subset: tuple[Subset, ...] = Field(default=())


@dataclass(frozen=True)
class LoadedProtocol:
    """A protocol with everything that it names, read once.

    ``files`` are the bytes that were read, by name (``targets/NAME.toml`` for a target); ``digest`` covers every one of
    them by name and bytes. Rows carry the digest of the freeze, which has the harness's own part besides
    (``runner.bakeoff.freeze.plan_files``).
    """

    protocol: Protocol
    suite: Suite
    subsets: dict[str, Subset]
    targets: dict[str, Target]
    files: dict[str, bytes]
    digest: str


def load_protocol(directory: Path) -> LoadedProtocol:
    """Read a protocol's directory whole: the plan, its cases, its subsets, and the files of its targets.

    Targets are looked for in ``targets/`` of the workspace that the protocol lies in, then among those bundled.

    Raises:
        NothingMatched: there is no such protocol, or no such target.
        ConfigError: a file is broken, or names something that is not there.
    """
    if not (directory / PROTOCOL).is_file():
        raise NothingMatched(
            f"there is no protocol {directory.name!r} in {directory.parent}",
            todo="`referee bakeoff init NAME` writes one",
        )
    files = {name: _read(directory, name) for name in (PROTOCOL, CASES)}
    if (directory / SUBSETS).exists() or (directory / SUBSETS).is_symlink():
        files[SUBSETS] = _read(directory, SUBSETS)
    own = directory.parent.parent / "targets"
    for planned in _toml(Protocol, files[PROTOCOL], PROTOCOL).targets:
        load_target(planned.target, own)  # says what is wrong with it by the file's whole name
        files[_target_file(planned.target)] = _target_bytes(planned.target, own)
    loaded = parse_protocol(files)
    if loaded.protocol.name != directory.name:
        raise ConfigError(
            f"{PROTOCOL} names the protocol {loaded.protocol.name}, its directory is {directory.name}",
            todo="give both the same name",
        )
    return loaded


def parse_protocol(files: dict[str, bytes]) -> LoadedProtocol:
    """A protocol from the bytes of its files, as they stand in a directory or as a freeze kept them.

    Raises:
        ConfigError: a file is missing or broken, or names something that is not there.
    """
    missing = next((name for name in (PROTOCOL, CASES) if name not in files), None)
    if missing is not None:
        raise ConfigError(f"the protocol has no {missing}", todo="restore it, or init the protocol anew")
    protocol = _toml(Protocol, files[PROTOCOL], PROTOCOL)
    suite = parse_suite(files[CASES], CASES)
    if suite.name != protocol.suite:
        raise ConfigError(f"{PROTOCOL} plans the suite {protocol.suite}, {CASES} holds the suite {suite.name}")
    subsets = _subsets(files.get(SUBSETS, b""), suite)
    _check_names(protocol, suite, subsets)
    targets: dict[str, Target] = {}
    for planned in protocol.targets:
        name = _target_file(planned.target)
        if name not in files:
            raise ConfigError(f"the protocol has no {name}")
        targets[planned.target] = read_target(planned.target, name, files[name])
    return LoadedProtocol(protocol, suite, subsets, targets, files, digest_of_files(files))


def digest_of_files(files: dict[str, bytes]) -> str:
    """One digest over every file, by name and bytes."""
    return digest_of("protocol", {name: digest_of_bytes(data) for name, data in files.items()})


def _read(directory: Path, name: str) -> bytes:
    """The bytes of a regular file; no link is followed, so that what is frozen lies where it says."""
    try:
        descriptor = open_regular(directory / name)
    except FileNotFoundError as exc:
        raise ConfigError(f"the protocol {directory.name} has no {name}", todo="restore it, or init it anew") from exc
    except OSError as exc:
        raise ConfigError(f"{name} of the protocol {directory.name} cannot be read: {exc.strerror}") from exc
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def _target_file(name: str) -> str:
    return f"targets/{name}.toml"


def _target_bytes(name: str, own: Path) -> bytes:
    """The file behind a target that was loaded: the workspace's own, else the bundled one."""
    file = own / f"{name}.toml"
    return (file if file.is_file() else BUNDLED_TARGETS / f"{name}.toml").read_bytes()


def _toml(model: type[_Model], data: bytes, where: str) -> _Model:
    try:
        return model.model_validate(toml_text.loads(data.decode("utf-8")))
    except UnicodeDecodeError as exc:
        raise ConfigError(f"{where} is not UTF-8: byte {exc.start} cannot be decoded") from exc
    except tomllib.TOMLDecodeError as exc:
        raise ConfigError(f"{where} is no TOML: {exc}") from exc
    except ValidationError as exc:
        raise ConfigError(f"{where}: {one_sentence(exc, model)}") from exc


def _subsets(data: bytes, suite: Suite) -> dict[str, Subset]:
    given = _toml(_Subsets, data, SUBSETS).subset
    _once((subset.name for subset in given), f"{SUBSETS}: the subset")
    for subset in given:
        where = f"{SUBSETS}: the subset {subset.name}"
        _once(subset.cases, f"{where}: the case")
        for case in subset.cases:
            if case not in suite.by_id:
                raise ConfigError(f"{where} names the case {case}, which {CASES} does not have")
    return {subset.name: subset for subset in given}


def _check_names(protocol: Protocol, suite: Suite, subsets: dict[str, Subset]) -> None:
    _once((planned.target for planned in protocol.targets), f"{PROTOCOL}: the target")
    targets = {planned.target for planned in protocol.targets}
    for planned in protocol.targets:
        if planned.subset is not None and planned.subset not in subsets:
            raise ConfigError(
                f"{PROTOCOL} plans {planned.target} on the subset {planned.subset}, which is not registered",
                todo=f"register it in {SUBSETS}",
            )
    for arm in protocol.arm_repeats:
        if arm not in suite.arm_of:
            raise ConfigError(f"{PROTOCOL} sets repeats of the arm {arm}, which {CASES} does not have")
    for comparison in protocol.comparisons:
        for name in (comparison.a, comparison.b):
            if name not in targets:
                raise ConfigError(f"{PROTOCOL} compares {name}, which it does not plan")
        if comparison.a == comparison.b:
            raise ConfigError(f"{PROTOCOL} compares {comparison.a} with itself")


def _once(names: Iterable[str], what: str) -> None:
    doubled = next((name for name, times in Counter(names).items() if times > 1), None)
    if doubled is not None:
        raise ConfigError(f"{what} {doubled} stands twice")
