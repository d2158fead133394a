"""What checks of two cells share, however the cells were drawn: how a field is shown, and how many cells part."""

from collections.abc import Mapping

from harness.canon import text_sha256
from harness.compare import common_prefix
from harness.records.run import UnitEvidence


def shown(name: str, left: object, right: object) -> tuple[object, object]:
    """A field's two values for a message: IDs from where they part; model text isn't shown, only its digest."""
    if name == "generated_ids" and isinstance(left, tuple) and isinstance(right, tuple):
        step = common_prefix(left, right)
        return f"{list(left[step : step + 4])} from step {step}", list(right[step : step + 4])
    return (text_sha256(str(left)), text_sha256(str(right))) if name == "text" else (left, right)


def parted_cells(one: Mapping[str, UnitEvidence], other: Mapping[str, UnitEvidence]) -> tuple[int, int]:
    """Of two replicates by source: cells with other generated IDs, and all cells of the first.

    A condition that the second has not exactly once is no cell that parts.
    """
    parted = 0
    for source, unit in one.items():
        for cell in unit.cells:
            theirs = [here.generated_ids for here in other[source].cells if here.condition == cell.condition]
            parted += len(theirs) == 1 and theirs[0] != cell.generated_ids
    return parted, sum(len(unit.cells) for unit in one.values())
