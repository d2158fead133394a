"""The page of a run, and writing it. Refuses a run whose files aren't those that its audit record speaks for."""

import importlib.metadata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from harness.canon import canonical_bytes, sha256_hex
from harness.claims.judge import claims_of
from harness.claims.load import NAME as CLAIM_RULES
from harness.claims.load import load_claims
from harness.claims.view import RunView, judged_view
from harness.errors import HarnessError, JournalError
from harness.files import read_bytes, write_atomic
from harness.ledgers.executions import read_executions
from harness.places import Places
from harness.records.claims import Claims
from harness.report import head
from harness.report.attempts import attempts
from harness.report.cells import Cell, cells
from harness.report.diagnostics import diagnostics
from harness.report.history import Shown, history, shown_here
from harness.report.ladder import ladder, states
from harness.report.page import Link, Section, Table, table
from harness.report.render import render
from harness.report.results import result_sections
from harness.report.unregistered import unregistered
from harness.snapshots.store import read_frozen

REPORT = "report.html"
SHORT = {
    "NATURAL_EOS": "EOS",
    "TASK_TERMINAL_BEFORE_EOS": "cut, terminal",
    "BUDGET_TRUNCATED_WITH_FALLBACK_ONLY": "cut, fallback",
    "BUDGET_TRUNCATED_UNRESOLVED": "cut, unresolved",
    "OTHER_STOP": "other stop",
    "natural_eos": "EOS",
    "budget_truncated": "cut",
    "other_stop": "other stop",
}
Part = TypeVar("Part")


@dataclass(frozen=True, slots=True, repr=False)
class Page:
    """Everything that the template shows. `absent`: parts that the run folder doesn't have, each with the reason."""

    claims: Claims
    view: RunView
    absent: tuple[str, ...]
    results: tuple[Section, ...]
    diagnostics: Section | None
    environment: Section | None
    attempts: Section | None
    attempts_lines: int
    history: Section
    shown: Shown
    cell_maps: tuple[tuple[str, Table], ...]
    cells: tuple[Cell, ...]
    states: tuple[str, ...]
    frozen: str
    made_with: str


def write_report(run: Path, tree: Places | None = None, note: Callable[[str], None] = lambda _: None) -> Path:
    """Write RUN/report.html and return where it is; HarnessError where the run can't be judged from its folder.

    `note` is told each step before it is taken.
    """
    note("the run's records")
    view = judged_view(run, tree)
    note("the page")
    target = view.folder.file(REPORT)
    write_atomic(target, report_bytes(view, tree))
    return target


def report_bytes(
    view: RunView, tree: Places | None = None, lines: int | None = None, shown: Shown | None = None
) -> bytes:
    """The bytes of report.html: a function of the folder, the protocol, the versions that the page names, the first
    `lines` of the attempts file, and what is `shown` of the protocol's revisions (None: all that are here).
    """
    return render(page_of(view, tree, lines, shown)).encode("utf-8")


def made_with() -> str:
    """The versions that the page's bytes are a function of, as it names them."""
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("jinja2", "matplotlib"))


def page_of(view: RunView, tree: Places | None = None, lines: int | None = None, shown: Shown | None = None) -> Page:
    """What the page shows of a judged run. A part that can't be read is named with its reason, never left out."""
    claims, absent = _claims(view), list[str]()
    known = shown or shown_here(view, tree)
    tried = _part("attempts", lambda: attempts(view, lines), absent)
    book = _part("ledger", lambda: view.ledger, absent)
    made = _part("statistics", lambda: view.statistics, absent) if book is not None else None
    environment = _part("environment and placement", lambda: head.environment(view, claims), absent)
    conditions = [one.id for one in view.loaded.protocol.conditions]
    found: list[Section | None] = []
    if book is not None:
        found.append(ladder(book, conditions))
    if book is not None and made is not None:
        found += result_sections(book, made)
    seen = _part("cells", lambda: tuple(cells(view, read_executions(view.folder), tree)), absent) if book else None
    return Page(
        claims=claims,
        view=view,
        absent=tuple(absent),
        results=tuple(one for one in found if one is not None),
        diagnostics=diagnostics(claims, made),
        environment=environment,
        attempts=tried[0] if tried else None,
        attempts_lines=tried[1] if tried else 0,
        history=history(view, known, tree),
        shown=known,
        cell_maps=tuple(_maps(seen or (), conditions)),
        cells=seen or (),
        states=tuple(one for one in (states(book) if book else ()) if any(cell.state == one for cell in seen or ())),
        frozen=frozen_words(view, tree),
        made_with=made_with(),
    )


def _claims(view: RunView) -> Claims:
    """The claims of the run, made again; JournalError where claims.json is there and says otherwise."""
    if not (view.loaded.folder / CLAIM_RULES).is_file():
        return unregistered(view)
    claims, path = claims_of(view, load_claims(view.loaded)), view.folder.file("claims.json")
    if path.exists():
        stored, made = read_bytes(path, what="claims"), canonical_bytes(claims)
        if stored != made:
            todo = "Make it again with `python -m harness claims RUN`."
            raise JournalError(str(path), expected=sha256_hex(made), found=sha256_hex(stored), todo=todo)
    return claims


def _part(name: str, read: Callable[[], Part], absent: list[str]) -> Part | None:
    """A part of the page, or none with its reason; a path isn't part of the reason, for a folder may be moved."""
    try:
        return read()
    except HarnessError as error:
        absent.append(f"{name}: expected {error.expected}, found {error.found}")
        return None


def frozen_words(view: RunView, tree: Places | None) -> str:
    """What the run's results are beside the frozen ones, as they were when it was judged."""
    if not view.audit.frozen:
        return "unfrozen: no results of this protocol were frozen when the run was judged"
    index = read_frozen(view.loaded.results, tree).index
    same = index.run_sha256 == view.audit.run_sha256  # also where another run gave the same bytes
    whose = "this digest" if same else f"digest {index.run_sha256}"
    return f"the frozen results, {len(index.units)} files, are of a run.json with {whose}"


def _maps(shown: Sequence[Cell], conditions: Sequence[str]) -> Iterator[tuple[str, Table]]:
    """For each domain a table of links: a row a source and replicate, a column a condition."""
    for domain in dict.fromkeys(cell.domain for cell in shown):
        rows: dict[tuple[str, str], dict[str, Link]] = {}
        for cell in shown:
            if cell.domain == domain:
                text = ", ".join(one for one in (SHORT.get(cell.state, cell.state), cell.badge) if one)
                rows.setdefault((cell.source_id, cell.replicate), {})[cell.condition] = Link(text, cell.anchor)
        made = [(*key, *(links.get(one, "-") for one in conditions)) for key, links in rows.items()]
        yield domain, table(f"Cells of {domain}", ("source", "replicate", *conditions), made, heads=2)
