# ruff: noqa: INP001 - a program of the image, no module of the package
"""Write down every package of this image as canonical JSON, to ``/etc/referee/packages.json``.

Runs inside the image while it is built, so it uses nothing but the standard library of Debian's Python.
"""

import json
import pathlib
import subprocess
from importlib import metadata


def said(*argv: str) -> str:
    """What a command prints."""
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


def main() -> None:
    """Collect and write."""
    rows = said("dpkg-query", "-W", "-f", "${Package}\t${Architecture}\t${Version}\t${db:Status-Status}\n")
    fields = [row.split("\t") for row in rows.splitlines()]
    manifest = {
        "schema": "referee.packages/1",
        "architecture": said("dpkg", "--print-architecture"),
        "debian": sorted(
            [{"name": f[0], "architecture": f[1], "version": f[2]} for f in fields if f[3] == "installed"],
            key=lambda row: (row["name"], row["architecture"]),
        ),
        "python": sorted({f"{d.metadata['Name']}=={d.version}" for d in metadata.distributions()}),
        "tools": {name: said(name, "--version").splitlines()[0] for name in ("node", "npm", "python3", "gcc", "git")},
    }
    target = pathlib.Path("/etc/referee/packages.json")
    target.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    target.write_bytes(text.encode("utf-8"))


if __name__ == "__main__":
    main()
