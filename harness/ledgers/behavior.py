"""The ledger of a behaviour run (R04 5): a row for each cell and each edge, in the protocol's order.

A function of the protocol and run.json alone, so it can be made again byte for byte. It takes only a run that is
exactly its grid: a missing, doubled or foreign unit is a JournalError, never a smaller denominator. It doesn't judge
whether the evidence agrees with itself (gates do), and it knows gold numbers only from the run.
"""

from collections.abc import Mapping
from typing import Literal

from harness.compare import TODO, cells_by_condition, unit_edges
from harness.errors import JournalError
from harness.evaluate.number import NUMBER_R04, last_number_r04, plain_number
from harness.evaluate.syntax import syntax_r04
from harness.ledgers.heads import ledger_head
from harness.ledgers.plan import units_in_order
from harness.ledgers.text import observed_text
from harness.records.ledger import (
    CellRow,
    GoldAbsent,
    GoldCompared,
    LastNumber,
    Ledger,
    NotObserved,
    NumberFound,
    NumberObservation,
    SyntaxObservation,
)
from harness.records.protocol import BehaviorProtocol
from harness.records.run import CellRecord, Run, UnitEvidence
from harness.records.sources import Domain

NO_NUMBERS = NotObserved(reason="the domain registers no gold answer")
NO_CODE = NotObserved(reason="the domain registers no entry point")


def ledger(protocol: BehaviorProtocol, run: Run) -> Ledger:
    """Rows of a run; JournalError where the run isn't exactly a grid of this protocol."""
    units = units_in_order(protocol, run, run.units)
    return Ledger(
        **ledger_head(protocol, run),
        evaluators=protocol.evaluators,
        cells=tuple(
            _cell_row(protocol, domain, unit, cell=cell, gold=run.gold)
            for domain, unit in units
            for cell in cells_by_condition(protocol, unit).values()
        ),
        edges=tuple(row for _, unit in units for row in unit_edges(protocol, unit)),
    )


def observed_in(domain: Domain) -> frozenset[Literal["number", "syntax"]]:
    """Which evaluators a domain has: its gold fields say so, its name decides nothing.

    An `answer` is what a number is compared with; an `entry_point` means that the task asks for a Python function.
    """
    observed: set[Literal["number", "syntax"]] = set()
    if "answer" in domain.gold:
        observed.add("number")
    if "entry_point" in domain.gold:
        observed.add("syntax")
    return frozenset(observed)


def _cell_row(
    protocol: BehaviorProtocol, domain: Domain, unit: UnitEvidence, *, cell: CellRecord, gold: Mapping[str, str]
) -> CellRow:
    observed = observed_in(domain)
    text = observed_text(protocol, cell, where=f"cell {unit.source_id}, {unit.replicate}, {cell.condition}")
    return CellRow(
        domain=unit.domain,
        index=unit.index,
        source_id=unit.source_id,
        replicate=unit.replicate,
        condition=cell.condition,
        generated_sha256=cell.generated_sha256,
        natural_eos=cell.eos,
        truncated=cell.truncated,
        length=cell.length,
        number=_number(protocol, text, gold=gold, source_id=unit.source_id) if "number" in observed else NO_NUMBERS,
        syntax=_syntax(protocol, text) if "syntax" in observed else NO_CODE,
    )


def _number(protocol: BehaviorProtocol, text: str, *, gold: Mapping[str, str], source_id: str) -> NumberObservation:
    last = _last_number(protocol, text)
    if source_id not in gold:
        return NumberObservation(last_number=last, comparison=GoldAbsent())
    if NUMBER_R04.fullmatch(gold[source_id]) is None:
        where = f"run record: gold of {source_id}"
        raise JournalError(where, expected="one number", found=repr(gold[source_id]), todo=TODO)
    plain = plain_number(gold[source_id])
    matches = isinstance(last, NumberFound) and last.value == plain
    return NumberObservation(last_number=last, comparison=GoldCompared(gold=plain, last_number_match=matches))


# An evaluator that a protocol names and these don't know is a type error here, never another version's reading.
def _last_number(protocol: BehaviorProtocol, text: str) -> LastNumber:
    match protocol.evaluators.number:
        case "number-r04":
            return last_number_r04(text)


def _syntax(protocol: BehaviorProtocol, text: str) -> SyntaxObservation:
    match protocol.evaluators.syntax:
        case "ast-r04":
            return syntax_r04(text)
