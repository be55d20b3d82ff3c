"""Carries an ecosystem's plan out: tools, install, check, README, tests, server, proof, report."""

from __future__ import annotations

import re
from pathlib import Path

from . import announce, debian, documents
from .ecosystems import plans
from .ecosystems.plan import Plan, Tests
from .examples import Tried
from .payload.verify import steady
from .proof import ENOUGH, PILLOW, prove
from .quickstart import Quickstart, place_payload, trivial, verify_line
from .report import plural
from .shows import echoes, hollow
from .terminal import Result, say
from .workshop import Workshop, failure_sentence

#: Fewer docstrings than this are an accident, not a verification.
FEW = 3
#: At most so many failures of one kind are listed one by one.
MOST = 8
#: Words by which a program says that it did not do its work, whatever its status.
_ASKS = re.compile(
    r"\b(must be installed|not installed|need to install|error|usage|not found|invalid|unknown|missing|required|failed|"
    r"cannot|can't|unable|no such|help|unrecognized|traceback|exception|undefined)\b", re.IGNORECASE)  # fmt: skip
#: Words of a README that tell which kind of file a program takes, and a small text of each kind.
_INPUTS = {"javascript": ".js", "typescript": ".ts", "css": ".css", "markdown": ".md", "html": ".html", "json": ".json",
           "python": ".py", "yaml": ".yaml", "test framework": ".test.js", "test runner": ".test.js"}  # fmt: skip
_CONTENTS = {
    ".test.js": "describe('suite', () => { it('{}', () => { if (1 + 1 !== 2) throw Error('no') }) })\n",
    ".js": "const {}   =  40+2;\nconsole.log( {} )\n", ".ts": "const {}: number  = 42;\nconsole.log({})\n",
    ".css": ".{}{color:red;margin:0 auto}\n", ".md": "# {}\n\nsome *text*\n", ".html": "<p>{}</p>\n",
    ".json": '{"{}":[1,2]}\n', ".py": "{}  =  40+2\nprint( {} )\n", ".yaml": "{}:   [1,2]\n",
}  # fmt: skip
#: From this confidence on, a plan whose install worked is the tree's own way.
_SURE = 50


def bring_up(shop: Workshop) -> None:
    """Try the plans, the surest first, until one is verified."""
    found = plans(shop)
    if not found:
        shop.draft.note("no manifest of an ecosystem that baseline knows was found")
        return
    for number, plan in enumerate(found[:4]):
        if number and shop.draft.installed and found[0].confidence >= _SURE and plan.ecosystem != "dockerfile":
            continue  # the manifest's way was right and showed nothing; only the image's description may know more
        say(f"# plan {number + 1}: {plan.ecosystem} (confidence {plan.confidence})")
        carry_out(shop, plan)
        if shop.draft.depth == "tier3_none":
            for key, what in shop.stops.items():
                shop.draft.met(key, what, "no honest way round it on this machine")
                shop.draft.note(what)
            shop.stops.clear()
        if shop.draft.depth != "tier3_none":
            return


def carry_out(shop: Workshop, plan: Plan) -> None:
    """One plan, from its tools to its proof."""
    document = documents.read_document(shop.mission.readme) if shop.mission.readme else documents.Document()
    shop.prose = document.prose
    shop.env.update(plan.environment)
    for path in plan.paths:
        full = path if path.startswith("/") else f"{shop.project}/{path}"
        if full not in shop.paths:
            shop.paths.insert(0, full)
    draft_lines = Quickstart(shop, plan, document).commands()
    shop.variants = [command.line for command in draft_lines if command.purpose in {"run", "own", "install"}]
    for tool in plan.tools:
        if not shop.need(tool.command, tool.packages):
            shop.draft.note(f"the tool {tool.command} could not be installed")
            return
    if plan.prepare:
        plan.prepare(shop)
    if not install(shop, plan):
        return
    place_payload(shop)
    quickstart = Quickstart(shop, plan, document)
    follow_readme(shop, plan, quickstart)
    if not good_enough(quickstart) and not quickstart.tried.broken:
        fall_back(shop, plan, quickstart)
    conclude(shop, quickstart)


