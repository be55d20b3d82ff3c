"""Packages through the real pip and npm: from registries of our own on loopback, and from the public ones."""

from __future__ import annotations

import base64
import functools
import hashlib
import http.server
import io
import json
import socket
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from referee.adapters.catalog.subjects import BUNDLED, load_subject
from referee.adapters.sources import survey
from referee.adapters.sources.package import PackageSource
from referee.errors import DigestMismatch, NothingMatched, SourceUnreachable, UsageError

pytestmark = pytest.mark.slow

METADATA = """\
Metadata-Version: 2.1
Name: gadget
Version: {version}
Summary: a gadget
License: MIT
Description-Content-Type: text/markdown

# gadget

```sh
gadget --run
```
"""


def tar_of(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()


def wheel_of(version: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("gadget/__init__.py", "print('gadget')\n")
        archive.writestr(f"gadget-{version}.dist-info/METADATA", METADATA.format(version=version))
        archive.writestr(f"gadget-{version}.dist-info/WHEEL", "Wheel-Version: 1.0\n")
        archive.writestr(f"gadget-{version}.dist-info/RECORD", "")
    return buffer.getvalue()


class QuietFiles(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 — the base class names it so
        pass


class Registries:
    """An index for pip and a registry for npm, both serving a hostile package, on one loopback port."""

    def __init__(self, root: Path, server: http.server.ThreadingHTTPServer, marker: Path) -> None:
        self.root, self.marker = root, marker
        self.url = f"http://127.0.0.1:{server.server_port}"
        touch = f"open({str(marker)!r}, 'w').close()\n"
        sdist = {
            "gadget-2.0/PKG-INFO": METADATA.format(version="2.0"),
            "gadget-2.0/setup.py": touch + "from setuptools import setup; setup(name='gadget', version='2.0')\n",
        }
        self.files = {
            "gadget-1.0-py3-none-any.whl": wheel_of("1.0"),
            "gadget-1.0.tar.gz": tar_of({name.replace("2.0", "1.0"): text for name, text in sdist.items()}),
            "gadget-1.0-cp311-cp311-win_amd64.whl": wheel_of("1.0"),
            "gadget-2.0.tar.gz": tar_of(sdist),
            "gadget-3.0b1-py3-none-any.whl": wheel_of("3.0b1"),
        }
        index = root / "simple" / "gadget"
        index.mkdir(parents=True)
        for name, data in self.files.items():
            (index / name).write_bytes(data)
        (index / "index.html").write_text("".join(f'<a href="{name}">{name}</a>' for name in self.files))
        self._npm(f"node -e \"require('fs').writeFileSync('{marker}', '')\"")

    def _npm(self, attack: str) -> None:
        scripts = dict.fromkeys(("preinstall", "install", "postinstall", "prepare", "prepack", "postpack"), attack)
        manifest = {"name": "@shop/gizmo", "version": "1.2.0", "license": "ISC", "scripts": scripts}
        tarball = tar_of(
            {
                "package/package.json": json.dumps(manifest),
                "package/README.md": "# gizmo\n",
                "package/index.js": "module.exports = 1;\n",
            }
        )
        (self.root / "npm" / "@shop").mkdir(parents=True)
        (self.root / "npm" / "gizmo.tgz").write_bytes(tarball)
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(tarball).digest()).decode()
        dist = {"tarball": f"{self.url}/npm/gizmo.tgz", "integrity": integrity}
        packument = {
            "name": "@shop/gizmo",
            "dist-tags": {"latest": "1.2.0"},
            "versions": {"1.2.0": manifest | {"dist": dist}},
        }
        # npm asks for a scoped package with its slash encoded; the server below decodes it.
        (self.root / "npm" / "@shop" / "gizmo").write_text(json.dumps(packument))
        self.npm_sha256 = hashlib.sha256(tarball).hexdigest()


@pytest.fixture
def registries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registries]:
    root = tmp_path / "served"
    root.mkdir()
    handler = functools.partial(QuietFiles, directory=str(root))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        served = Registries(root, server, tmp_path / "ran")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        point_clients_at(served.url, monkeypatch, tmp_path)
        yield served
        server.shutdown()


def point_clients_at(url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_CONSTRAINT"):
        monkeypatch.delenv(name, raising=False)
    settings = {
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_INDEX_URL": f"{url}/simple",
        "PIP_RETRIES": "0",
        "PIP_NO_CACHE_DIR": "1",
        "NO_PROXY": "127.0.0.1",
        "npm_config_registry": f"{url}/npm/",
        "npm_config_fetch_retries": "0",
        "npm_config_cache": str(tmp_path / "npm-cache"),
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(
    ("version", "sdist", "artifact"),
    [
        (None, False, "gadget-2.0.tar.gz"),
        ("1.0", False, "gadget-1.0-py3-none-any.whl"),
        ("1.0", True, "gadget-1.0.tar.gz"),
        ("3.0b1", False, "gadget-3.0b1-py3-none-any.whl"),
    ],
)
def test_pip_finds_the_artifact_and_runs_none_of_it(
    registries: Registries, tmp_path: Path, version: str | None, sdist: bool, artifact: str
) -> None:
    source = PackageSource(tmp_path / "cache")
    pin = source.resolve("pypi", "gadget", version, sdist=sdist)
    assert pin["artifact"] == artifact
    assert pin["sha256"] == hashlib.sha256(registries.files[artifact]).hexdigest()
    fresh = PackageSource(tmp_path / "fresh").fetch(pin | {"name": "gadget"})
    assert not registries.marker.exists()
    subject = fresh.root / "subject"
    assert (subject / artifact).read_bytes() == registries.files[artifact]
    assert "gadget --run" in (subject / "README.md").read_text()
    assert list((fresh.root / "project").iterdir()) == []
    assert fresh.facts == {
        "name": "gadget",
        "kind": "package",
        "ecosystem": "pypi",
        "package": "gadget",
        "version": pin["version"],
        "artifact": f"/work/subject/{artifact}",
        "readme": "/work/subject/README.md",
        "licence": "MIT",
        "languages": ["Python"],
        "size_bytes": len(registries.files[artifact]),
    }


def test_npm_packs_the_tarball_and_runs_no_script(registries: Registries, tmp_path: Path) -> None:
    source = PackageSource(tmp_path / "cache")
    pin = source.resolve("npm", "@shop/gizmo", None, sdist=False)
    assert pin == {
        "registry": "npm",
        "package": "@shop/gizmo",
        "version": "1.2.0",
        "artifact": "shop-gizmo-1.2.0.tgz",
        "sha256": registries.npm_sha256,
    }
    placement = PackageSource(tmp_path / "fresh").fetch(pin)
    assert not registries.marker.exists()
    assert placement.facts["licence"] == "ISC"
    assert (placement.root / "subject" / "README.md").read_text() == "# gizmo\n"


def test_other_bytes_than_the_pinned_are_refused_and_both_digests_named(registries: Registries, tmp_path: Path) -> None:
    for registry, package, version, artifact, found in (
        (
            "pypi",
            "gadget",
            "1.0",
            "gadget-1.0.tar.gz",
            hashlib.sha256(registries.files["gadget-1.0.tar.gz"]).hexdigest(),
        ),
        ("npm", "@shop/gizmo", "1.2.0", "shop-gizmo-1.2.0.tgz", registries.npm_sha256),
    ):
        pin = {"registry": registry, "package": package, "version": version, "artifact": artifact, "sha256": "0" * 64}
        with pytest.raises(DigestMismatch) as caught:
            PackageSource(tmp_path / "cache").fetch(pin)
        assert found in caught.value.message
        assert "0" * 64 in caught.value.message
        assert caught.value.exit_code == 1
    assert list((tmp_path / "cache" / "package").iterdir()) == []


def test_what_is_not_there_matches_nothing(registries: Registries, tmp_path: Path) -> None:
    source = PackageSource(tmp_path / "cache")
    for registry, package, version, sdist in (
        ("pypi", "no-such-gadget", None, False),
        ("pypi", "gadget", "9.9", False),
        ("pypi", "gadget", "3.0b1", True),
        ("npm", "no-such-gizmo", None, False),
        ("npm", "@shop/gizmo", "9.9.9", False),
    ):
        with pytest.raises(NothingMatched) as caught:
            source.resolve(registry, package, version, sdist=sdist)
        assert "\n" not in caught.value.message
    pin = {"registry": "pypi", "package": "gadget", "version": "9", "artifact": "gadget-9.tar.gz", "sha256": "0" * 64}
    with pytest.raises(SourceUnreachable, match=r"no gadget-9\.tar\.gz any more"):
        source.fetch(pin)


def test_a_registry_that_does_not_answer_is_said_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    point_clients_at(f"http://127.0.0.1:{free_port()}", monkeypatch, tmp_path)
    for registry in ("pypi", "npm"):
        with pytest.raises(SourceUnreachable, match="could not be reached for thing") as caught:
            PackageSource(tmp_path / "cache").resolve(registry, "thing", None, sdist=False)
        assert "\n" not in caught.value.message
        assert caught.value.exit_code == 4


@pytest.mark.parametrize(
    ("registry", "name", "version"),
    [
        ("pypi", "--index-url=x", None),
        ("pypi", "git+https://host/x", None),
        ("pypi", "../x", None),
        ("npm", "--registry=x", "1 2"),
        ("npm", "file:..", None),
        ("npm", "https://host/x.tgz", None),
        ("npm", "thing", "file:.."),
    ],
)
def test_what_is_no_name_never_reaches_a_client(registry: str, name: str, version: str | None, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        PackageSource(tmp_path / "cache").resolve(registry, name, version, sdist=False)
    assert caught.value.exit_code == 2


def test_a_cached_artifact_that_changed_is_fetched_again(registries: Registries, tmp_path: Path) -> None:
    source = PackageSource(tmp_path / "cache")
    pin = source.resolve("pypi", "gadget", "1.0", sdist=False)
    placed = source.fetch(pin).root / "subject" / str(pin["artifact"])
    placed.write_bytes(b"tampered")
    assert source.fetch(pin).root.joinpath("subject", placed.name).read_bytes() == registries.files[placed.name]


def test_a_cached_artifact_needs_no_registry(
    registries: Registries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = PackageSource(tmp_path / "cache")
    pin = source.resolve("pypi", "gadget", "1.0", sdist=False)
    point_clients_at(f"http://127.0.0.1:{free_port()}", monkeypatch, tmp_path)
    assert source.fetch(pin).facts["version"] == "1.0"


def test_many_may_fetch_into_one_cache_at_once(registries: Registries, tmp_path: Path) -> None:
    pin = PackageSource(tmp_path / "first").resolve("pypi", "gadget", "1.0", sdist=False)
    with ThreadPoolExecutor(4) as workers:
        roots = list(workers.map(lambda _: PackageSource(tmp_path / "cache").fetch(pin).root, range(4)))
    assert len(set(roots)) == 1
    assert [path.name for path in (tmp_path / "cache" / "package").iterdir()] == [roots[0].parent.name]


def test_another_python_is_asked_where_the_own_has_no_pip(
    registries: Registries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    beside = tmp_path / "bin"
    beside.mkdir()
    (beside / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (beside / "python3").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bare" / "bin" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    source = PackageSource(tmp_path / "cache")
    with pytest.raises(SourceUnreachable, match="No module named 'pip'") as caught:
        source.resolve("pypi", "gadget", "1.0", sdist=False)
    assert caught.value.todo == "install pip beside the referee"
    monkeypatch.setenv("PATH", str(beside))
    assert source.resolve("pypi", "gadget", "1.0", sdist=False)["version"] == "1.0"


def test_without_npm_the_message_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SourceUnreachable, match="npm is not installed"):
        PackageSource(tmp_path / "cache").resolve("npm", "thing", None, sdist=False)


@pytest.mark.parametrize(
    ("named", "licence"),
    [
        ("MIT", "MIT"),
        ("mit or apache-2.0", "MIT OR Apache-2.0"),
        ("Apache License, Version 2.0", "Apache-2.0"),
        ("BSD", None),
        ("see LICENSE", None),
        ("", None),
    ],
)
def test_a_licence_is_named_or_absent_never_guessed(named: str, licence: str | None) -> None:
    assert survey.spdx(named) == licence


def test_classifiers_name_a_licence_only_where_they_name_one() -> None:
    mit, bsd = "License :: OSI Approved :: MIT License", "License :: OSI Approved :: BSD License"
    assert survey.licence_of_classifiers([mit, "Programming Language :: Python"]) == "MIT"
    assert survey.licence_of_classifiers([bsd]) is None
    assert survey.licence_of_classifiers([mit, bsd]) is None


def test_a_licence_is_known_by_its_words() -> None:
    own = (Path(__file__).parents[1] / "LICENSE").read_text(encoding="utf-8")
    assert survey.licence_of_text(own) == "Apache-2.0"
    assert survey.licence_of_text(own[:120]) is None
    assert survey.licence_of_text("SPDX-License-Identifier: BSD-3-Clause\n") == "BSD-3-Clause"
    assert survey.licence_of_texts({"a": own, "b": "all rights reserved"}) is None


def test_the_licence_of_a_tree_is_that_of_its_files_else_of_its_manifests(tmp_path: Path) -> None:
    own = (Path(__file__).parents[1] / "LICENSE").read_text(encoding="utf-8")
    (tmp_path / "LICENSE-APACHE").write_text(own)
    (tmp_path / "LICENSE-MIT").write_text("SPDX-License-Identifier: MIT\n")
    assert survey.licence_of_tree(tmp_path) is None
    (tmp_path / "Cargo.toml").write_text('[package]\nlicense = "MIT OR Apache-2.0"\n')
    assert survey.licence_of_tree(tmp_path) == "MIT OR Apache-2.0"
    (tmp_path / "package.json").write_text('{"license": "ISC"}')
    assert survey.licence_of_tree(tmp_path) is None


def test_a_readme_may_be_a_link_inside_the_tree_only(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    (root / "docs").mkdir(parents=True)
    (root / "README").symlink_to("/etc/hostname")
    assert survey.find_readme(root) is None
    (root / "docs" / "intro.md").write_text("# thing\n")
    (root / "README.md").symlink_to("docs/intro.md")
    assert survey.find_readme(root) == root / "README.md"


@pytest.mark.registry
@pytest.mark.parametrize("name", ["segno", "ms", "pyyaml", "server-brave-search"])
def test_a_bundled_pin_holds_in_the_public_registries(name: str, tmp_path: Path) -> None:
    subject = load_subject(BUNDLED / f"{name}.toml")
    placement = PackageSource(tmp_path).fetch(subject.pin())
    facts = subject.content.facts
    assert (placement.facts["licence"], placement.facts["languages"]) == (facts.licence, list(facts.languages))
    assert placement.size_bytes == facts.size_bytes
    assert placement.facts["readme"] is not None
