"""Remedies that speak to pip: constraints for builds and for dependencies that moved on."""

from __future__ import annotations

import re
import sys
import tarfile
import time
import zipfile
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from . import debian
from .terminal import Result
from .workshop import Applied, Remedy

if TYPE_CHECKING:
    from .workshop import Workshop

#: Import name -> distribution, where the two differ and the library is widely used.
DISTRIBUTIONS = {
    "yaml": "PyYAML", "PIL": "pillow", "cv2": "opencv-python-headless", "sklearn": "scikit-learn",
    "bs4": "beautifulsoup4", "dateutil": "python-dateutil", "dotenv": "python-dotenv", "psycopg2": "psycopg2-binary",
    "psycopg": "psycopg[binary]",
    "MySQLdb": "mysqlclient", "serial": "pyserial", "Crypto": "pycryptodome", "git": "GitPython", "jwt": "PyJWT",
    "pkg_resources": "setuptools<81", "skimage": "scikit-image", "attr": "attrs", "OpenSSL": "pyOpenSSL",
    "zmq": "pyzmq", "usb": "pyusb", "magic": "python-magic", "docx": "python-docx", "pptx": "python-pptx",
    "slugify": "python-slugify", "multipart": "python-multipart", "socks": "PySocks", "google.protobuf": "protobuf",
}  # fmt: skip
#: Libraries that examples of all walks use without saying so.
_COMMON = frozenset(
    """
    numpy pandas requests matplotlib scipy flask django aiohttp httpx pytest sqlalchemy redis six pytz jinja2
    click fastapi uvicorn starlette tornado trio anyio pydantic rich tqdm lxml attrs markdown setuptools networkx
    psutil cffi cryptography packaging typing_extensions polars pyarrow twisted gevent
    """.split()  # noqa: SIM905 — a word list reads better as words
)
_BUILD = "/work/tools/build-constraints.txt"
_RUN = "/work/tools/constraints.txt"


def pip(shop: Workshop) -> str:
    """The project's own pip."""
    return f"{shop.project}/.venv/bin/python -m pip"


def _constrain(shop: Workshop, path: str, variable: str, line: str) -> None:
    shop.run("mkdir -p /work/tools", timeout=20, show=False)
    shop.run(f"echo '{line}' >> {path}", timeout=20)
    shop.env[variable] = path


def build_tool(shop: Workshop, _match: re.Match[str], result: Result, argument: str) -> Applied | None:
    """Constrain a tool inside pip's isolated builds."""
    if "pip" not in result.command and "build" not in result.command:
        return None
    _constrain(shop, _BUILD, "PIP_CONSTRAINT", argument)
    if "setup.py egg_info" in result.output or "setup.py bdist_wheel" in result.output:
        # An old setup.py is built with what stands in the environment itself, not in isolation.
        shop.run(f"{pip(shop)} install '{argument}' wheel", timeout=240)
    return Applied(f"constrained the build to {argument}")


def build_ladder(shop: Workshop, match: re.Match[str], result: Result, _argument: str) -> Applied | None:
    """When a build fails for no reason we know, go back in build tools one rung at a time."""
    if "pip" not in result.command or ("error: command" in result.output and "failed with exit code" in result.output):
        return None
    for rung in ("Cython<3", "setuptools<70", "setuptools<58", "numpy<2"):
        key = f"build_tool:{rung}"
        if key not in shop.tried:
            shop.tried.add(key)
            shop.tried.discard("build_ladder:")
            return build_tool(shop, match, result, rung)
    return None


def build_module(shop: Workshop, match: re.Match[str], result: Result, _argument: str) -> Applied | None:
    """Install what a build imports without declaring it, and build without isolation."""
    module = match.group("module").split(".")[0]
    name = DISTRIBUTIONS.get(module, module)
    extra = "'setuptools<70' wheel" if module != "setuptools" else "wheel"
    if "pip install" not in result.command or "--no-build-isolation" in result.command:
        return None
    if not shop.run(f"{pip(shop)} install {extra} '{name}'", timeout=300).ok:
        return None
    return Applied(
        f"built without isolation, with {name}",
        result.command.replace("pip install", "pip install --no-build-isolation", 1),
    )


def venv(shop: Workshop, _match: re.Match[str], result: Result, _argument: str) -> Applied | None:
    """Move into a virtual environment."""
    if not shop.run(f"python3 -m venv {shop.project}/.venv", timeout=120).ok:
        return None
    path = f"{shop.project}/.venv/bin"
    if path not in shop.paths:
        shop.paths.insert(0, path)
    return Applied(
        "made a virtual environment in .venv", re.sub(r"/usr/bin/python3?", f"{path}/python", result.command)
    )


def other_python(shop: Workshop, match: re.Match[str], _result: Result, _argument: str) -> None:
    """Another interpreter is not to be had from Debian; say so."""
    for minor in (14, 13, 12, 10, 9):
        if shop.run(f"command -v python3.{minor}", timeout=10, show=False).ok:
            shop.draft.note(f"python3.{minor} is there but was not tried")
    shop.stops["python"] = match.group(0).strip()[:200]


