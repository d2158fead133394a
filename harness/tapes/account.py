"""A row's tape account against its cell: what tape, source and generated IDs say that it must be."""

from harness.records.run import CellRecord
from harness.records.tapes import EdgeDistance, Finished, NotFinished, RowTape
from harness.tapes.consumed import consumption_differences
from harness.tapes.tape import Tape


def account_differences(row: RowTape, cell: CellRecord, *, tape: Tape, source_id: str, steps: int) -> tuple[str, ...]:
    """Every field that isn't what the cell says; empty where all are. `steps`: forwards of the batch.

    R08 4.2: consumed values; R08 2: a finished row's mask. Draws themselves can't be made again without the logits.
    """
    finish = Finished(step=cell.length - 1) if cell.eos else NotFinished()
    owed = {
        "condition": cell.condition,
        "tape": tape.label,
        "tape_sha256": tape.sha256,
        "finish": finish,
        "attended": attended_columns(prompt=len(cell.prompt_ids), length=cell.length, steps=steps),
    }
    found = [
        f"{name}: expected {value!r}, found {getattr(row, name)!r}"
        for name, value in owed.items()
        if getattr(row, name) != value
    ]
    found += [f"consumed.{one}" for one in consumption_differences(row.consumed, tape, source_id, cell.length)]
    return (*found, *_impossible(row, cell.length))


def attended_columns(*, prompt: int, length: int, steps: int) -> int:
    """Columns with mask 1 in the last of `steps` forwards: prompt and own tokens; the last step's token isn't fed."""
    return prompt + min(length, steps - 1)


def _impossible(row: RowTape, length: int) -> list[str]:
    most = {"gaps": 0 if row.sampler.rule == "icdf-v1" else length, "boundary_ties": length}
    found = [
        f"{name}: expected 0 to {limit}, found {getattr(row, name)}"
        for name, limit in most.items()
        if not 0 <= getattr(row, name) <= limit
    ]
    if len(row.gap_steps) != row.gaps:
        found.append(f"gap_steps: expected {row.gaps} steps, found {len(row.gap_steps)}")
    if sorted({*row.gap_steps} & {*range(length)}) != [*row.gap_steps]:
        found.append(f"gap_steps: expected ascending steps below {length}, found {row.gap_steps}")
    if isinstance(row.nearest_edge, EdgeDistance) and not 0 <= row.nearest_edge.distance < 1:
        found.append(f"nearest_edge: expected a distance in [0, 1), found {row.nearest_edge.distance}")
    return found
