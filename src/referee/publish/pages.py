"""Writes the pages: static files that open from disk or from any web server, the same to the byte for the same facts.

Nothing is requested from elsewhere; the policy in every page forbids it. Text from agents and projects reaches a page
only through Jinja's escaping and through ``words.visible``.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from referee.errors import Finding, UsageError
from referee.protocols import Evidence
from referee.publish import export, words
from referee.publish.bakeoff import listing
from referee.publish.bakeoff.listing import DIRECTORY, ReportView, reports_in
from referee.publish.cast import ServedCast, serve
from referee.publish.facts import Facts
from referee.publish.spent import spent_words, sum_words
from referee.publish.views import FileView, RunView, SiteView, VerdictView
from referee.scoring import render

HERE = Path(__file__).parent
ASSETS = HERE / "assets"

#: Subjects and runs give their names to files.
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")

#: What a page may load: nothing but its own files. The player compiles WebAssembly that its script carries.
POLICY = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'"
PLAYER_POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; style-src 'self'; img-src 'self'; "
    "media-src 'self'; base-uri 'none'; form-action 'none'"
)


def build(facts: Facts, out: Path) -> Path:
    """Write the whole site and put it in the place of the one before.

    Args:
        facts: what to show; blobs of its store are linked into the site, or copied where that is not possible.
        out: the site's directory; replaced as a whole, so that a reader never meets half a site. Reports of bake-offs
            that stand in it stay.

    Returns:
        The page to open.

    Raises:
        UsageError: ``out`` holds something that is no site of ours.
    """
    if out.exists() and not (out / "index.json").is_file() and not _only_reports(out):
        raise UsageError(f"{out} is no built site and is left alone", todo="move it away, then build again")
    fresh = out.parent / f".{out.name}-{os.getpid()}"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    try:
        reports = reports_in(out)
        for target, digest in write_pages(facts, fresh, reports).items():
            _link(facts.served.path(digest), fresh / target)
        for report in reports:
            _keep(out / DIRECTORY / report.name, fresh / DIRECTORY / report.name)
        put_in_place(fresh, out)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return out / "index.html"


def write_pages(facts: Facts, out: Path, reports: tuple[ReportView, ...] = ()) -> dict[str, str]:
    """Write every page, document and asset into the directory ``out``; of bake-offs only the list of ``reports``.

    Returns:
        The evidence that belongs beside them: each blob's place in the site, and its digest.
    """
    site = facts.site()
    _check_names(site)
    found = templates()
    _copy_assets(out / "assets")
    page = partial(_page, found, out)
    page("index.html", "index.html", here="index", site=site)
    page("board.html", "board.html", here="board", site=site)
    page("bakeoff/list.html", f"{DIRECTORY}/index.html", here="bakeoff", reports=reports)
    _json(out / "index.json", export.index_document(site))
    _json(out / "board.json", export.board_document(site))
    _json(out / DIRECTORY / "index.json", listing.index_document(reports))
    for subject in site.subjects:
        page("subject.html", f"subjects/{subject.name}.html", here="", subject=subject)
        _json(out / "subjects" / f"{subject.name}.json", export.subject_document(subject))
    for run in site.runs:
        detail = facts.detail(run)
        cast, fault = _cast(run, facts.served)
        page("run.html", f"runs/{run.run}.html", here="", run=run, detail=detail, cast=cast, cast_fault=fault)
        _json(out / "runs" / run.run / "run.json", export.run_document(run, detail))
        for part in cast.parts if cast else ():
            _text(out / "runs" / run.run / f"cast-{part.number}.js", part.script())
    return {blob(file): file.digest for run in site.runs for file in _evidence(run) if file.there}


def _evidence(run: RunView) -> Iterable[FileView]:
    """Every file of evidence of a run and of its replays, manifests too."""
    yield from run.files
    yield from (run.manifest,) if run.manifest else ()
    for replay in run.replays:
        yield from replay.files
        yield from (replay.manifest,) if replay.manifest else ()


def _check_names(site: SiteView) -> None:
    for name in (*(subject.name for subject in site.subjects), *(run.run for run in site.runs)):
        if not _NAME.fullmatch(name):
            raise Finding(f"the records hold {name!r}, which is no name for a page", todo="run `referee verify`")


def put_in_place(fresh: Path, out: Path) -> None:
    """Let a directory that is whole take the place of the one before."""
    old = out.parent / f".{out.name}-{os.getpid()}-old"
    if out.exists():
        out.rename(old)
    fresh.rename(out)
    shutil.rmtree(old, ignore_errors=True)


def templates() -> Environment:
    """The templates, with escaping of everything and every filter that they use."""
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_shown,
    )
    environment.filters |= {
        "verdict_words": partial(words.say, words.VERDICTS),
        "outcome_words": partial(words.say, words.OUTCOMES),
        "corroboration_words": partial(words.say, words.CORROBORATION),
        "cold_words": partial(words.say, words.COLD),
        "depth_words": partial(words.say, words.DEPTHS),
        "figure": render.number,
        "points": render.points,
        "share": render.percent_of,
        "spread": render.spread_text,
        "count": words.count,
        "seconds": words.seconds,
        "size": words.size,
        "binary": words.binary,
        "money": words.money,
        "spent_words": spent_words,
        "sum_words": sum_words,
        "moment": words.moment,
        "short": words.short,
        "undashed": words.undashed,
        "blob": blob,
        "aside_words": aside_words,
    }
    return environment


def _shown(value: Any) -> Any:
    """Every string that a template prints passes here: no control or direction-changing character reaches a page."""
    return words.visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _page(found: Environment, out: Path, template: str, name: str, **values: Any) -> None:
    root = "../" * name.count("/")
    policy = PLAYER_POLICY if values.get("cast") else POLICY
    _text(out / name, found.get_template(template).render(root=root, policy=policy, **values))


def _cast(run: RunView, evidence: Evidence) -> tuple[ServedCast | None, str]:
    """The recording as the page plays it; or None and, where there is a recording, why it cannot be shown."""
    file = next((file for file in run.files if file.name == "session.cast"), None)
    if file is None:
        return None, ""
    try:
        with evidence.open(file.digest) as lines:
            cast = serve(lines)
    except Finding as exc:
        return None, exc.message.rstrip(".")
    return (cast, "") if cast.parts else (None, "nothing was printed")


def blob(file: FileView) -> str:
    """Where a blob lies in the site. The ending keeps every web server from guessing that evidence is a page."""
    digits = file.digest.rsplit(":", 1)[-1]
    return f"evidence/{digits[:2]}/{digits}.bin"


def aside_words(said: VerdictView) -> str:
    """What is said beside a verdict of the attempts that can never be published."""
    reasons = (reason for run in said.aside for reason in run.never)
    return words.set_aside(len(said.aside), reasons, inside=said.rests_on_aside)


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)


def _only_reports(out: Path) -> bool:
    """Whether a directory holds nothing yet, or reports of bake-offs alone, which may be there before the site."""
    return out.is_dir() and all(path.name == DIRECTORY for path in out.iterdir())


def _keep(report: Path, place: Path) -> None:
    """A report stays as it is: it is written by its own command, from shards that were named there."""
    for source in sorted(path for path in report.rglob("*") if path.is_file()):
        _link(source, place / source.relative_to(report))


def _copy_assets(out: Path) -> None:
    for source in _files(ASSETS):
        target = out / source.relative_to(ASSETS)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def _files(root: Path) -> Iterable[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file() and path.name != "LOCK.sha256")


def _json(path: Path, value: dict[str, Any]) -> None:
    _text(path, json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True) + "\n")


def _text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("utf-8", "backslashreplace"))
