"""What the environment image is built from, and what stands in it."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path

import docker
import pytest

from referee.adapters.docker import image
from referee.adapters.docker.apt import KEYRING, AptMirror, host_mirror
from referee.adapters.docker.debian_base import base_image
from referee.core.canonical import canonical_bytes, digest_of_bytes
from referee.errors import ConfigError, UsageError

BOOKWORM = "ID=debian\nVERSION_CODENAME=bookworm\n"


def host(root: Path, *, release: str = BOOKWORM, lines: str = "", stanzas: str = "") -> Path:
    """A host's /etc: its release, its apt sources in one-line form and in stanzas."""
    (root / "etc/apt/sources.list.d").mkdir(parents=True)
    (root / "etc/os-release").write_text(release)
    (root / "etc/apt/sources.list").write_text(lines)
    (root / "etc/apt/sources.list.d/debian.sources").write_text(stanzas)
    return root


# --- the mirror of the host


def test_sources_in_one_line_form_are_taken(tmp_path: Path) -> None:
    lines = "# a comment\ndeb http://mirror.test/debian bookworm main contrib\n"
    lines += "deb [arch=amd64] http://mirror.test/debian-security bookworm-security main\n"
    lines += "deb-src http://x.test/d bookworm main\n"
    mirror = host_mirror(host(tmp_path, lines=lines))
    assert re.findall(r"(?m)^URIs: (.*)$", mirror.sources) == [
        "http://mirror.test/debian",
        "http://mirror.test/debian-security",
    ]
    assert set(re.findall(r"(?m)^Components: (.*)$", mirror.sources)) == {"main"}
    assert set(re.findall(r"(?m)^Signed-By: (.*)$", mirror.sources)) == {KEYRING}


def test_sources_in_stanzas_are_taken(tmp_path: Path) -> None:
    text = "Types: deb deb-src\n# why\nURIs: https://mirror.test/debian\nSuites: bookworm bookworm-updates\n"
    text += "Components: main\n"
    mirror = host_mirror(host(tmp_path, stanzas=text))
    assert "Suites: bookworm bookworm-updates" in mirror.sources
    assert "Verify-Peer=false" in mirror.build_options


def test_a_host_of_another_release_lends_its_mirror(tmp_path: Path) -> None:
    release = "ID=debian\nVERSION_CODENAME=trixie\n"
    mirror = host_mirror(host(tmp_path, release=release, lines="deb http://mirror.test/debian trixie main\n"))
    assert "Suites: bookworm\n" in mirror.sources


@pytest.mark.parametrize(
    "line",
    [
        "deb http://mirror.test/other bookworm-pgdg main",
        "deb [signed-by=/etc/apt/keyrings/vendor.gpg] http://vendor.test/debian bookworm main",
        "deb http://user:word@mirror.test/debian bookworm main",
        "deb http://localhost:3142/debian bookworm main",
        "deb cdrom:[Debian]/ bookworm main",
        "deb file:/srv/mirror bookworm main",
        "# deb http://mirror.test/debian bookworm main",
    ],
)
def test_sources_that_cannot_serve_a_machine_are_left_out(tmp_path: Path, line: str) -> None:
    assert host_mirror(host(tmp_path, lines=f"{line}\n")) == AptMirror("", ())


def test_a_disabled_stanza_is_left_out(tmp_path: Path) -> None:
    text = "Types: deb\nURIs: http://mirror.test/debian\nSuites: bookworm\nComponents: main\nEnabled: no\n"
    assert host_mirror(host(tmp_path, stanzas=text)).sources == ""


def test_another_distribution_has_no_mirror_to_lend(tmp_path: Path) -> None:
    release = "ID=ubuntu\nVERSION_CODENAME=noble\n"
    assert host_mirror(host(tmp_path, release=release, lines="deb http://mirror.test/u noble main\n")).sources == ""


# --- the Dockerfile


