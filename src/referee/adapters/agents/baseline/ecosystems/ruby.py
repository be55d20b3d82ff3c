"""Ruby: bundler or plain ``ruby``, tests by RSpec, Rake, or test files run one by one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from . import counts, look
from .plan import Plan, Server, Tests, Tool

if TYPE_CHECKING:
    from ..workshop import Workshop

RUBY = Tool("ruby", ("ruby",))
BUNDLE = Tool("bundle", ("bundler", "ruby-bundler"))


def plan(shop: Workshop) -> Plan | None:
    """A plan for a tree with a ``Gemfile``, a gemspec, a ``Rakefile`` or Ruby programs."""
    project = shop.project
    bundled = (project / "Gemfile").is_file()
    specs = sorted(project.glob("*.gemspec"))
    rack = (project / "config.ru").is_file()
    scripts = programs_of(project)
    if not (bundled or specs or (project / "Rakefile").is_file() or rack or any(project.glob("*.rb"))):
        return None
    needs = bundled and bool(gems(project))
    call = "bundle exec " if needs else ""
    tests = _tests(project, call)
    tools = [RUBY]
    if needs:
        tools.append(BUNDLE)
    elif any("rake" in entry.command for entry in tests):
        tools.append(Tool("rake", ("rake",)))
    web = _web(project, call, rack=rack)
    return Plan(
        ecosystem="ruby",
        confidence=(68 if (project / "Gemfile.lock").is_file() or scripts else 60) if bundled or specs else 35,
        tools=tuple(tools),
        install=_install(project, scripts, needs=needs),
        paths=("bin", "exe"),
        programs=("ruby", *(path.name for path in scripts)),
        packages=tuple(path.stem for path in specs),
        tests=tests,
        servers=web,
        environment={"BUNDLE_SILENCE_ROOT_WARNING": "1", "RUBYOPT": "-W0"},
    )


def gems(project: Path) -> dict[str, str]:
    """Gems that the ``Gemfile`` and the gemspecs name: name -> first version requirement (may be empty)."""
    found: dict[str, str] = {}
    for path in [project / "Gemfile", *sorted(project.glob("*.gemspec"))]:
        code = re.sub(r"^\s*#.*$", "", look.text(path), flags=re.MULTILINE)
        pattern = (
            r"(?:^\s*gem|\.add_(?:runtime_|development_)?dependency)[ (]+['\"]([\w.-]+)['\"]"
            r"(?:\s*,\s*['\"]([^'\"]*)['\"])?"
        )
        for match in re.finditer(pattern, code, re.MULTILINE):
            found.setdefault(match.group(1), match.group(2) or "")
    return found


def programs_of(project: Path) -> list[Path]:
    """Ruby programs in ``exe`` and ``bin``."""
    found = []
    for directory in (project / "exe", project / "bin"):
        entries = sorted(directory.glob("*")) if directory.is_dir() else []
        named = [path for path in entries if path.is_file() and path.name not in {"setup", "console"}]
        found += [path for path in named if "ruby" in look.text(path)[:60]]
    return found


def _install(project: Path, scripts: list[Path], *, needs: bool) -> tuple[str, ...]:
    if needs:
        return ("bundle install",)
    checked = [*scripts, *sorted((project / "lib").rglob("*.rb"))[:40], *sorted(project.glob("*.rb"))[:20]]
    names = " ".join(f"'{path.relative_to(project)}'" for path in checked if "'" not in path.name)
    return (f'for file in {names}; do ruby -wc "$file" || exit 1; done',) if names else ("ruby --version",)


def _tests(project: Path, call: str) -> tuple[Tests, ...]:
    found: list[Tests] = []
    rakefile = look.text(project / "Rakefile")
    if any((project / "spec").rglob("*_spec.rb")):
        found.append(Tests(f"{call}rspec", counts.ruby))
    if re.search(r"TestTask|task[ (:'\"]+(?:default\b.*)?(?:test|spec)\b", rakefile):
        name = "test" if re.search(r"TestTask|task[ (:'\"]+test", rakefile) else "spec"
        found.append(Tests(f"{call}rake {name}", counts.any_runner))
    files = sorted({*project.glob("test/**/test_*.rb"), *project.glob("test/**/*_test.rb")})[:200]
    if files:
        names = " ".join(f"'{path.relative_to(project)}'" for path in files if "'" not in path.name)
        lines = f'for file in {names}; do {call}ruby -Ilib -Itest "$file" || exit 1; done'
        found.append(Tests(lines, counts.any_runner))
    return tuple(found)


def _web(project: Path, call: str, *, rack: bool) -> tuple[Server, ...]:
    servers: list[Server] = []
    if (project / "bin/rails").is_file():
        servers.append(Server("ruby bin/rails server -b 127.0.0.1"))
    if rack:
        servers.append(Server(f"{call}rackup -o 127.0.0.1"))
    serves = r"require ['\"](?:sinatra|webrick|puma|socket)['\"]|TCPServer"
    servers += [Server(f"{call}ruby {p.name}") for p in sorted(project.glob("*.rb")) if re.search(serves, look.text(p))]
    return tuple(servers[:3])
