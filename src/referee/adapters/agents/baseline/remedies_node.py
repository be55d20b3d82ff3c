"""Remedies that speak to npm."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from . import announce, debian
from .terminal import Result
from .workshop import Applied, Remedy

if TYPE_CHECKING:
    from .workshop import Workshop

#: Words that stand in our own invocations and samples: that nothing of that name is there is no lack of a package.
OURS = frozenset({"hello", "goodbye", "sample", "world", "app", "index", "main", "src", "lib"})


def peer(shop: Workshop, _match: re.Match[str], result: Result, _argument: str) -> Applied | None:
    """Install the version that the complaining package accepts, instead of forcing; its kin go with it."""
    wanted = re.search(r'peer (?:")?(@?[\w./-]+)@"([^"]+)" from (@?[\w./-]+)@', result.output)
    if not wanted:
        return None
    name, accepted, asker = wanted.groups()
    newest = _newest(shop, name, accepted)
    if not newest:
        return None
    command = re.sub(rf"(?<=\s){re.escape(name)}(@\S+)?(?=\s|$)", "", result.command).replace("npm ci", "npm install")
    family = [f"{name}@{newest}"]
    family += [f"{kin}@{newest}" for kin in _kin(shop, name) if _newest(shop, kin, newest)]
    return Applied(f"used {' and '.join(family)}, which {asker} accepts", f"{command} {' '.join(family)}")


def _kin(shop: Workshop, name: str) -> list[str]:
    """Direct dependencies that are released together with a package: same stem, same declared range."""
    try:
        manifest = json.loads((shop.project / "package.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    declared = {**(manifest.get("dependencies") or {}), **(manifest.get("devDependencies") or {})}
    return [kin for kin in declared if kin.startswith(f"{name}-") and declared[kin] == declared.get(name)]


def _newest(shop: Workshop, name: str, accepted: str) -> str:
    """The newest version of a package within a range, by the registry's answer."""
    value = _json(shop, f"npm view '{name}@{accepted}' version --json")
    return str((value[-1] if isinstance(value, list) and value else value) or "")


def node_module(shop: Workshop, match: re.Match[str], result: Result, _argument: str) -> Applied | None:
    """Install a package that an example or a message asks for."""
    name = next((value for value in match.groupdict("").values() if value), "").rstrip(".,")
    own = shop.mission.package or ""
    if (
        not name
        or name in {own, "node", "npm", *OURS}
        or name.startswith((".", "/", "node:"))
        or "/" in name.lstrip("@").split("/", 1)[-1]
    ):
        return None
    root = name if name.startswith("@") else name.split("/")[0]
    known = root.lower() in shop.documented or re.search(rf"(?<![\w-]){re.escape(root)}(?![\w-])", shop.prose)
    if not known and root not in result.output:
        return None
    target = _fitting(shop, root, own) if own and own in root else root
    line = f"npm install --no-save {target}" if shop.mission.kind == "repository" else f"npm install {target}"
    installed = shop.run(line, timeout=shop.mission.slice(0.1, least=180))
    if not installed.ok and "ERESOLVE" in installed.output:
        fitting = _fitting(shop, root, own)
        installed = shop.run(f"npm install {fitting}", timeout=180)
        target = fitting
    return Applied(f"installed {target} with npm") if installed.ok else None


def _fitting(shop: Workshop, name: str, peer_name: str) -> str:
    """The newest release of a package, stepping down in majors, whose peer range names the subject's major."""
    major = (shop.mission.version or "").split(".")[0]
    versions = _json(shop, f"npm view {name} versions --json")
    newest: dict[str, str] = {}
    for version in versions if isinstance(versions, list) else []:
        if "-" not in str(version):
            newest[str(version).split(".")[0]] = str(version)
    for version in sorted(newest.values(), key=lambda text: -int(text.split(".")[0]))[:6]:
        peers = _json(shop, f"npm view {name}@{version} peerDependencies --json")
        accepted = str(peers.get(peer_name, "")) if isinstance(peers, dict) else ""
        if re.search(rf"(?:^|[\s^~>=|v]){major}(?:\.|\s|$|x)", accepted):
            return f"{name}@{version}"
    return name