def test_variants_are_the_published_stages() -> None:
    assert image.variants() == ("default", "display", "rust", "go", "java", "ruby", "php")


@pytest.mark.parametrize(
    ("target", "stages"),
    [("default", ["system", "fetch", "default"]), ("php", ["system", "fetch", "default", "php"])],
)
def test_only_the_needed_stages_are_built(target: str, stages: list[str]) -> None:
    dockerfile = (resources.files("referee.adapters.docker") / "context" / "Dockerfile").read_text()
    assert re.findall(r"(?m)^FROM \S+ AS (\S+)", image._needed(dockerfile, target)) == stages


def test_the_ca_bundle_stays_in_a_stage_that_is_not_published() -> None:
    dockerfile = (resources.files("referee.adapters.docker") / "context" / "Dockerfile").read_text()
    holding = [name for name, _, text in image._stages(dockerfile) if re.search(r"(?m)^COPY (?!--from)\S*fetch", text)]
    assert holding == ["fetch"]
    taken = re.findall(r"(?m)^COPY --from=fetch (\S+)", dockerfile)
    assert taken == ["/opt/node/", "/bin/busybox"]


def test_no_registry_host_is_named() -> None:
    for file in (Path(str(resources.files("referee.adapters.docker")))).rglob("*"):
        if file.is_file() and file.suffix != ".pyc":
            assert not re.search(r"https?://(?!engine)[a-z0-9.-]+\.(org|com|net|io)", file.read_text()), file


def test_environment_digest_changes_with_what_decides_the_image() -> None:
    mirror = AptMirror("Types: deb\n", ())
    digests = {
        image.environment_digest("default", "", mirror),
        image.environment_digest("php", "", mirror),
        image.environment_digest("default", "debian@sha256:00", mirror),
        image.environment_digest("default", "", AptMirror("", ())),
    }
    assert len(digests) == 4
    assert image.environment_digest("default", "", mirror) in digests
    assert all(digest.startswith("environment:sha256:") for digest in digests)


# --- with an engine


@pytest.mark.engine
def test_bad_variants_and_unpinned_bases_are_refused() -> None:
    client = docker.APIClient(version="auto")
    said: list[str] = []
    with pytest.raises(UsageError, match="no variant 'cobol'"):
        image.build(client, image="referee-env", variant="cobol", say=said.append)
    with pytest.raises(ConfigError, match="not pinned"):
        base_image(client, pinned="debian:bookworm", mirror=AptMirror("", ()), identity="0" * 64, say=said.append)
    client.close()


@pytest.mark.engine
def test_the_manifest_in_the_image_is_canonical_and_labelled() -> None:
    client = docker.APIClient(version="auto")
    facts = image.inspect(client, "referee-env:default", variant="default")
    assert facts is not None
    manifest = image.read_manifest(client, facts.image_id)
    assert manifest is not None
    assert digest_of_bytes(manifest) == facts.packages_digest
    value = json.loads(manifest)
    assert canonical_bytes(value) == manifest
    names = {row["name"] for row in value["debian"]}
    assert {"gcc", "g++", "cmake", "git", "git-lfs", "python3-venv", "python3-dev", "curl", "sudo"} <= names
    assert not names & {"graphviz", "ffmpeg", "redis-server", "postgresql", "xvfb", "unixodbc-dev", "tesseract-ocr"}
    assert value["tools"]["node"].startswith("v20.")
    assert value["tools"]["python3"].startswith("Python 3.11.")
    client.close()


@pytest.mark.engine
def test_building_what_is_up_to_date_does_nothing() -> None:
    client = docker.APIClient(version="auto")
    before = image.inspect(client, "referee-env:default", variant="default")
    if before is None or not before.current:
        client.close()
        pytest.fail("the environment image is out of date: run `referee env build`")
    said: list[str] = []
    assert image.build(client, image="referee-env", variant="default", say=said.append) == before
    assert said == ["referee-env:default is up to date"]
    client.close()