def install(shop: Workshop, plan: Plan) -> bool:
    """The install steps and the check that they took."""
    for line in plan.install:
        result = shop.work(line, timeout=shop.mission.slice(0.4, least=300))
        if not result.ok:
            shop.draft.note(failure_sentence(line, result))
            return False
    if plan.check:
        result = shop.work(plan.check, timeout=120)
        if not result.ok:
            shop.draft.note(f"the install ended with status 0, but {failure_sentence(plan.check, result)}")
            return False
    if plan.install in {(), ("true",)} and plan.prepare is None and not plan.instead:
        return True  # nothing was installed: that it is there is shown by what runs
    shop.draft.installed = True
    what = shop.mission.package or shop.mission.name
    version = f" {shop.mission.version}" if shop.mission.version else ""
    shop.draft.note(f"{what}{version} was installed ({plan.ecosystem})")
    return True


def follow_readme(shop: Workshop, plan: Plan, quickstart: Quickstart) -> None:
    """What the README shows: its further installs, its examples, its commands."""
    names = quickstart.documented_installs()
    shop.documented |= {re.split(r"[\[<>=!~@]", name.removeprefix("apt:"))[0].lower() for name in names if name}
    for extra in [name for name in names if name.startswith("apt:")][:4]:
        debian.install(shop, extra.removeprefix("apt:"))
    own = {name for name in names if "[" in name and name.split("[")[0].lower().replace("_", "-") in quickstart.own}
    for name in sorted(own)[:2]:
        if "python" in plan.languages and shop.mission.artifact:
            shop.run(f".venv/bin/python -m pip install '{shop.mission.artifact}[{name.split('[')[1].rstrip(']')}]'")
    texts = " ".join(typed.text for typed in quickstart.typed if typed.kind in {"python", "pycon", "javascript"})
    if re.search(r"['\"][\w./-]+\.(jpe?g|png|gif|webp|bmp|tiff?)['\"]", texts):
        shop.tried.add("decoder:pillow")
        shop.run(PILLOW, timeout=180)
    for language in ("python", "javascript"):
        if language in plan.languages:
            quickstart.examples(language)
    for line, paths in quickstart.serving:
        quickstart.server(line, paths)
    quickstart.serving.clear()
    if "shell" in plan.languages:
        quickstart.run_commands()
    _connect(shop, plan, quickstart)


def good_enough(quickstart: Quickstart) -> bool:
    """Whether the README alone gave a real verification."""
    tried = quickstart.tried
    return (
        bool(quickstart.steps)
        and not tried.crashed
        and not tried.broken
        and (bool(tried.others) or (len(tried.differs) <= tried.matched and _ran(tried)))
    )


def _ran(tried: Tried) -> bool:
    return (tried.uses and tried.statements > 0) or tried.commands > 0 or tried.servers > 0


def fall_back(shop: Workshop, plan: Plan, quickstart: Quickstart) -> None:
    """Where the README shows nothing that runs: servers, tests, real uses of its programs, its sources, its names."""
    for attempt in (_serve, _test, _invoke, _source, _exercise):
        if shop.mission.left() > ENOUGH and attempt(shop, plan, quickstart):
            return


def _connect(shop: Workshop, plan: Plan, quickstart: Quickstart) -> bool:
    """An MCP server, as the configuration blocks of its README tell: a client connects and calls its tools."""
    if not any('"mcpServers"' in typed.text or '"command"' in typed.text for typed in quickstart.typed):
        return False
    for program in plan.programs[:2]:
        line = f"/usr/bin/python3 {shop.verify}/verify_mcp.py {program}"
        quickstart.fresh()
        if shop.work(line, cwd=quickstart.cwd, timeout=60, must=False).ok:
            return quickstart.keep(line, "a client connected to it, listed its tools and got an answer")
    return False


def _serve(shop: Workshop, plan: Plan, quickstart: Quickstart) -> bool:
    spans = [span for span in quickstart.document.spans if re.fullmatch(r"/[\w-]+", span)]
    for server in plan.servers:
        quickstart.fresh()
        seen = shop.run(server.command, cwd=quickstart.cwd, timeout=90, serving=True)
        paths = [*server.paths, *spans[:3]]
        if seen.ports and quickstart.server(seen.command, paths, port=seen.ports[0], documented=False):
            return True
    return False


def _test(shop: Workshop, plan: Plan, quickstart: Quickstart) -> bool:
    return run_tests(shop, quickstart, plan.tests)


