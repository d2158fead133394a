"""The cells of a complete task ledger, a domain's primary block and its diagnostic tasks apart (R08 7), or a refusal.

Every denominator is settled here. What is made of a `Primary` can't hold a cell of another block or another domain.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from harness.compare import TODO
from harness.errors import JournalError, ProtocolError
from harness.ledgers.plan import planned_domains
from harness.ledgers.task_blocks import Blocks, blocks_of, roles_of
from harness.ledgers.whole import Source, require_rows, sources_of
from harness.protocols.grids import is_executed
from harness.records.ledger import NotObserved
from harness.records.protocol import TaskCrnProtocol
from harness.records.sources import Domain
from harness.records.task_ledger import NotShared, NoVerdict, TaskCode, TaskLedger, TaskNumeric, TaskPairRow, TaskRow


@dataclass(frozen=True, slots=True)
class Primary:
    """A domain's primary block: every task once, under the one tape. Rows by (task, condition or contrast)."""

    domain: Domain
    tape: str
    tasks: tuple[str, ...]
    rows: Mapping[tuple[str, str], TaskRow]
    pairs: Mapping[tuple[str, str], TaskPairRow]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A domain's diagnostic tasks under all tapes, the primary one among them. Rows by (task, tape, condition)."""

    domain: Domain
    tasks: tuple[str, ...]
    tapes: tuple[str, ...]
    rows: Mapping[tuple[str, str, str], TaskRow]


@dataclass(frozen=True, slots=True)
class TaskGroups:
    """Both, for each domain of the run in the protocol's order; no `diagnostic` where the grid has no such block."""

    tape: str
    primary: tuple[Primary, ...]
    diagnostic: tuple[Diagnostic, ...]


def task_groups(protocol: TaskCrnProtocol, ledger: TaskLedger) -> TaskGroups:
    """The cells and pairs of a ledger whose grid is registered.

    JournalError where one of the grid is missing, doubled or foreign, where a rank isn't one task in all its rows, or
    where a row can't be counted: without its domain's account, without a verdict, or without shared numbers.
    """
    domains = planned_domains(protocol, ledger.domains)
    blocks = blocks_of(protocol, ledger.grid)
    _require_whole(protocol, ledger, domains)
    registered = {domain.name: domain for domain in domains}
    for row in ledger.cells:
        _require_countable(registered[row.domain], row)
    for pair in ledger.pairs:
        _require_shared(pair)
    places = [(row.domain, row.index, row.source_id) for row in ledger.cells]
    places += [(row.domain, row.index, row.source_id) for row in ledger.pairs]
    sources = sources_of(places, domains)
    return TaskGroups(
        tape=blocks.tape,
        primary=tuple(_primary(ledger, blocks, domain, sources) for domain in domains),
        diagnostic=tuple(_diagnostic(ledger, blocks, domain, sources) for domain in domains if blocks.diagnostic_tasks),
    )


def without_verdict(ledger: TaskLedger) -> tuple[TaskRow, ...]:
    """Cells whose program the container engine failed: nothing is known of them, so nothing is counted (R08 6.1)."""
    return tuple(
        row
        for row in ledger.cells
        if isinstance(row.code, TaskCode)
        and isinstance(row.code.verdict, NoVerdict)
        and row.code.verdict.reason == "infrastructure"
    )


def _require_whole(protocol: TaskCrnProtocol, ledger: TaskLedger, domains: Sequence[Domain]) -> None:
    """Cells and pairs are exactly those of the grid over the run's domains, each in its own block."""
    roles = roles_of(protocol, ledger.grid)
    places = [(domain.name, *place) for domain in domains for place in roles]
    kinds: tuple[tuple[str, tuple[str, ...], Sequence[tuple[TaskRow | TaskPairRow, str]]], ...] = (
        ("cells", tuple(one.id for one in protocol.conditions), [(row, row.condition) for row in ledger.cells]),
        ("pairs", tuple(one.id for one in protocol.contrasts), [(row, row.contrast) for row in ledger.pairs]),
    )
    for name, items, rows in kinds:
        require_rows(
            f"ledger: {name}",
            [(row.domain, row.index, row.replicate, item) for row, item in rows],
            planned=[(*place, item) for place, item in product(places, items)],
        )
        for row, item in rows:
            if row.role != roles[row.index, row.replicate]:
                where = f"ledger: {name}: {row.source_id}, {row.replicate}, {item}: role"
                raise JournalError(where, expected=roles[row.index, row.replicate], found=row.role, todo=TODO)


def _require_countable(domain: Domain, row: TaskRow) -> None:
    """The one account that the domain's judge owes, judged: success of every cell is known."""
    number, program = "answer" in domain.gold, is_executed(domain)
    if number == program:
        where = f"domain {domain.name}: gold"
        raise ProtocolError(where, expected="an answer or tests", found=str(domain.gold), todo="Success needs a judge.")
    where = f"ledger: cell {row.source_id}, {row.replicate}, {row.condition}"
    owed, other = (row.numeric, row.code) if number else (row.code, row.numeric)
    if not isinstance(other, NotObserved):
        raise JournalError(where, expected="its domain's account alone", found="two", todo=TODO)
    judged = isinstance(owed, TaskNumeric) or (
        isinstance(owed, TaskCode) and not (isinstance(owed.verdict, NoVerdict) and owed.verdict.reason == "tier")
    )
    if not judged:
        raise JournalError(where, expected="a judged account", found=type(owed).__name__, todo=TODO)


def _require_shared(pair: TaskPairRow) -> None:
    """R08 4.2: a pair that didn't read the same numbers is no pair."""
    if isinstance(pair.uniforms, NotShared):
        where = f"ledger: pair {pair.source_id}, {pair.replicate}, {pair.contrast}"
        found = "; ".join(pair.uniforms.differences)
        raise JournalError(where, expected="the same z in every common step", found=found, todo=TODO)


def _primary(ledger: TaskLedger, blocks: Blocks, domain: Domain, sources: Sequence[Source]) -> Primary:
    tasks = _tasks(domain, sources, blocks.tasks)
    return Primary(
        domain=domain,
        tape=blocks.tape,
        tasks=tasks,
        rows={(row.source_id, row.condition): row for row in ledger.cells if _is(row, domain, "primary")},
        pairs={(row.source_id, row.contrast): row for row in ledger.pairs if _is(row, domain, "primary")},
    )


def _diagnostic(ledger: TaskLedger, blocks: Blocks, domain: Domain, sources: Sequence[Source]) -> Diagnostic:
    tasks = _tasks(domain, sources, blocks.diagnostic_tasks)
    chosen = [row for row in ledger.cells if row.domain == domain.name and row.source_id in tasks]
    rows = {(row.source_id, row.replicate, row.condition): row for row in chosen}
    return Diagnostic(domain=domain, tasks=tasks, tapes=blocks.tapes, rows=rows)


def _tasks(domain: Domain, sources: Sequence[Source], indices: Sequence[int]) -> tuple[str, ...]:
    """Task IDs in rank order, which is the manifest's."""
    ids = {source.index: source.source_id for source in sources if source.domain.name == domain.name}
    return tuple(ids[index] for index in indices)


def _is(row: TaskRow | TaskPairRow, domain: Domain, role: str) -> bool:
    return (row.domain, row.role) == (domain.name, role)