def pkg_resources(shop: Workshop, match: re.Match[str], result: Result, _argument: str) -> Applied | None:
    """pkg_resources is needed in the build, or at run time: give it an older setuptools."""
    if "pip" in result.command and "Getting requirements" in result.output:
        return build_tool(shop, match, result, "setuptools<81")
    done = shop.run(f"{pip(shop)} install 'setuptools<81'", timeout=200).ok
    return Applied("installed setuptools<81") if done else None


def pretend_version(shop: Workshop, _match: re.Match[str], _result: Result, _argument: str) -> Applied | None:
    """Tell the version tools the version that the subject is pinned to, or that its own files state."""
    version = shop.mission.version or stated_version(shop)
    if not version:
        return None
    for name in ("SETUPTOOLS_SCM_PRETEND_VERSION", "PBR_VERSION", "PDM_BUILD_SCM_VERSION",
                 "UV_DYNAMIC_VERSIONING_BYPASS",
                 "POETRY_DYNAMIC_VERSIONING_BYPASS", "VERSIONEER_OVERRIDE"):  # fmt: skip
        shop.env[name] = version
    return Applied(f"set SETUPTOOLS_SCM_PRETEND_VERSION={version} (and its kin)")


def stated_version(shop: Workshop) -> str:
    """The version that PKG-INFO, the subject's facts or the newest entry of the changelog state; empty if none."""
    info = shop.project / "PKG-INFO"
    if info.is_file():
        found = re.search(r"^Version: (\S+)", info.read_text(errors="replace"), re.MULTILINE)
        if found:
            return found.group(1)
    said = re.search(r"\b(?:release|version) v?(\d+\.\d+(?:\.\d+)*)\b", shop.prose)
    if said:
        return said.group(1)
    for pattern in ("CHANGE*", "HISTORY*", "NEWS*", "docs/CHANGE*", "docs/change*", "Change*", "change*"):
        for path in sorted(shop.project.glob(pattern)):
            if path.is_file():
                found = re.search(
                    r"(?<![\w.])v?(\d+\.\d+(?:\.\d+)?)(?![\w.]*\d)", path.read_text(errors="replace")[:20000]
                )
                if found:
                    return found.group(1)
    return ""


def python_module(shop: Workshop, match: re.Match[str], result: Result, _argument: str) -> Applied | None:
    """Install a missing module: one the README documents, the project's extras name, or examples commonly use."""
    module = match.group("module")
    low = module.lower()
    name = DISTRIBUTIONS.get(module, module)
    plain = re.split(r"[<>=\[]", name.lower())[0]
    mentioned = {low, plain, low.replace("_", "-")} & (shop.documented | _COMMON)
    said = re.search(rf"(?<![\w./-]){re.escape(low)}(?![\w/-])", shop.prose.lower()) and len(low) > 3  # noqa: PLR2004
    tests = "pytest" in result.command or "unittest" in result.command
    before = result.output[: match.start()].rstrip().splitlines()[-4:]
    inside = any("site-packages" in line and "File " in line for line in before)  # a library imports it, no example
    if not (mentioned or module in DISTRIBUTIONS or said or tests or inside):
        return None
    if "pip install" in result.command and "install -e" not in result.command and module != "pkg_resources":
        return build_module(shop, match, result, "")
    if shop.run(f"{pip(shop)} install '{name}'", timeout=shop.mission.slice(0.1, least=180)).ok:
        return Applied(f"installed {name} with pip")
    if not name.endswith("-binary") and debian.known(shop, f"python3-{plain}"):
        return None
    return None


def pip_named(shop: Workshop, match: re.Match[str], _result: Result, _argument: str) -> Applied | None:
    """Install what the message itself says to install with pip."""
    name = match.group("module").rstrip(".,")
    if re.search(r"\.(txt|toml|whl)$|^-", name):
        return None
    done = shop.run(f"{pip(shop)} install '{name}'", timeout=shop.mission.slice(0.1, least=180)).ok
    return Applied(f"installed {name} with pip") if done else None


