"""Java sources without their build tool: ``javac`` and JUnit of Debian, where the tool's registry is out of reach."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import counts, java, look
from .plan import Plan, Tests

if TYPE_CHECKING:
    from ..workshop import Workshop

_OUT = "referee-classes"


def plan(shop: Workshop) -> Plan | None:
    """A second plan for a tree with a build tool, tried after the first."""
    project = shop.project
    built = look.first(project, "pom.xml", "build.gradle", "build.gradle.kts")
    main, test = project / "src/main/java", project / "src/test/java"
    if built is None or not main.is_dir():
        return None
    text = "\n".join(look.text(path) for path in look.files(test, ".java")) if test.is_dir() else ""
    five = "org.junit.jupiter" in text
    listed = "find src/test/java -name '*.java' > /tmp/tests.txt"
    compiled = f"{listed} && javac -cp '{_OUT}:/usr/share/java/*' -d {_OUT} @/tmp/tests.txt"
    names = (path.relative_to(test).with_suffix("") for path in look.files(test, "Test.java", "Tests.java"))
    classes = " ".join(str(name).replace("/", ".") for name in names)
    runner = f"java -cp '{_OUT}:/usr/share/java/*' org.junit.runner.JUnitCore {classes}"
    if five:
        runner = (
            f"java -cp '{_OUT}:/usr/share/java/*' org.junit.platform.console.ConsoleLauncher --disable-banner "
            f"--scan-classpath={_OUT}"
        )
    resources = f"if [ -d src/main/resources ]; then cp -a src/main/resources/. {_OUT}/; fi"
    return Plan(
        ecosystem="java",
        confidence=25,
        tools=(java.JDK,),
        prepare=_junit5 if five else _junit4,
        install=(
            f"mkdir -p {_OUT} && {resources} && find src/main/java -name '*.java' > /tmp/sources.txt",
            f"javac -encoding UTF-8 -cp '/usr/share/java/*' -d {_OUT} @/tmp/sources.txt",
        ),
        programs=("java",),
        tests=(Tests(f"{compiled} && {runner}", counts.junit_console),) if classes else (),
        invocations=tuple(f"java -cp {_OUT} {name}" for name in java.main_classes(project)[:2]),
    )


def _junit4(shop: Workshop) -> None:
    from .. import debian  # noqa: PLC0415 — plans are made without the machine; only this step needs it

    debian.install(shop, "junit4")


def _junit5(shop: Workshop) -> None:
    from .. import debian  # noqa: PLC0415 — as above

    debian.install(shop, "junit5")
