"""Perl: ``Makefile.PL`` or ``Build.PL`` where there is one, ``prove`` for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import counts, look
from .plan import Plan, Tests, Tool

if TYPE_CHECKING:
    from ..workshop import Workshop


def plan(shop: Workshop) -> Plan | None:
    """A plan for a Perl distribution."""
    project = shop.project
    maker = look.first(project, "Makefile.PL", "Build.PL")
    modules = sorted((project / "lib").rglob("*.pm"))
    if maker is None and not (look.first(project, "cpanfile", "dist.ini") and modules):
        return None
    steps: tuple[str, ...] = ("perl -Ilib -c " + str(modules[0].relative_to(project)),) if modules else ()
    tests = [Tests("prove -lvr t", counts.tap)] if (project / "t").is_dir() else []
    if maker is not None:
        made = ("perl Makefile.PL", "make") if maker.name == "Makefile.PL" else ("perl Build.PL", "./Build")
        steps = made
        if tests:
            tests.insert(0, Tests("prove -bvr t", counts.tap))
    scripts = [path for name in ("bin", "script") for path in sorted((project / name).glob("*")) if path.is_file()]
    return Plan(
        ecosystem="perl",
        confidence=62 if maker else 58,
        tools=(Tool("perl", ("perl",)), Tool("prove", ("perl",)), Tool("make", ("make",))),
        install=steps,
        paths=("blib/script", "bin", "script"),
        programs=(*(path.name for path in scripts), *(f"perl {path.relative_to(project)}" for path in scripts)),
        tests=tuple(tests),
        environment={"PERL_MM_USE_DEFAULT": "1", "NONINTERACTIVE_TESTING": "1", "PERL5LIB": f"{project}/lib"},
    )