def older_dependency(shop: Workshop, match: re.Match[str], result: Result, _argument: str) -> Applied | None:
    """Go back in the releases of the dependency that moved on, one minor series at a time, until the name is back."""
    module = match.group("module").split(".")[0]
    probe = f"{match.group('module')}:{match.group('name')}"
    listing = "import importlib.metadata as m,sys;print(next(iter(m.packages_distributions().get(sys.argv[1],[])),''))"
    found = shop.run(f'.venv/bin/python -c "{listing}" {module}', timeout=30, show=False).output.strip()
    own = (shop.mission.package or "").lower().replace("_", "-")
    if module in sys.stdlib_module_names:
        shop.stops[f"interpreter:{probe}"] = (
            f"Python {sys.version_info.major}.{sys.version_info.minor} has no {probe.replace(':', '.')} any more"
        )
        return None
    if not found or found.lower().replace("_", "-") == own:
        return older_all(shop, match, result, "") if shop.strict else None
    versions = _series(shop, found)
    check = (
        f"import importlib,sys; m=importlib.import_module('{match.group('module')}'); "
        f"sys.exit(0 if hasattr(m,'{match.group('name')}') else 1)"
    )
    for version in versions[:6]:
        if shop.mission.left() < 60:  # noqa: PLR2004 — a minute is needed to say what happened
            return None
        if not shop.run(f"{pip(shop)} install -q '{found}=={version}'", timeout=240).ok:
            continue
        has_it = shop.run(f'.venv/bin/python -c "{check}"', timeout=60, show=False)
        missing = "No module named" in has_it.output and match.group("module") in has_it.output
        if has_it.ok or (not missing and "cannot import name" in has_it.output):
            return Applied(f"constrained {found} to {version}, which still offers {probe.split(':')[1]}")
    return older_all(shop, match, result, "")


def _series(shop: Workshop, distribution: str) -> list[str]:
    """The newest release of each minor series below the installed one, newest first."""
    listed = shop.quietly(f"{pip(shop)} index versions {distribution}", timeout=60).output
    all_ = re.search(r"Available versions: ([^\n]+)", listed)
    have = re.search(r"INSTALLED:\s+(\S+)", listed)
    if not all_:
        return []
    seen: set[tuple[str, ...]] = set()
    ordered = []
    for version in (text.strip() for text in all_.group(1).split(",")):
        series = tuple(version.split(".")[:2])
        if re.search(r"[a-z]", version) or series in seen:
            continue
        seen.add(series)
        ordered.append((series, version))
    current = tuple(have.group(1).split(".")[:2]) if have else ordered[0][0]
    below = [version for series, version in ordered if _key(series) < _key(current)]
    majors = [v for i, v in enumerate(below) if i == 0 or v.split(".")[0] != below[i - 1].split(".")[0]]
    return below[:3] + [version for version in majors if version not in below[:3]]


def _key(series: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(int(part) if part.isdigit() else 0 for part in series)


def released(shop: Workshop) -> datetime | None:
    """When the pinned artifact was made, by the newest honest date inside it; None when it keeps none."""
    path = shop.mission.artifact
    if path is None:
        return None
    stamps: list[float] = []
    if path.suffix in {".whl", ".zip"}:
        with zipfile.ZipFile(path) as archive:
            stamps = [datetime(*info.date_time, tzinfo=UTC).timestamp() for info in archive.infolist()]
    elif tarfile.is_tarfile(path):
        with tarfile.open(path) as tar:
            stamps = [float(member.mtime) for member in tar]
    newest = max(stamps, default=0.0)
    floor = datetime(2008, 1, 1, tzinfo=UTC).timestamp()
    fixed = datetime(2020, 2, 2, tzinfo=UTC).timestamp()  # a build tool's constant, no date
    if newest < floor or newest > time.time() or abs(newest - fixed) < 86400 * 2:
        return None
    return datetime.fromtimestamp(newest, tz=UTC)


def older_all(shop: Workshop, _match: re.Match[str], result: Result, _argument: str) -> Applied | None:
    """Resolve all dependencies as they were a month after the artifact was made."""
    made = released(shop)
    artifact = shop.mission.artifact
    if made is None or artifact is None or "older_all" in shop.tried or not shop.strict:
        return None
    shop.tried.add("older_all")
    day = datetime.fromtimestamp(made.timestamp() + 30 * 86400, tz=UTC).strftime("%Y-%m-%d")
    tool = "/work/tools/bin/uv"
    shop.run(f"test -x {tool} || (python3 -m venv /work/tools && /work/tools/bin/pip install -q uv)", timeout=180)
    line = f"{tool} pip install --python .venv/bin/python --exclude-newer {day} --reinstall {artifact}"
    if not shop.run(line, timeout=shop.mission.slice(0.15, least=240)).ok:
        return None
    return Applied(f"installed the dependencies as they were on {day}", result.command)


REMEDIES: dict[str, Remedy] = {
    "build_tool": build_tool, "build_ladder": build_ladder, "build_module": build_module, "venv": venv,
    "other_python": other_python, "pkg_resources": pkg_resources, "pretend_version": pretend_version,
    "python_module": python_module, "pip_named": pip_named, "older_dependency": older_dependency,
    "older_all": older_all,
}  # fmt: skip


def constrain(shop: Workshop, _match: re.Match[str], _result: Result, argument: str) -> Applied | None:
    """Install a dependency below the bound that the table names."""
    _constrain(shop, _RUN, "PIP_CONSTRAINT", argument)
    done = shop.run(f"{pip(shop)} install '{argument}'", timeout=300).ok
    return Applied(f"constrained to {argument}") if done else None


REMEDIES["constrain"] = constrain