def _json(shop: Workshop, line: str) -> object:
    """What the registry answers; None when it does not."""
    try:
        value: object = json.loads(shop.quietly(line, timeout=60).output)
    except ValueError:
        return None
    return value


def engine_strict(shop: Workshop, match: re.Match[str], _result: Result, _argument: str) -> Applied | None:
    """Only a warning unless strict: let it be a warning. What it really does decides."""
    if shop.env.get("NPM_CONFIG_ENGINE_STRICT") == "false":
        return None
    shop.env["NPM_CONFIG_ENGINE_STRICT"] = "false"
    shop.env["YARN_IGNORE_ENGINES"] = "true"
    return Applied(f"tried it on this Node all the same ({match.group(0)[:60]})")


def node_gyp(shop: Workshop, _match: re.Match[str], _result: Result, _argument: str) -> Applied | None:
    """Install the tools that compile native modules."""
    done = debian.install(shop, "build-essential", "python3")
    include = shop.run("dirname $(dirname $(readlink -f $(command -v node)))", timeout=20, show=False).output.strip()
    if include and shop.run(f"test -f {include}/include/node/node.h", timeout=10, show=False).ok:
        shop.env["npm_config_nodedir"] = include
        return Applied("pointed node-gyp to this Node's own headers")
    return Applied("installed a compiler for native modules") if done else None


def browser(shop: Workshop, _match: re.Match[str], result: Result, _argument: str) -> Applied | None:
    """Skip the download and use Debian's Chromium."""
    if "PUPPETEER_EXECUTABLE_PATH" in shop.lasting or not debian.install(shop, "chromium"):
        return None
    for name in ("PUPPETEER_SKIP_DOWNLOAD", "PUPPETEER_SKIP_CHROMIUM_DOWNLOAD", "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD"):
        shop.keep(name, "1")
    for name in ("PUPPETEER_EXECUTABLE_PATH", "CHROME_PATH", "CHROME_BIN"):
        shop.keep(name, "/usr/bin/chromium")
    return Applied("skipped the download and used Debian's chromium", result.command)


def ignore_scripts(_shop: Workshop, _match: re.Match[str], result: Result, _argument: str) -> Applied | None:
    """Install without the script that failed; what runs afterwards decides."""
    if "npm " not in result.command or "--ignore-scripts" in result.command:
        return None
    return Applied("installed without install scripts", f"{result.command} --ignore-scripts")


def no_frozen(_shop: Workshop, _match: re.Match[str], result: Result, _argument: str) -> Applied | None:
    """Install by the manifest when the lock file does not fit it."""
    command = result.command.replace("npm ci", "npm install").replace("--frozen-lockfile", "--no-frozen-lockfile")
    command = command.replace("--immutable", "")
    return Applied("installed by the manifest instead of the lock file", command) if command != result.command else None


def package_manager(shop: Workshop, _match: re.Match[str], result: Result, _argument: str) -> Applied | None:
    """Install yarn or pnpm with npm."""
    name = "pnpm" if "pnpm" in result.command else "yarn"
    version = "@9" if name == "pnpm" else ""
    done = shop.run(f"npm install -g {name}{version}", timeout=180).ok
    return Applied(f"installed {name} with npm") if done else None


def entry(shop: Workshop, match: re.Match[str], result: Result, _argument: str) -> Applied | None:
    """Give a bundler or compiler a small source of ours as its default entry."""
    name = match.group("entry").removeprefix("./")
    if not name or name.startswith("/") or ".." in name or not result.cwd:
        return None
    if "." not in name.rsplit("/", 1)[-1]:
        name += "/index.js" if name.endswith(("src", "lib", "app")) else ".js"
    path = Path(result.cwd) / name
    if path.exists():
        return None
    path.parent.mkdir(parents=True, exist_ok=True)
    shop.made[name] = "const answer = 40 + 2;\nconsole.log('answer', answer);\n"
    announce.write(path, shop.made[name])
    return Applied(f"gave it a small {name} of ours as its input", result.command)


REMEDIES: dict[str, Remedy] = {
    "entry": entry,
    "peer": peer, "node_module": node_module, "engine_strict": engine_strict, "node_gyp": node_gyp,
    "browser": browser, "ignore_scripts": ignore_scripts, "no_frozen": no_frozen, "package_manager": package_manager,
}  # fmt: skip
