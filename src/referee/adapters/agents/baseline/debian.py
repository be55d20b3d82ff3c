"""Which Debian package ships a file: asked of Debian's own contents index, so that no list of names is needed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .terminal import say

if TYPE_CHECKING:
    from .workshop import Workshop

_FOREIGN = re.compile(
    r"(-cross|-mingw|mingw-w64|-(arm|armhf|arm64|i386|mips\w*|riscv\w*|s390x|ppc\w*|powerpc\w*|alpha|hppa|sparc\w*|"
    r"m68k|sh4|x32)(-|$)|-dbg$|-dbgsym$|-doc$|-examples$|^libguestfs|^busybox|^snap)"
)
_STATE = {"updated": False, "contents": False, "contents_failed": False}


def update(shop: Workshop) -> bool:
    """Refresh the package lists once."""
    if not _STATE["updated"]:
        _STATE["updated"] = shop.run("apt-get update -qq", timeout=180).ok
    return bool(_STATE["updated"])


def known(shop: Workshop, package: str) -> bool:
    """Whether Debian has an installable package of that name."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", package):
        return False
    update(shop)
    listed = shop.run(f"apt-cache policy {package}", timeout=30, show=False).output
    return "Candidate:" in listed and "Candidate: (none)" not in listed


def install(shop: Workshop, *packages: str) -> bool:
    """Install packages without recommended extras; True when apt-get said so."""
    names = " ".join(packages)
    key = f"apt:{names}"
    if key in shop.tried or not all(known(shop, package) for package in packages):
        return False
    shop.tried.add(key)
    line = f"apt-get install -y -qq --no-install-recommends -o Dpkg::Use-Pty=0 {names}"
    result = shop.run(line, timeout=shop.mission.slice(0.15, least=120))
    if result.ok:
        return True
    if "dpkg --configure -a" in result.output:
        shop.run("dpkg --configure -a", timeout=120)
    return shop.run(f"{line} -f", timeout=shop.mission.slice(0.15, least=120)).ok


def _contents(shop: Workshop) -> bool:
    if _STATE["contents_failed"] or _STATE["contents"]:
        return bool(_STATE["contents"])
    ready = shop.run("command -v apt-file", timeout=20, show=False).ok or install(shop, "apt-file")
    ready = ready and shop.run("apt-file update", timeout=300, show=False).ok
    _STATE["contents"], _STATE["contents_failed"] = ready, not ready
    if not ready:
        say("# Debian's contents index is not to be had")
    return ready


def search(shop: Workshop, pattern: str, wanted: str) -> list[str]:
    """Packages that ship a file matching a regular expression, likeliest first (``wanted``: the name looked for)."""
    if not _contents(shop):
        return []
    found = shop.quietly(f"apt-file search --regexp '{pattern}'", timeout=120).output
    rows: list[tuple[tuple[int, ...], str]] = []
    for line in found.splitlines():
        package, _, path = line.partition(": ")
        if not path or _FOREIGN.search(package):
            continue
        stem = re.sub(r"[^a-z0-9]", "", wanted.lower().split("/")[0].split(".")[0].removeprefix("lib"))
        flat = re.sub(r"[^a-z0-9]", "", package.lower())
        rank = (
            0 if path.startswith(("/usr/bin/", "/usr/sbin/", "/bin/", "/sbin/", "/usr/include/", "/usr/lib/")) else 1,
            path.count("/"),
            0 if stem and stem in flat else 1,
            len(package),
        )
        rows.append((rank, package))
    ordered: list[str] = []
    for _, package in sorted(rows):
        if package not in ordered:
            ordered.append(package)
    return ordered[:6]


def packages_with_program(shop: Workshop, name: str) -> list[str]:
    """Packages that bring a command."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*", name):
        return []
    escaped = re.escape(name)
    hits = search(shop, rf"/(s?bin|games|lib/postgresql/[0-9]+/bin)/{escaped}$", name)
    if name in hits:
        hits.remove(name)
        hits.insert(0, name)
    return hits or ([name] if known(shop, name) else [])


def packages_with_header(shop: Workshop, header: str) -> list[str]:
    """Packages that bring a header file (a path below an include directory)."""
    escaped = re.escape(header.lstrip("./"))
    hits = search(shop, rf"/include/(.*/)?{escaped}$", header)
    return [hit for hit in hits if hit.endswith("-dev") or "-dev" in hit] or hits


def packages_with_library(shop: Workshop, name: str) -> list[str]:
    """Packages that let the linker find ``-lNAME``."""
    return search(shop, rf"/lib{re.escape(name)}\.(so|a)$", name) or [
        package for package in (f"lib{name}-dev", f"{name}-dev") if known(shop, package)
    ]


def packages_with_shared_object(shop: Workshop, file: str) -> list[str]:
    """Packages that bring a shared object needed at run time, for instance ``libGL.so.1``."""
    pattern = rf"/{re.escape(file)}$" if ".so." in file else rf"/{re.escape(file)}(\.[0-9.]+)?$"
    return [hit for hit in search(shop, pattern, file) if not hit.endswith("-dev")] or search(shop, pattern, file)


def packages_with_pkgconfig(shop: Workshop, name: str) -> list[str]:
    """Packages that bring a pkg-config description."""
    return search(shop, rf"/pkgconfig/{re.escape(name)}\.pc$", name)


def packages_with_cmake(shop: Workshop, name: str) -> list[str]:
    """Packages that bring a CMake package description."""
    low = re.escape(name.lower())
    hits = search(shop, rf"/cmake/.*/({re.escape(name)}Config|{low}-config)\.cmake$", name)
    return hits or [p for p in (f"lib{name.lower()}-dev", f"{name.lower()}-dev") if known(shop, p)]


def packages_with_perl_module(shop: Workshop, path: str) -> list[str]:
    """Packages that bring a Perl module file such as ``FindBin.pm``."""
    return search(shop, rf"/perl5?/.*{re.escape(path)}$", path)