def _invoke(shop: Workshop, plan: Plan, quickstart: Quickstart) -> bool:
    """A real use of a program of which nothing is known: what it prints must follow from what it is given."""
    named = [
        (program, ext) for program in plan.programs[:2] for word, ext in _INPUTS.items() if word in shop.prose.lower()
    ]
    for line in [*plan.invocations, *(f"{program} {{}}{ext}" for program, ext in named[:6])]:
        quickstart.fresh()
        before = list(quickstart.steps), list(quickstart.given)
        _give_inputs(quickstart, line)
        if _follows(shop, quickstart, line):
            return True
        quickstart.steps, quickstart.given = before
    return False


def _give_inputs(quickstart: Quickstart, line: str) -> None:
    """Two small files of the kind that a line takes, with different contents."""
    found = re.search(r"\{\}(\.[\w.]+)$", line)
    for word in ("hello", "goodbye") if found else ():
        text = _CONTENTS.get(found.group(1) if found else "", "{}\n").replace("{}", word)
        name = f"{word}{found.group(1) if found else ''}"
        quickstart.add_file(name, text)
        announce.write(quickstart.cwd / name, text)


def _follows(shop: Workshop, quickstart: Quickstart, line: str) -> bool:
    """Try one use; keep it when it made files, serves, or prints what follows from its input."""

    def good(seen: Result) -> bool:
        return bool(seen.ports) or (seen.ok and (bool(quickstart.made_files()) or not _ASKS.search(seen.output)))

    first = line.replace("{}", "hello")
    result = shop.work(first, cwd=quickstart.cwd, timeout=60, must=False, serving=True, good=good)
    if result.ports:
        return quickstart.server(result.command, quickstart.paths(""))
    if not good(result) or trivial(result.command):
        return False
    if quickstart.made_files():
        return quickstart.keep(result.command, f"`{result.command}` made {', '.join(quickstart.made_files())[:100]}")
    if "{}" not in line:
        return False
    other = shop.run(line.replace("{}", "goodbye"), cwd=quickstart.cwd, timeout=60)
    again = shop.run(first, cwd=quickstart.cwd, timeout=60)
    if not other.ok or steady(again.output) != steady(result.output) or hollow(again.output):
        return False
    if echoes(again.output, other.output, first, line.replace("{}", "goodbye")):
        return False  # it only said what it was given
    return quickstart.keep(first, f"what `{first}` printed followed from its input")


def _source(shop: Workshop, plan: Plan, quickstart: Quickstart) -> bool:
    if plan.source is None:
        return False
    readme, tests = plan.source(shop)
    given = shop.mission.readme.stat().st_size if shop.mission.readme else 0
    if readme and (readme.stat().st_size > 2 * given or readme.name == "examples.md"):
        _follow(shop, plan, quickstart, readme)
    if good_enough(quickstart) or run_tests(shop, quickstart, tests):
        return True
    for page in plan.pages(shop) if plan.pages else ():
        if shop.mission.left() > 4 * ENOUGH:
            _follow(shop, plan, quickstart, page)
        if good_enough(quickstart):
            return True
    return False


def _follow(shop: Workshop, plan: Plan, quickstart: Quickstart, page: Path) -> None:
    """Follow another document of the sources in the place of the README."""
    say(f"# the sources bring more to follow: {page}")
    findings(shop, quickstart)
    quickstart.document = documents.read_document(page)
    quickstart.called = "the sources' README" if page.stem.lower() == "readme" else f"the sources' page {page.name}"
    quickstart.steps.clear()
    quickstart.__post_init__()
    follow_readme(shop, plan, quickstart)


def _exercise(shop: Workshop, plan: Plan, quickstart: Quickstart) -> bool:
    for line in plan.exercises:
        quickstart.fresh()
        result = shop.work(
            line, cwd=quickstart.cwd, timeout=120, must=False,
            good=lambda seen: seen.ok and "ffmpeg not found" not in seen.output,
        )  # fmt: skip
        if result.ok:
            quickstart.given += [path.name for path in sorted(quickstart.cwd.glob("sample.*"))]
            return quickstart.keep(line, "files that it read and wrote again were decoded")
    return False


