"""PHP: composer where there is something to install, PHPUnit or the project's own script for tests, ``php -S``."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import counts, look
from .plan import Plan, Server, Tests, Tool

if TYPE_CHECKING:
    from ..workshop import Workshop

PHP = Tool("php", ("php-cli",))
COMPOSER = Tool("composer", ("composer",))
#: Extensions that are part of Debian's ``php-cli`` itself.
_BUILT_IN = frozenset({
    "calendar", "core", "ctype", "date", "exif", "ffi", "fileinfo", "filter", "ftp", "gettext", "hash", "iconv", "json",
    "libxml", "openssl", "pcntl", "pcre", "pdo", "phar", "posix", "random", "readline", "reflection", "session",
    "shmop", "sockets", "sodium", "spl", "standard", "sysvmsg", "sysvsem", "sysvshm", "tokenizer", "zlib",
})  # fmt: skip
#: Extensions whose Debian package has another name.
_PACKAGES = {"dom": "xml", "simplexml": "xml", "xmlreader": "xml", "xmlwriter": "xml", "pdo_sqlite": "sqlite3",
             "pdo_mysql": "mysql", "mysqli": "mysql", "pdo_pgsql": "pgsql", "bz2": "bz2"}  # fmt: skip


def plan(shop: Workshop) -> Plan | None:
    """A plan for a tree with a ``composer.json``, or with PHP files in the usual places."""
    project = shop.project
    composed = (project / "composer.json").is_file()
    pages = _pages(project)
    if not (composed or pages or any(project.glob("*.php"))):
        return None
    manifest = manifest_of(project)
    fetches = bool(packages(manifest, "require") or packages(manifest, "require-dev"))
    install: tuple[str, ...] = ("php --version",)
    if composed:
        install = ("composer install --no-interaction --no-progress",)
        if not fetches:
            install = ("composer dump-autoload --no-interaction",)
    return Plan(
        ecosystem="php",
        confidence=(66 if (project / "composer.lock").is_file() else 61) if composed else 30,
        tools=(PHP, COMPOSER, Tool("unzip", ("unzip",))) if composed else (PHP,),
        prepare=prepare if composed else None,
        install=install,
        paths=("vendor/bin", "bin"),
        programs=("php", *(Path(name).name for name in _bins(manifest))),
        packages=(str(manifest.get("name") or project.name),),
        tests=_tests(project, manifest, fetches=fetches),
        servers=pages,
        environment={"COMPOSER_ALLOW_SUPERUSER": "1", "COMPOSER_NO_INTERACTION": "1", "COLUMNS": "200"},
    )


def manifest_of(project: Path) -> dict[str, Any]:
    """The parsed ``composer.json``; empty when it cannot be read."""
    try:
        value = json.loads(look.text(project / "composer.json") or "{}")
    except json.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def packages(manifest: dict[str, Any], table: str) -> dict[str, str]:
    """Requirements that are packages, without PHP itself and its extensions."""
    wanted = manifest.get(table)
    found = wanted.items() if isinstance(wanted, dict) else ()
    return {str(name): str(spec) for name, spec in found if "/" in str(name)}


def extensions(manifest: dict[str, Any]) -> list[str]:
    """Debian packages for the extensions that the manifest requires."""
    names: list[str] = []
    for table in ("require", "require-dev"):
        wanted = manifest.get(table)
        for key in wanted if isinstance(wanted, dict) else ():
            name = str(key).lower().removeprefix("ext-")
            if str(key).lower().startswith("ext-") and name not in _BUILT_IN:
                names.append("php-" + _PACKAGES.get(name, name).replace("_", "-"))
    return list(dict.fromkeys(names))


def prepare(shop: Workshop) -> None:
    """Install the extensions that the manifest requires."""
    from .. import debian  # noqa: PLC0415 — plans are made without the machine; only this step needs it

    for package in extensions(manifest_of(shop.project)):
        trouble = shop.draft.met(f"php:{package}", f"composer.json requires the extension of Debian's {package}")
        if debian.install(shop, package):
            trouble.fixed, trouble.how = True, f"installed Debian's {package}"


def _bins(manifest: dict[str, Any]) -> list[str]:
    said = manifest.get("bin") or []
    return [str(said)] if isinstance(said, str) else [str(name) for name in said]


def _tests(project: Path, manifest: dict[str, Any], *, fetches: bool) -> tuple[Tests, ...]:
    found: list[Tests] = []
    configured = look.first(project, "phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml")
    if "pestphp/pest" in packages(manifest, "require-dev"):
        found.append(Tests("vendor/bin/pest --colors=never", counts.phpunit))
    if configured or any(project.glob("tests/**/*Test.php")):
        where = "" if configured else " tests"
        boot = "" if configured or not (project / "composer.json").is_file() else " --bootstrap vendor/autoload.php"
        if fetches:
            found.append(Tests(f"vendor/bin/phpunit{boot}{where}", counts.phpunit))
        found.append(Tests(f"phpunit{boot}{where}", counts.phpunit))
    scripts = manifest.get("scripts")
    named = [n for n in ("test", "tests", "phpunit", "check") if n in scripts] if isinstance(scripts, dict) else []
    found += [Tests(f"composer --no-interaction run-script {name}", counts.any_runner) for name in named[:1]]
    for name in ("tests/run.php", "test/run.php", "tests/test.php", "tests.php", "test.php"):
        if (project / name).is_file():
            found.append(Tests(f"php {name}", counts.any_runner))
            break
    return tuple(found)


def _pages(project: Path) -> tuple[Server, ...]:
    if (project / "artisan").is_file():
        return (Server("php artisan serve --host=127.0.0.1 --port=8000"),)
    for directory in ("public", "web", "www", "htdocs", "."):
        index = project / directory / "index.php"
        if index.is_file() and not re.search(r"\$argv|\$argc|PHP_SAPI\s*===?\s*['\"]cli", look.text(index)):
            return (Server(f"php -S 127.0.0.1:8000 -t {directory}"),)
    return ()
