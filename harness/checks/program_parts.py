"""What is required of the parts of a smoke run that other programs made of its cells, whatever is compared of them.

Each was made by a process of its own, under the run's protocol, placement and environment, and holds by itself.
"""

from collections.abc import Sequence

import msgspec

from harness.checks.generation import greedy_steps, output_identity, rng_untouched
from harness.checks.prompts import batch_alignment, prompt_hashes
from harness.checks.taped_run import drawn_under_tape
from harness.compare import common_prefix
from harness.evidence import Differences, RunEvidence, cell_name, differs
from harness.protocols.grids import RowKey
from harness.records.protocol import TapedProtocol
from harness.records.run import CellRecord, Environment

Pair = tuple[str, object, object]  # a name, what is expected, what was found


def made_apart(
    run: RunEvidence, sides: Sequence[RunEvidence], pids: Sequence[tuple[int, ...]], *, grids: tuple[object, object]
) -> list[Pair]:
    """By processes that the session started, none of them the run's; one environment but for the program itself.

    `pids`: of each side the children that the parent started. `grids`: expected and found, the comparison's to say.
    """
    made_by = [{process.pid for process in side.processes} for side in sides]
    loads = [{process.model_load_id for process in side.processes} for side in (run, *sides)]
    count = len(sides)
    return [
        ("processes", True, all(one and one <= set(two) for one, two in zip(made_by, pids, strict=True))),
        ("model loads", sum(map(len, loads)), len(set().union(*loads))),
        ("protocol", [run.loaded.digest] * count, [side.run.protocol_digest for side in sides]),
        ("grids", *grids),
        ("placements", [run.placement] * count, [side.placement for side in sides]),
        ("environment", [_bare(run)] * count, [_bare(side) for side in sides]),
        ("parts of this run", [_part_of(run, side) for side in sides], [side.spec.run_id for side in sides]),
        ("failures", [], [one.kind for side in sides for one in side.failures]),
    ]


def _bare(side: RunEvidence) -> Environment:
    """The environment without what was read back of the program, which each comparison judges."""
    return msgspec.structs.replace(side.environment, generation_config={})


def _part_of(run: RunEvidence, side: RunEvidence) -> str:
    return f"{run.spec.run_id}/{side.folder.path.name}"


def holds_alone(side: RunEvidence, row: RowKey) -> Differences:
    """What is required of a part's cell by itself: drawn under a tape, or greedy."""
    unit = RowKey(row.unit, "")
    drawn = isinstance(side.loaded.protocol, TapedProtocol)
    return (
        *prompt_hashes(side, row),
        *output_identity(side, row),
        *batch_alignment(side, unit),
        *(drawn_under_tape(side, unit) if drawn else greedy_steps(side, unit)),
        *rng_untouched(side, unit),
    )


def prompt_of_the_run(run: RunEvidence, side: RunEvidence, row: RowKey, at: RowKey) -> Differences:
    """The part's cell at `at` has the prompt of the run's cell `row`."""
    one, other = run.prompt(row, row.item).prompt_ids, side.prompt(at, at.item).prompt_ids
    return () if one == other else (differs(f"{cell_name(row)} prompt IDs", list(one), list(other)),)


def same_tokens(one: CellRecord, other: CellRecord, where: str) -> Differences:
    """Where two cells part, with the next four tokens of both; none where they don't."""
    if one.generated_ids == other.generated_ids:
        return ()
    step = common_prefix(one.generated_ids, other.generated_ids)
    left, right = (list(ids[step : step + 4]) for ids in (one.generated_ids, other.generated_ids))
    return (differs(f"{where} generated_ids from step {step}", left, right),)
