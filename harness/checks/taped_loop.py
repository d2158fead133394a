"""The own loop against transformers' `generate` (R08 4): greedy, over the same cells, by two processes made apart.

What is compared is how a batch is decoded: positions, masks, cache, finished rows. The sampler has no part in it.
"""

from dataclasses import dataclass

import msgspec

from harness.checks.generation import greedy_steps, output_identity, registered_config, rng_untouched
from harness.checks.prompts import batch_alignment, prompt_hashes
from harness.compare import common_prefix
from harness.evidence import Differences, RunEvidence, cell_name, differs
from harness.journal.folder import read_record
from harness.protocols.grids import RowKey
from harness.records.profile import SpecialIds
from harness.records.protocol import LoopCheckProtocol, LoopProgram
from harness.records.run import Environment
from harness.records.taped import LoopCell, LoopComparison

LOOP = "loop.json"
PARTS: dict[LoopProgram, str] = {"generate": "loop_generate", "own_loop": "loop_argmax"}


@dataclass(frozen=True)
class LoopEvidence:
    """A smoke run and its two parts; `pids`: the children that the parent started for each."""

    run: RunEvidence
    generate: RunEvidence
    own: RunEvidence
    pids: tuple[tuple[int, ...], tuple[int, ...]]


def loop_equivalence(evidence: LoopEvidence, row: RowKey) -> Differences:
    """R08 4: with argmax in place of the sampler, the loop's tokens are `generate`'s greedy ones."""
    one, other = evidence.generate.cell(row), evidence.own.cell(row)
    found = _made_apart(evidence, row)
    for side in (evidence.generate, evidence.own):
        found += [*_holds(side, row), *_prompt_of_the_run(evidence.run, side, row)]
    if one.generated_ids != other.generated_ids:
        step = common_prefix(one.generated_ids, other.generated_ids)
        left, right = (list(ids[step : step + 4]) for ids in (one.generated_ids, other.generated_ids))
        found.append(differs(f"{cell_name(row)} generated_ids from step {step}", left, right))
    return tuple(found)


def loop_recorded(evidence: LoopEvidence, row: RowKey) -> Differences:
    """R08 4: loop.json says of each cell what the two parts give; whether they must agree is the protocol's to say."""
    stored = read_record(evidence.run.folder.file(LOOP), LoopComparison, what="loop comparison")
    again = loop_comparison(evidence.generate, evidence.own)
    found = _made_apart(evidence, row)
    return (*found, *(() if stored == again else (differs(f"{row.item} loop.json", again, stored),)))


def loop_comparison(generate: RunEvidence, own: RunEvidence) -> LoopComparison:
    """Cell by cell over the parts' grid, in its order."""
    cells = []
    for key in generate.keys:
        for condition in generate.loaded.protocol.conditions:
            row = RowKey(key, condition.id)
            one, other = generate.cell(row).generated_ids, own.cell(row).generated_ids
            prefix = common_prefix(one, other)
            cells.append(
                LoopCell(source_id=key.source_id, condition=condition.id, common_prefix=prefix, ids_exact=one == other)
            )
    return LoopComparison(
        schema=1,
        generate_run_sha256=generate.run_sha256,
        own_run_sha256=own.run_sha256,
        exact=sum(cell.ids_exact for cell in cells),
        cells=tuple(cells),
    )


def _made_apart(evidence: LoopEvidence, row: RowKey) -> list[str]:
    """Two programs in two processes that the session started, neither of them the run's; one environment otherwise."""
    run, sides = evidence.run, (evidence.generate, evidence.own)
    pids = [{process.pid for process in side.processes} for side in sides]
    loads = [{process.model_load_id for process in side.processes} for side in (run, *sides)]
    programs = [side.loaded.protocol.by for side in sides if isinstance(side.loaded.protocol, LoopCheckProtocol)]
    pairs: list[tuple[str, object, object]] = [
        ("programs", ["generate", "own_loop"], programs),
        ("processes", True, all(one and one <= set(two) for one, two in zip(pids, evidence.pids, strict=True))),
        ("model loads", sum(map(len, loads)), len(set().union(*loads))),
        ("protocol", [run.loaded.digest] * 2, [side.run.protocol_digest for side in sides]),
        ("grids", 1, len({side.run.grid for side in sides})),
        ("placements", [run.placement] * 2, [side.placement for side in sides]),
        ("environment", [_apart_from_contract(run)] * 2, [_apart_from_contract(side) for side in sides]),
        ("parts of this run", [_part_of(run, side) for side in sides], [side.spec.run_id for side in sides]),
        ("failures", [], [one.kind for side in sides for one in side.failures]),
        *_contracts(evidence),
    ]
    return [differs(f"{cell_name(row)} {name}", one, other) for name, one, other in pairs if one != other]


def _contracts(evidence: LoopEvidence) -> list[tuple[str, object, object]]:
    """Both sides' greedy contract, as read back from the model's own config or from the loop."""
    pairs: list[tuple[str, object, object]] = []
    for side in (evidence.generate, evidence.own):
        protocol = side.loaded.protocol
        if isinstance(protocol, LoopCheckProtocol):
            wanted = _wanted(protocol, side.loaded.profile.special_ids)
            effective = {name: msgspec.json.decode(value) for name, value in side.environment.generation_config.items()}
            found = {name: effective.get(name, "not read back") for name in wanted}
            pairs.append((f"{protocol.by} contract", wanted, found))
    return pairs


def _wanted(protocol: LoopCheckProtocol, ids: SpecialIds) -> dict[str, object]:
    if protocol.by == "generate":
        return registered_config(protocol.decode, ids)
    return {"strategy": "argmax", "eos_token_id": ids.eos, "pad_token_id": ids.pad}


def _apart_from_contract(side: RunEvidence) -> Environment:
    return msgspec.structs.replace(side.environment, generation_config={})


def _part_of(run: RunEvidence, side: RunEvidence) -> str:
    return f"{run.spec.run_id}/{side.folder.path.name}"


def _holds(side: RunEvidence, row: RowKey) -> Differences:
    """What is required of every greedy run's cell."""
    unit = RowKey(row.unit, "")
    return (
        *prompt_hashes(side, row),
        *output_identity(side, row),
        *batch_alignment(side, unit),
        *greedy_steps(side, unit),
        *rng_untouched(side, unit),
    )


def _prompt_of_the_run(run: RunEvidence, side: RunEvidence, row: RowKey) -> Differences:
    one, other = run.prompt(row, row.item).prompt_ids, side.prompt(row, row.item).prompt_ids
    return () if one == other else (differs(f"{cell_name(row)} prompt IDs", list(one), list(other)),)