def run_tests(shop: Workshop, quickstart: Quickstart, suites: tuple[Tests, ...]) -> bool:
    """The first of the suites that passes becomes a step."""
    for tests in suites:
        limit = shop.mission.slice(tests.share, least=120)
        if tests.work:
            result = shop.work(
                tests.command, timeout=limit, must=False, example=True,
                good=lambda seen: seen.ok or bool(re.search(r"\b\d{2,} (failed|errors?)\b", seen.output)),
            )  # fmt: skip
        else:
            result = shop.run(tests.command, timeout=limit)
        passed = tests.passed(result.output)
        if result.ok and passed and (tests.work or passed >= FEW or "itself among" in result.output):
            what = "test of the project" if passed == 1 else "tests of the project"
            said = f"{passed} {what} passed" if tests.work else f"{plural(passed, 'docstring')} ran as documented"
            return quickstart.keep(tests.command, said, kind="tests", seconds=900)
        if tests.work:
            shop.draft.note(f"tests: {failure_sentence(tests.command, result)}")
    return False


def conclude(shop: Workshop, quickstart: Quickstart) -> None:
    """Prove it twice from a fresh shell, and say what was observed."""
    tried = quickstart.tried
    if tried.failed:
        shop.draft.note(f"{plural(len(tried.failed), 'documented step')} did not run, the first: {tried.failed[0]}")
    if tried.differs:
        shop.draft.note(f"{plural(len(tried.differs), 'output')} not as documented, the first: {tried.differs[0]}")
    findings(shop, quickstart)
    if tried.crashed:
        shop.draft.met(
            "crash", "a native part of it crashed while an example ran", "the pinned version cannot be changed"
        )
        shop.draft.note("it ended by a fatal signal while an example of its README ran")
    if not good_enough(quickstart):
        for finding in list(dict.fromkeys(tried.failed))[:MOST]:
            if finding not in tried.faults:
                shop.draft.met(f"failed:{finding}", f"a documented step failed: {finding}")
        if not tried.failed and not tried.differs:
            ran = plural(tried.statements, "statement") if tried.statements else ""
            shop.draft.note(
                f"{ran} of {quickstart.called}'s examples ran, and no result of them could be checked"
                if ran
                else "nothing that the README shows could be run here"
            )
        return
    if _outweighed(shop, tried):
        return
    returned = prove(shop, quickstart)
    if not returned:
        return
    shop.draft.installed = True
    shop.draft.started = True
    shop.draft.depth = "tier1_real"
    shop.draft.command = verify_line(shop)
    shop.draft.returned = returned
    shop.draft.note(", ".join(_observed(tried, quickstart.called)) + ", twice with the same result")


def _outweighed(shop: Workshop, tried: Tried) -> bool:
    """Whether what failed weighs more than what ran; the failures are written down then."""
    lost = [text for text in tried.failed if text.startswith("`")]
    if len(tried.failed) > max(3, tried.statements + 3 * tried.commands + 3 * tried.servers):
        shop.draft.note("more documented statements failed than ran")
        lost = tried.failed
    elif len(lost) >= FEW and not (tried.commands or tried.matched or tried.servers or tried.others):
        shop.draft.note(f"none of its {len(lost)} documented commands succeeded")
    else:
        return False
    for finding in list(dict.fromkeys(lost))[:MOST]:
        shop.draft.met(f"failed:{finding}", f"a documented step failed: {finding}")
    return True


def findings(shop: Workshop, quickstart: Quickstart) -> None:
    """Write down what did not come as documented, and what failed inside the software: errors that stay."""
    tried = quickstart.tried
    for finding in list(dict.fromkeys(tried.differs))[:MOST]:
        shop.draft.met(f"differs:{finding}", finding, "nothing was changed: the software does what it does")
    for finding in list(dict.fromkeys(tried.faults))[:MOST]:
        shop.draft.met(f"fault:{finding}", f"what the README shows fails inside the software: {finding}")


def _observed(tried: Tried, called: str) -> list[str]:
    parts = []
    if tried.statements:
        parts.append(f"{plural(tried.statements, 'statement')} of {called}'s examples ran")
    if tried.matched:
        parts.append(f"{plural(tried.matched, 'output')} {'was' if tried.matched == 1 else 'were'} as documented")
    if tried.commands:
        parts.append(f"{plural(tried.commands, 'documented command')} succeeded")
    if tried.servers:
        was = "was" if tried.servers == 1 else "were"
        parts.append(f"{plural(tried.servers, 'request')} to its server {was} answered with status 200")
    return [*parts, *tried.others]
