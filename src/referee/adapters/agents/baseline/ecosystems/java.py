"""Java: Maven, Gradle, or plain ``javac`` where there is no build tool."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING

from . import counts, look
from .plan import Plan, Server, Tests, Tool

if TYPE_CHECKING:
    from ..workshop import Workshop

JDK = Tool("javac", ("default-jdk-headless",))
_SERVES = r"SpringApplication\.run|HttpServer\.create|ServerSocket\(|Javalin\.create|Undertow\.builder|Jetty"
#: Prints the opening tag of every result file that Gradle wrote: the only place where it counts.
RESULTS = "find . -path '*test-results*' -name 'TEST-*.xml' -exec grep -ho '<testsuite [^>]*>' {} +"


def plan(shop: Workshop) -> Plan | None:
    """A plan for a tree with a ``pom.xml``, a Gradle build or plain sources."""
    project = shop.project
    if (project / "pom.xml").is_file():
        return _maven(project)
    if look.first(project, "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"):
        return _gradle(project)
    return _plain(project)


def _maven(project: Path) -> Plan:
    wrapper = (project / "mvnw").is_file()
    jar = jar_of(project / "pom.xml")
    runs = f"java -jar target/{jar}" if jar and main_classes(project) else ""
    serves = look.matches(look.files(project, ".java"), _SERVES)
    return Plan(
        ecosystem="java-maven",
        confidence=65 if wrapper else 62,
        tools=(JDK, Tool("mvn", ("maven",))),
        install=("mvn -B -ntp -DskipTests package",),
        tests=(Tests("mvn -B -ntp test", counts.surefire, 0.4),),
        servers=(Server(runs),) if runs and serves else (),
        invocations=_invocations(runs, "target/classes", project) if not serves else (),
        programs=("java",),
        environment={"MAVEN_OPTS": "-Djansi.mode=strip", "MAVEN_ARGS": "-Dstyle.color=never"},
    )


def _gradle(project: Path) -> Plan:
    wrapper = (project / "gradlew").is_file()
    call = "sh ./gradlew" if wrapper else "gradle"
    serves = look.matches(look.files(project, ".java", ".kt"), _SERVES)
    application = bool(re.search(r"['\"]application['\"]|\bapplication\b", _gradle_text(project)))
    flags = "--no-daemon --console=plain"
    started = f"{call} {flags} -q run" if application else ""
    return Plan(
        ecosystem="java-gradle",
        confidence=65 if wrapper else 62,
        tools=(JDK,) if wrapper else (JDK, Tool("gradle", ("gradle",))),
        install=(f"{call} {flags} assemble",),
        tests=(Tests(f"{call} {flags} cleanTest test && {RESULTS}", counts.junit_xml, 0.4),),
        servers=(Server(f"{call} {flags} run"),) if application and serves else (),
        invocations=() if serves else _invocations(started, "build/classes/java/main", project),
        programs=("java",),
    )


def _plain(project: Path) -> Plan | None:
    sources = list(look.files(project, ".java"))
    if not sources or not all(path.is_relative_to(project) for path in sources):
        return None
    first = ("src/main/java", "src", ".")
    root = next((name for name in first if any(path.is_relative_to(project / name) for path in sources)), ".")
    classes = main_classes(project)
    where = f"{root}" if root != "." else "."
    prune = r"-not -path '*/test/*' -not -path './referee-classes/*' -not -name '*Test.java'"
    return Plan(
        ecosystem="java",
        confidence=45,
        tools=(JDK,),
        install=(
            f"find {where} -name '*.java' {prune} > /tmp/sources.txt",
            "javac -encoding UTF-8 -d referee-classes @/tmp/sources.txt",
        ),
        programs=("java",),
        invocations=tuple(f"java -cp referee-classes {name}" for name in classes[:2]),
    )


def _gradle_text(project: Path) -> str:
    return "\n".join(
        look.text(path) for path in sorted(project.glob("*.gradle*")) + sorted(project.glob("*/*.gradle*"))[:20]
    )


def _invocations(runs: str, classes: str, project: Path) -> tuple[str, ...]:
    by_class = tuple(f"java -cp {classes} {name}" for name in main_classes(project)[:2])
    return (runs, *by_class) if runs else by_class


def main_classes(project: Path) -> list[str]:
    """Fully qualified names of the classes that can be started, outside tests."""
    found = []
    for path in look.files(project, ".java"):
        content = look.text(path)
        if "test" in path.parts or not re.search(r"public\s+static\s+void\s+main\s*\(", content):
            continue
        package = re.search(r"^\s*package\s+([\w.]+)\s*;", content, re.MULTILINE)
        found.append(f"{package.group(1)}.{path.stem}" if package else path.stem)
    return found


def jar_of(pom: Path) -> str:
    """The file name of the jar that a ``pom.xml`` builds; empty when it builds none or names it by properties."""
    root = _pom(pom)
    if root is None:
        return ""
    said = {child.tag.rpartition("}")[2]: (child.text or "").strip() for child in root}
    final = next((e.text or "" for e in root.iter() if e.tag.rpartition("}")[2] == "finalName"), "")
    if said.get("packaging", "jar") != "jar":
        return ""
    name = final.strip() or f"{said.get('artifactId', '')}-{said.get('version', '')}"
    return f"{name}.jar" if re.fullmatch(r"[\w.-]+", name) and not name.endswith("-") else ""


def release_of(project: Path) -> tuple[int, ...]:
    """The Java release that a ``pom.xml`` or Gradle build asks for; (0,) when it says none."""
    said = look.text(project / "pom.xml") + _gradle_text(project)
    found = re.findall(
        r"(?:<(?:maven\.compiler\.)?(?:release|source|target|java\.version)>|"
        r"languageVersion[^\d]{0,40}|(?:source|target)Compatibility[^\d\n]{0,30}|\.release(?:\.set\(| = ))"
        r"(?:1\.)?(\d+)",
        said,
    )
    return max((look.version(value) for value in found), default=(0,))


def _pom(path: Path) -> ET.Element | None:
    content = look.text(path)
    if "<!DOCTYPE" in content or "<!ENTITY" in content:
        return None
    try:
        return ET.fromstring(content)  # noqa: S314 — no document type, so no entities to expand
    except ET.ParseError:
        return None
