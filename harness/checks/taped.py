"""Checks of units drawn under a tape (R08 2, 4, 5): accounts, shared numbers, finished rows, steps, tapes that part.

Over the records of units directly: one unit, or two of the same source. Nothing here needs logits, so no draw is made
again; what a row consumed, when it ended and what its last forward attended to follow from identity and generated IDs.
"""

from collections.abc import Iterable, Sequence

from harness.checks.cells import parted_cells
from harness.evidence import Differences, differs
from harness.records.run import CellRecord
from harness.records.taped import TapedContract
from harness.records.taped_study import TapedUnit
from harness.records.tapes import Finished, NotFinished, RowTape
from harness.tapes.account import account_differences, attended_columns
from harness.tapes.consumed import FIRST, registered_consumption
from harness.tapes.tape import Tape

Triple = tuple[str, object, object]
CACHES = {"dynamic": "DynamicCache", "fixed": "FixedCache"}  # the registered word, and the class that was read back


def taped_contract(unit: TapedUnit, contract: TapedContract, *, tape: Tape, columns: int) -> Differences:
    """R08 2 and 4.3: the registered tape and sampler, all columns of the logits, a cache that held every position fed.

    The last token isn't fed, so after so many forwards the cache holds the prompts' width and one position less.
    """
    batch = unit.tape
    width = max(len(cell.prompt_ids) + cell.left_padding for cell in unit.cells)
    pairs: list[Triple] = [
        ("tape", (tape.label, tape.sha256), (batch.label, batch.sha256)),
        ("replicate", tape.label, unit.replicate),
        ("sampler", contract.sampler, batch.sampler),
        ("columns", columns, batch.columns),
        ("cache", CACHES[contract.cache], batch.cache),
        ("positions in the cache", width + unit.checks.steps - 1, batch.cached),
    ]
    pairs += [(f"{row.condition} sampler", contract.sampler, row.sampler) for row in batch.rows]
    return _differences(unit, pairs)


def tape_account(unit: TapedUnit, condition: str, tape: Tape) -> Differences:
    """R08 4.3: first eight values, hash of all consumed, gaps, end: what tape, source and the cell's IDs say."""
    found = _row_and_cell(unit, condition)
    if isinstance(found, str):
        return (found,)
    row, cell = found
    lines = account_differences(row, cell, tape=tape, source_id=unit.source_id, steps=unit.checks.steps)
    last = unit.tape.columns - 1
    beside = [step for step in row.gap_steps if step < cell.length and cell.generated_ids[step] != last]
    at = f"{_name(unit)} {condition}"
    return (
        *(f"{at} {line}" for line in lines),
        *(differs(f"{at} ID of gap step {step}", last, cell.generated_ids[step]) for step in beside),
    )


def shared_uniforms(unit: TapedUnit, conditions: Sequence[str], tape: Tape) -> Differences:
    """R08 4.2 and 5.1: in each step the rows read one value: each row's account is a prefix of one sequence.

    The sequence is the tape's for this source, made here from step 0 on; a row that read another step, tape or source
    anywhere has another hash.
    """
    rows = [row.condition for row in unit.tape.rows]
    pairs: list[Triple] = [("rows", [*conditions], rows)]
    longest = max((row.consumed.count for row in unit.tape.rows), default=0)
    first = registered_consumption(tape, unit.source_id, min(longest, FIRST)).first_z
    for row in unit.tape.rows:
        wanted = registered_consumption(tape, unit.source_id, row.consumed.count)
        pairs.append((f"{row.condition} first z", first[: row.consumed.count], row.consumed.first_z))
        pairs.append((f"{row.condition} hash of {row.consumed.count} z", wanted.sha256, row.consumed.sha256))
    return _differences(unit, pairs)


def finished_rows(unit: TapedUnit, condition: str) -> Differences:
    """R08 2: a row that ended is fed PAD with mask 0 while others go on, and consumes nothing more."""
    found = _row_and_cell(unit, condition)
    if isinstance(found, str):
        return (found,)
    row, cell = found
    steps = max((one.length for one in unit.cells), default=0)
    wanted = attended_columns(prompt=len(cell.prompt_ids), length=cell.length, steps=steps)
    pairs: tuple[Triple, ...] = (
        ("end", Finished(step=cell.length - 1) if cell.eos else NotFinished(), row.finish),
        ("columns attended to in the last forward", wanted, row.attended),
        ("values consumed", cell.length, row.consumed.count),
    )
    return _differences(unit, pairs, condition)


def taped_steps(unit: TapedUnit) -> Differences:
    """R08 5.1: every emitted ID of every row was chosen from finite logits, one forward a step for all rows."""
    emitted, checks = sum(cell.length for cell in unit.cells), unit.checks
    consumed = sum(row.consumed.count for row in unit.tape.rows)
    pairs: tuple[Triple, ...] = (
        ("row steps checked", emitted, checks.rows_checked),
        ("row steps with finite logits", emitted, checks.finite),
        ("values consumed by the rows", emitted, consumed),
        ("row steps that drew the argmax, at most", True, 0 <= checks.argmax <= emitted),
        ("steps", max((cell.length for cell in unit.cells), default=0), checks.steps),
    )
    return _differences(unit, pairs)


def tapes_part(first: Iterable[TapedUnit], second: Iterable[TapedUnit]) -> Differences:
    """R08 5.1: two tapes over the same cells, with other values, and at least one trajectory parts."""
    one, other = ({unit.source_id: unit for unit in units} for units in (first, second))
    if set(one) != set(other) or not one:
        return (differs("sources of two tapes", sorted(one) or "one or more", sorted(other)),)
    found = [text for source in sorted(one) for text in _two_tapes(one[source], other[source])]
    parted, cells = parted_cells(one, other)
    if not parted:
        found.append(differs(f"{cells} cells of two tapes", "one or more that part", "none"))
    return tuple(found)


def _two_tapes(one: TapedUnit, other: TapedUnit) -> Differences:
    prompts = [[(cell.condition, cell.prompt_sha256) for cell in unit.cells] for unit in (one, other)]
    firsts = [{row.consumed.first_z[:1] for row in unit.tape.rows} for unit in (one, other)]
    pairs: tuple[Triple, ...] = (
        ("tapes", 2, len({one.tape.sha256, other.tape.sha256})),
        ("first values, none shared", set(), firsts[0] & firsts[1]),
        ("prompts", prompts[0], prompts[1]),
    )
    return _differences(one, pairs, f"and {other.replicate}")


def row_of(unit: TapedUnit, condition: str) -> RowTape | None:
    """The account of a condition's row, where there is exactly one."""
    rows = [row for row in unit.tape.rows if row.condition == condition]
    return rows[0] if len(rows) == 1 else None


def _row_and_cell(unit: TapedUnit, condition: str) -> tuple[RowTape, CellRecord] | str:
    row = row_of(unit, condition)
    cells = [cell for cell in unit.cells if cell.condition == condition]
    if row is None or len(cells) != 1:
        return differs(
            f"{_name(unit)} {condition}", "one row with one account", f"{len(cells)} and {row is not None:d}"
        )
    return row, cells[0]


def _name(unit: TapedUnit) -> str:
    return f"{unit.source_id} {unit.replicate}"


def _differences(unit: TapedUnit, pairs: Iterable[Triple], more: str = "") -> Differences:
    where = f"{_name(unit)} {more}".rstrip()
    return tuple(differs(f"{where} {name}", one, other) for name, one, other in pairs if one != other)
