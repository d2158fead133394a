"""The gates of a study, with the denominators that its grids give."""

from collections.abc import Iterator
from typing import Any

from harness.protocols.grids import gate_rows, unit_keys
from harness.records.profile import Profile
from harness.records.protocol import Gate, GateGrid, StudyProtocol, Tier
from harness.records.study import FunctionJudge, ProgramJudge

ALL: tuple[Tier, ...] = ("smoke", "formal", "replay")
JUDGED: tuple[Tier, ...] = ("smoke", "formal")
FORMAL: tuple[Tier, ...] = ("formal",)
FROZEN: tuple[Tier, ...] = ("formal", "replay")
Row = tuple[str, str, str, str, tuple[Tier, ...]]

# Gate, reach, rows, what it asks, tiers.
REGISTERED: tuple[Row, ...] = (
    ("registration", "registration", "identities", "files, tokenizer and tokens are the registered ones", ALL),
    ("smoke_passed", "smoke_record", "whole", "the formal run starts only after the smoke gates passed", FORMAL),
    ("normal_return", "run", "cells", "every call returns; reaching the budget is a return", ALL),
    ("prompt_hashes", "run", "cells", "the prompt's token hash is the manifest's", ALL),
    ("edit_contract", "run", "cells", "the prompt is the rendered one with its edits at their proven places", ALL),
    ("batch_alignment", "run", "units", "all conditions of a source in one left-padded batch", ALL),
    ("decode_contract", "run", "whole", "the effective generation config and execution, as read back", ALL),
    ("greedy_steps", "run", "units", "every emitted ID was the argmax of finite logits, finished rows aside", ALL),
    ("output_identity", "run", "cells", "IDs, text, hashes, EOS and length agree with each other and the budget", ALL),
    ("rng_untouched", "run", "units", "greedy decoding draws nothing from any generator", ALL),
    ("placement_recorded", "run", "whole", "where the model was, as registered and as read back", ALL),
    ("assembled_run", "run", "whole", "run, ledger and statistics follow from the journals, byte for byte", ALL),
    ("completion_state", "run", "cells", "every cell has one completion state; another stop fails", ALL),
    ("observations", "run", "cells", "the cell's row follows from its text, its gold and its verdict", JUDGED),
)
EDGES: Row = ("paired_comparison", "run", "edges", "each registered comparison follows from its two cells", JUDGED)
SCORES: Row = ("function_scores", "run", "cells", "the author's function gives the cell's score again", JUDGED)
PROGRAMS: tuple[Row, ...] = (
    ("sandbox_verdicts", "run", "executed_cells", "each program ran in a fresh container under the contract", FORMAL),
)
APART: tuple[Row, ...] = (
    ("placement_equivalence", "placement", "cells", "two placements give the same cells", FORMAL),
    ("independent_replay", "replay", "cells", "a fresh process generates the cells again, exactly", FORMAL),
    ("frozen_snapshots", "snapshots", "units", "an accepted run's cells, compared with a run made apart", FROZEN),
)
VERDICTS: Row = ("frozen_verdicts", "snapshots", "executed_units", "an accepted run's verdicts, the same", FORMAL)


def study_gates(protocol: StudyProtocol, profile: Profile) -> list[dict[str, Any]]:
    """The gates as plain data; `protocol` is the study without any."""
    return [_gate(protocol, profile, row) for row in _rows(protocol)]


def _rows(protocol: StudyProtocol) -> Iterator[Row]:
    judges = protocol.evaluators.judges
    programs = any(isinstance(judge, ProgramJudge) for judge in judges)
    yield from REGISTERED
    yield from (EDGES,) if protocol.edges else ()
    yield from (SCORES,) if any(isinstance(judge, FunctionJudge) for judge in judges) else ()
    yield from PROGRAMS if programs else ()
    yield from APART
    yield from (VERDICTS,) if programs else ()


def _gate(protocol: StudyProtocol, profile: Profile, row: Row) -> dict[str, Any]:
    name, reach, rows, clause, tiers = row
    apart = {"placement": protocol.placement_equivalence.grid, "replay": protocol.independent_replay.grid}
    grids = {tier: apart.get(reach, protocol.tier_grids[tier]) for tier in tiers}
    return {
        "id": name,
        "clause": f"study: {clause}",
        "reach": reach,
        "rows": rows,
        "tiers": {tier: {"grid": grid, "count": _count(protocol, profile, row, grid)} for tier, grid in grids.items()},
    }


def _count(protocol: StudyProtocol, profile: Profile, row: Row, grid: str) -> int:
    """Rows of the gate on a grid; the sources' names don't matter to it."""
    name, reach, rows, clause, _ = row
    gate = Gate(id=name, clause=clause, reach=reach, rows=rows, tiers={"smoke": GateGrid(grid=grid, count=0)})  # type: ignore[arg-type]
    domains = tuple(domain.name for domain in protocol.domains)
    ranks = range(protocol.grids[grid].per_domain)
    sources = {(domain, rank): f"{domain}-{rank}" for domain in domains for rank in ranks}
    return len(gate_rows(protocol, profile, gate, unit_keys(protocol, sources, grid, domains)))
