"""One cell drawn twice under its tape (R08 5.1, 5.3): the fields in which the two must agree.

A field is read from the side's own records: what it was registered as, what was read back, what came out.
"""

from dataclasses import dataclass

from harness.canon import digest
from harness.checks.cells import shown
from harness.checks.taped import row_of
from harness.evidence import Differences, RunEvidence, cell_name, differs
from harness.protocols.grids import RowKey
from harness.records.run import CellRecord
from harness.records.taped_study import TapedUnit
from harness.records.tapes import RowTape


@dataclass(frozen=True, slots=True)
class _Side:
    evidence: RunEvidence
    unit: TapedUnit
    cell: CellRecord
    row: RowTape


def replay_exact(first: RunEvidence, second: RunEvidence, row: RowKey, fields: tuple[str, ...]) -> Differences:
    """The same cell of two runs has the same value in each field; IDs say where they part."""
    one, other = _side(first, row), _side(second, row)
    if one is None or other is None:
        found = f"{one is not None:d} and {other is not None:d}"
        return (differs(cell_name(row), "a cell with its account on each side", found),)
    lacking = () if "generated_ids" in fields else (differs(cell_name(row), "generated_ids compared", "not"),)
    pairs = [(name, _value(one, name), _value(other, name)) for name in fields]
    return (
        *lacking,
        *(differs(f"{cell_name(row)} {name}", *shown(name, a, b)) for name, a, b in pairs if a != b),
    )


def _side(evidence: RunEvidence, row: RowKey) -> _Side | None:
    unit = evidence.batch(row)
    if not isinstance(unit, TapedUnit):
        return None
    account, cells = row_of(unit, row.item), [cell for cell in unit.cells if cell.condition == row.item]
    return _Side(evidence, unit, cells[0], account) if account is not None and len(cells) == 1 else None


def _value(side: _Side, name: str) -> object:
    unit, cell, environment = side.unit, side.cell, side.evidence.environment
    values: dict[str, object] = {
        "protocol": unit.protocol_digest,
        # The revision that the protocol digest covers, and the bytes that were read.
        "model_revision": (side.evidence.loaded.profile.revision, digest(environment.checkpoint)),
        "generation_contract": digest([environment.generation_config, unit.tape.sampler, unit.max_new_tokens]),
        "tape": (side.row.tape, side.row.tape_sha256),
        "uniforms_sha256": (side.row.consumed.count, side.row.consumed.sha256),
        "text": cell.text_escaped,
        "rng_before": unit.rng_before,
    }
    return values[name] if name in values else getattr(cell, name)
