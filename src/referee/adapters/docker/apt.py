"""How this host's apt reaches Debian, so that the environment's apt reaches it the same way.

A host behind a proxy or with a mirror of its own has said so in apt's configuration; nothing else is assumed.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

SUITE = "bookworm"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
LOOPBACK = {"localhost", "127.0.0.1", "::1"}
#: apt settings that belong to the way to the mirror, not to this host.
CARRIED = re.compile(
    r'^(Acquire::(?:Check-Valid-Until|Check-Date|Retries|(?:http|https)::(?:Proxy|Timeout))) "([^"]*)";$', re.IGNORECASE
)


@dataclass(frozen=True)
class AptMirror:
    """Debian's sources and the settings that go with them, as text for apt; both empty where the host has none."""

    sources: str
    settings: tuple[tuple[str, str], ...]

    @property
    def configuration(self) -> str:
        """The settings as an apt.conf fragment."""
        return "".join(f'{key} "{value}";\n' for key, value in self.settings)

    @property
    def build_options(self) -> str:
        """Options for apt during the build only.

        Over HTTPS the host's certificates are not there yet; apt's own signatures decide what is genuine.
        """
        return "-o Acquire::https::Verify-Peer=false" if "https://" in self.sources else ""


def host_mirror(root: Path = Path("/")) -> AptMirror:
    """The mirror that the host's apt uses for its own Debian release; an empty one elsewhere."""
    release = dict(
        line.split("=", 1) for line in _text(root / "etc/os-release").splitlines() if "=" in line and line[0] != "#"
    )
    codename = release.get("VERSION_CODENAME", "").strip('"')
    if release.get("ID", "").strip('"') != "debian" or not codename:
        return AptMirror("", ())
    suites: dict[str, list[str]] = {}
    for uri, suite in _entries(root / "etc/apt"):
        if suite in {codename, f"{codename}-updates", f"{codename}-security"} and _usable(uri):
            suites.setdefault(uri, []).append(suite.replace(codename, SUITE, 1))
    if not any(SUITE in named for named in suites.values()):
        return AptMirror("", ())
    stanzas = [
        f"Types: deb\nURIs: {uri}\nSuites: {' '.join(sorted(set(named)))}\nComponents: main\nSigned-By: {KEYRING}\n"
        for uri, named in suites.items()
    ]
    return AptMirror("\n".join(stanzas), _settings())


def _settings() -> tuple[tuple[str, str], ...]:
    try:
        dump = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        return ()
    found = [match.groups() for line in dump.splitlines() if (match := CARRIED.match(line)) and match[2]]
    return tuple((key, value) for key, value in found if not key.lower().endswith("proxy") or _usable(value))


def _usable(uri: str) -> bool:
    """Reachable from a container, and free of credentials, which an image must not keep."""
    parts = urlsplit(uri)
    return parts.scheme in {"http", "https"} and "@" not in parts.netloc and parts.hostname not in LOOPBACK


def _entries(directory: Path) -> Iterator[tuple[str, str]]:
    """Each (URI, suite) of binary packages signed by Debian itself."""
    for file in [directory / "sources.list", *sorted((directory / "sources.list.d").glob("*.list"))]:
        for line in _text(file).splitlines():
            match = re.match(r"^\s*deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s", line + " ")
            if match and _debian_key(dict(_options(match[1] or "")).get("signed-by", "")):
                yield match[2], match[3]
    for file in sorted((directory / "sources.list.d").glob("*.sources")):
        text = "\n".join(line for line in _text(file).splitlines() if not line.startswith("#"))
        for stanza in re.split(r"\n\s*\n", text):
            fields = {key.lower(): value.strip() for key, value in re.findall(r"(?m)^(\S+):[ \t]*(.*)$", stanza)}
            if fields.get("enabled", "yes").lower() in {"no", "false"} or "deb" not in fields.get("types", "").split():
                continue
            if _debian_key(fields.get("signed-by", "")):
                for uri in fields.get("uris", "").split():
                    yield from ((uri, suite) for suite in fields.get("suites", "").split())


def _options(text: str) -> Iterator[tuple[str, str]]:
    for part in text.split():
        key, _, value = part.partition("=")
        yield key.lower(), value


def _debian_key(signed_by: str) -> bool:
    return not signed_by or Path(signed_by).name.startswith("debian-archive-")


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
