"""``referee bakeoff cases``: build, lint, rotate, import and show suites of cases."""

from __future__ import annotations

import json
import os
import secrets
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from referee.adapters.catalog.workspace import find_root, open_workspace
from referee.adapters.sources.package import PackageSource
from referee.adapters.suites import bfcl, bundled_names, bundled_subsets, bundled_suite, load_suite
from referee.adapters.suites.files import load_subsets, suite_bytes, write_suite
from referee.adapters.suites.sources import build_suite
from referee.benchmarks.bakeoff.templates import SHORTEST_SEED
from referee.benchmarks.bakeoff.templates import rotate as rotated
from referee.benchmarks.bakeoff.templates.wording import Language
from referee.cli.options import JsonOption, WorkspaceOption
from referee.cli.terminal import columns, lay, out, plain
from referee.core.canonical import digest_of_bytes
from referee.core.cases import CATEGORIES, Case, Suite
from referee.errors import EXIT_FINDING, ConfigError, Finding, NothingMatched, UsageError
from referee.publish.words import count as counted
from referee.scoring.lint import Objection, Refusal, lint_subset, without_refused
from referee.scoring.lint import lint as lint_suite

app = typer.Typer(no_args_is_help=True, help="Build, lint, rotate, import and show suites of cases.")

#: The suite whose tools and prompts the templates use.
_TEMPLATE_TOOLS = "s1"

OutOption = Annotated[Path, typer.Option("--out", "-o", help="File to write, for example protocols/NAME/cases.json.")]
ReplaceOption = Annotated[bool, typer.Option("--replace", help="Write over a file that is there already.")]
SuiteArgument = Annotated[str, typer.Argument(help="A bundled suite's name, or the path of a cases.json.")]


