"""The own loop against transformers' `generate` (R08 4): greedy, over the same cells, by two processes made apart.

What is compared is how a batch is decoded: positions, masks, cache, finished rows. The sampler has no part in it.
"""

from dataclasses import dataclass

import msgspec

from harness.checks.generation import registered_config
from harness.checks.program_parts import Pair, holds_alone, made_apart, prompt_of_the_run, same_tokens
from harness.compare import common_prefix
from harness.evidence import Differences, RunEvidence, cell_name, differs
from harness.journal.folder import read_record
from harness.protocols.grids import RowKey
from harness.records.profile import SpecialIds
from harness.records.protocol import LoopCheckProtocol, LoopProgram
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
        found += [*holds_alone(side, row), *prompt_of_the_run(evidence.run, side, row, row)]
    return (*found, *same_tokens(one, other, cell_name(row)))


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
    programs = [side.loaded.protocol.by for side in sides if isinstance(side.loaded.protocol, LoopCheckProtocol)]
    pairs: list[Pair] = [
        ("programs", ["generate", "own_loop"], programs),
        *made_apart(run, sides, evidence.pids, grids=(1, len({side.run.grid for side in sides}))),
        *_contracts(evidence),
    ]
    return [differs(f"{cell_name(row)} {name}", one, other) for name, one, other in pairs if one != other]


def _contracts(evidence: LoopEvidence) -> list[Pair]:
    """Both sides' greedy contract, as read back from the model's own config or from the loop."""
    pairs: list[Pair] = []
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