@app.command()
def build(
    name: Annotated[str, typer.Argument(help="A suite that has sources: s1.")],
    chinook: Annotated[
        Path | None,
        typer.Option("--chinook", envvar="REFEREE_CHINOOK", help="SQLite file of the Chinook database, release 1.4.5."),
    ] = None,
    out_file: Annotated[Path | None, typer.Option("--out", "-o", help="Write the suite here, too.")] = None,
    replace: ReplaceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Build a suite from its pinned sources and compare it with the one that is bundled.

    Exit code 1 when the built file differs from the bundled one, or when the linter objects.
    """
    suite = build_suite(name, chinook)
    objections = _unknown(lint_suite(suite))
    built = suite_bytes(suite)
    same = name in bundled_names() and built == suite_bytes(bundled_suite(name))
    if out_file is not None:
        write_suite(suite, out_file, replace=replace)
    document = _facts(suite) | {
        "schema": "referee.cases-built/1",
        "identical_to_bundled": same,
        "file": None if out_file is None else str(out_file),
        "objections": [objection.document() for objection in objections],
    }
    told = "identical to the bundled file" if same else "which DIFFERS from the bundled file"
    _tell(document, f"{suite.name}: {len(suite.cases)} cases built, {told}, {digest_of_bytes(built)}", as_json=as_json)
    _tell_objections(objections, as_json=as_json)
    if objections or not same:
        raise typer.Exit(EXIT_FINDING)


@app.command()
def lint(
    suite: SuiteArgument,
    subsets: Annotated[Path | None, typer.Option(help="A subsets.toml to check as well.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Check a suite: gold against schema, gold as an answer, prompt against oracle, balance.

    Exit code 1 when there is an objection that the suite does not declare.
    """
    found = _suite(suite)
    registered = bundled_subsets(suite) if subsets is None else load_subsets(subsets)
    objections = [*lint_suite(found), *(one for subset in registered for one in lint_subset(subset, found))]
    unknown = _unknown(objections)
    known = len(objections) - len(unknown)
    document = _facts(found) | {
        "schema": "referee.cases-linted/1",
        "subsets": len(registered),
        "objections": [objection.document() for objection in objections],
    }
    verdict = counted(len(unknown), "objection") if unknown else "nothing to object"
    declared = f", {known} more that the suite declares" if known else ""
    _tell(document, f"{found.name}: {counted(len(found.cases), 'case')}, {verdict}{declared}", as_json=as_json)
    _tell_objections(objections, as_json=as_json)
    if unknown:
        raise typer.Exit(EXIT_FINDING)


@app.command()
def rotate(
    out_file: OutOption,
    seed_file: Annotated[Path, typer.Option("--seed-file", help="File with the private seed: 64 hex digits or more.")],
    cycle: Annotated[str, typer.Option(help="Name of the cycle, for example 2027-01.")],
    count: Annotated[int, typer.Option(help="Number of cases, 200 to 400 in tens.")] = 300,
    new_seed: Annotated[bool, typer.Option("--new-seed", help="Draw a seed and keep it in the seed file.")] = False,
    replace: ReplaceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Make a fresh suite of gate size from templates and a private seed; the seed stands nowhere in it."""
    suite = rotating_suite(seed_file, cycle=cycle, count=count, new_seed=new_seed)
    try:
        write_suite(suite, out_file, replace=replace)
    except UsageError:
        if new_seed:  # no file was made of it
            seed_file.unlink()
        raise
    document = _facts(suite) | {"schema": "referee.cases-rotated/1", "file": str(out_file)}
    _tell(document, f"rotating: {len(suite.cases)} cases of cycle {cycle} in {out_file}", as_json=as_json)


def rotating_suite(seed_file: Path, *, cycle: str, count: int, new_seed: bool) -> Suite:
    """A fresh suite from the templates and the private seed of a file, drawn and kept there where ``new_seed``.

    Raises:
        UsageError: the seed, the cycle or the count is not as it must be.
    """
    model = bundled_suite(_TEMPLATE_TOOLS)
    prompts: dict[Language, str] = {"de": model.prompts["assistant-de"], "en": model.prompts["assistant-en"]}
    seed = _seed(seed_file, new=new_seed)
    try:
        suite = rotated(seed, cycle=cycle, count=count, toolsets=model.toolsets, prompts=prompts)
    except UsageError:
        if new_seed:  # nothing was made of it
            seed_file.unlink()
        raise
    if objections := _unknown(lint_suite(suite)):
        raise Finding(f"the templates made a case that the linter refuses: {objections[0].sentence}")
    return suite


@app.command(name="import-bfcl")
def import_bfcl(
    out_file: OutOption,
    wheel: Annotated[
        Path | None, typer.Option(help="The wheel of bfcl-eval; left out, pip fetches the pinned one, alone.")
    ] = None,
    any_version: Annotated[bool, typer.Option("--any-version", help="Take another wheel than the pinned one.")] = False,
    keep_ungrounded: Annotated[
        bool, typer.Option("--keep-ungrounded", help="Keep golds that the request does not fix; the suite says so.")
    ] = False,
    replace: ReplaceOption = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Import the single-turn Python rows of BFCL; what the linter refuses is named and left out."""
    imported = bfcl.import_wheel(wheel or _fetched(workspace), any_version=any_version)
    suite: Suite = imported.suite
    if keep_ungrounded:
        suite = suite.model_copy(update={"provenance": suite.provenance | {"ungrounded": "kept"}})
    kept, refused = without_refused(suite)
    if kept is None:
        raise Finding("the linter refuses every row of the wheel")
    write_suite(kept, out_file, replace=replace)
    rules = Counter(objection.rule for refusal in refused for objection in _firsts(refusal))
    abstain = sum(case.abstains for case in kept.cases)
    document = _facts(kept) | {
        "schema": "referee.cases-imported/1",
        "file": str(out_file),
        "rows": imported.rows,
        "with_gold": len(kept.cases) - abstain,
        "abstain": abstain,
        "skipped": {name: {"rows": rows, "why": why} for name, (rows, why) in imported.skipped.items()},
        "unreadable": imported.unreadable,
        "refused": [
            {"case": refusal.case.id, "objections": [one.document() for one in refusal.objections]}
            for refusal in refused
        ],
    }
    sentence = f"bfcl: {len(kept.cases) - abstain} cases with gold and {abstain} to abstain on, in {out_file}"
    _tell(document, f"{sentence}; {len(refused)} refused", as_json=as_json)
    if not as_json:
        _tell_refused(refused, rules, imported)


@app.command()
def show(
    suite: SuiteArgument,
    case: Annotated[str | None, typer.Argument(help="The id of one case, to show it whole.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show a suite's arms, categories and languages, or one of its cases with its oracle."""
    found = _suite(suite)
    if case is not None:
        one = found.by_id.get(case)
        if one is None:
            raise NothingMatched(f"the suite {found.name} has no case {case!r}", todo="list them with show --json")
        _show_case(found, one, as_json=as_json)
        return
    document = _facts(found) | {
        "schema": "referee.cases-shown/1",
        "cases": [{"id": each.id, "arm": each.arm, "category": each.category} for each in found.cases],
    }
    _tell(document, f"{found.name} {found.version}: {found.about}", as_json=as_json)
    if as_json:
        return
    table = columns("arm", "headline", "ranked", *(f"{category}>" for category in CATEGORIES), "de>", "en>", "all>")
    for arm in found.arms:
        cases = [each for each in found.cases if each.arm == arm.name]
        categories, languages = Counter(each.category for each in cases), Counter(each.language for each in cases)
        counts = [*(categories[category] for category in CATEGORIES), languages["de"], languages["en"], len(cases)]
        table.add_row(arm.name, "yes" if arm.headline else "no", "yes" if arm.ranked else "no", *map(str, counts))
    lay(out(), table)


def _suite(name: str) -> Suite:
    """A bundled suite by its name, or the suite of a file."""
    return bundled_suite(name) if name in bundled_names() else load_suite(Path(name))


def _facts(suite: Suite) -> dict[str, Any]:
    return {
        "suite": suite.name,
        "version": suite.version,
        "grading": suite.grading,
        "digest": digest_of_bytes(suite_bytes(suite)),
        "provenance": suite.provenance,
        "count": len(suite.cases),
        "arms": {arm.name: sum(case.arm == arm.name for case in suite.cases) for arm in suite.arms},
        "languages": dict(sorted(Counter(case.language for case in suite.cases).items())),
    }


def _seed(path: Path, *, new: bool) -> bytes:
    """The private seed of a file; a new one is drawn only when that is asked for, and never over an old one."""
    if new:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError as exc:
            raise UsageError(f"{path} holds a seed already", todo="leave out --new-seed, or name another file") from exc
        except OSError as exc:
            raise UsageError(f"{path} cannot be written: {exc.strerror}", todo="name another file") from exc
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(SHORTEST_SEED) + "\n")
    try:
        return bytes.fromhex(path.read_text("ascii").strip())
    except FileNotFoundError as exc:
        raise NothingMatched(f"there is no file {path}", todo="name a seed's file, or pass --new-seed") from exc
    except OSError as exc:
        raise ConfigError(f"{path} cannot be read: {exc.strerror}", todo="name a seed's file") from exc
    except ValueError:
        # Without the cause: it would quote what may well be the seed.
        raise ConfigError(f"{path} holds no seed of hex digits", todo="make one with --new-seed") from None


def _fetched(workspace: Path | None) -> Path:
    opened = open_workspace(find_root(Path.cwd(), workspace))
    return PackageSource(opened.cache).fetch(bfcl.PIN).root / "subject" / str(bfcl.PIN["artifact"])


def _unknown(objections: Sequence[Objection]) -> list[Objection]:
    return [objection for objection in objections if not objection.known]


def _firsts(refusal: Refusal) -> tuple[Objection, ...]:
    return refusal.objections[:1]


def _tell(document: dict[str, Any], sentence: str, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
    else:
        out().print(plain(sentence), soft_wrap=True)


def _tell_objections(objections: Sequence[Objection], *, as_json: bool) -> None:
    if not as_json:
        for objection in objections:
            mark = "known" if objection.known else "objection"
            out().print(plain(f"  {mark} {objection.rule}: {objection.sentence}"), soft_wrap=True)


def _tell_refused(refused: Sequence[Refusal], rules: Counter[str], imported: bfcl.Imported) -> None:
    """Each refused gold by name; of those that a request only fails to fix, the number (``--json`` names them)."""
    console = out()
    for rule, count in rules.most_common():
        console.print(plain(f"  refused by {rule}: {count}"), soft_wrap=True)
    for refusal in refused:
        first = refusal.objections[0]
        if first.rule != "ungrounded-gold":
            console.print(plain(f"  refused {refusal.case.id}: {first.sentence}"), soft_wrap=True)
    for name, (rows, why) in imported.skipped.items():
        console.print(plain(f"  skipped {rows} rows of {name}: {why}"), soft_wrap=True)


def _show_case(suite: Suite, case: Case, *, as_json: bool) -> None:
    prompt = None if case.prompt is None else suite.prompts[case.prompt]
    if as_json:
        tools = [tool.model_dump(mode="json") for tool in suite.tools(case)]
        shown = {"schema": "referee.case-shown/1", "case": case.document(), "prompt": prompt, "tools": tools}
        typer.echo(json.dumps(shown, ensure_ascii=False, indent=2))
        return
    console = out()
    console.print(plain(f"{case.id}  {case.category}  {case.language}  arm {case.arm}"), soft_wrap=True)
    if prompt is not None:
        console.print(plain(f"system: {prompt}"), soft_wrap=True)
    for message in case.messages:
        console.print(plain(f"{message.role}: {message.content}"), soft_wrap=True)
    console.print(plain(f"tools: {', '.join(tool.name for tool in suite.tools(case))}"), soft_wrap=True)
    for call in case.golds:
        arguments = json.dumps(call.arguments, ensure_ascii=False)
        console.print(plain(f"expected: {call.name}({arguments})"), soft_wrap=True)
    if case.abstains:
        console.print(plain(f"expected: no call ({case.source.get('why', 'the case says no more')})"), soft_wrap=True)
    if case.known_objection:
        console.print(plain(f"known objection: {case.known_objection}"), soft_wrap=True)
