"""The gates that a study has, whoever writes its protocol.toml: which follow from judges, edges and decoding alone.

None may be left out, moved to another tier or counted over other rows: a passed run of a study means the same of all.
"""

from collections.abc import Iterator

from harness.protocols.require import require
from harness.records.protocol import Gate, RegisteredStudy, TapedStudyProtocol, Tier
from harness.records.study import FunctionJudge, ProgramJudge

ALL: tuple[Tier, ...] = ("smoke", "formal", "replay")
JUDGED: tuple[Tier, ...] = ("smoke", "formal")
SMOKE: tuple[Tier, ...] = ("smoke",)
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
)
GREEDY: tuple[Row, ...] = (
    ("greedy_steps", "run", "units", "every emitted ID was the argmax of finite logits, finished rows aside", ALL),
)
TAPED: tuple[Row, ...] = (
    ("taped_contract", "run", "units", "each unit's tape, sampler, columns and cache are the registered ones", ALL),
    ("tape_account", "run", "cells", "what a row consumed follows from tape, source and step", ALL),
    ("shared_uniforms", "run", "units", "all conditions of a source and tape read the same number in each step", ALL),
    ("finished_rows", "run", "cells", "a finished row is fed PAD with mask 0 and consumes nothing", ALL),
    ("taped_steps", "run", "units", "logits finite in every step of every live row, one number an emitted ID", ALL),
    ("tapes_part", "run", "whole", "at least one cell under the second tape isn't the first tape's", JUDGED),
    ("synthetic_cdf", "run", "whole", "the run's own sampler draws what known distributions owe", SMOKE),
)
RETURNED: tuple[Row, ...] = (
    ("output_identity", "run", "cells", "IDs, text, hashes, EOS and length agree with each other and the budget", ALL),
    ("rng_untouched", "run", "units", "nothing is drawn from any generator", ALL),
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
AGAIN: tuple[Row, ...] = (
    ("same_process_replay", "same_process", "cells", "the same process draws the first tape again, exactly", SMOKE),
    ("loop_recorded", "loop", "whole", "the own loop with argmax beside generate's greedy decoding, apart", SMOKE),
)
LOOP: Row = ("loop_equivalence", "loop", "cells", "the own loop's argmax tokens are generate's greedy ones", SMOKE)
APART: tuple[Row, ...] = (
    ("placement_equivalence", "placement", "cells", "two placements give the same cells", FORMAL),
    ("independent_replay", "replay", "cells", "a fresh process generates the cells again, exactly", FORMAL),
    ("frozen_snapshots", "snapshots", "units", "an accepted run's cells, compared with a run made apart", FROZEN),
)
VERDICTS: Row = ("frozen_verdicts", "snapshots", "executed_units", "an accepted run's verdicts, the same", FORMAL)


def registered_rows(protocol: RegisteredStudy) -> Iterator[Row]:
    """The gates of this study, in the order in which `init` writes them."""
    judges = protocol.evaluators.judges
    programs = any(isinstance(judge, ProgramJudge) for judge in judges)
    taped = isinstance(protocol, TapedStudyProtocol)
    yield from REGISTERED
    yield from TAPED if taped else GREEDY
    yield from RETURNED
    yield from (EDGES,) if protocol.edges else ()
    yield from (SCORES,) if any(isinstance(judge, FunctionJudge) for judge in judges) else ()
    yield from PROGRAMS if programs else ()
    yield from AGAIN if taped else ()
    yield from (LOOP,) if isinstance(protocol, TapedStudyProtocol) and protocol.loop_equivalence == "required" else ()
    yield from APART
    yield from (VERDICTS,) if programs else ()


def grid_of(protocol: RegisteredStudy, reach: str, tier: Tier) -> str:
    """The grid that a gate of this reach counts in a tier."""
    apart = {"placement": protocol.placement_equivalence.grid, "replay": protocol.independent_replay.grid}
    if isinstance(protocol, TapedStudyProtocol):
        again = protocol.same_process_replay.grid
        apart |= {"same_process": again, "loop": again}
    return apart.get(reach, protocol.tier_grids[tier])


def check_study_gates(protocol: RegisteredStudy, where: str) -> None:
    """ProtocolError where a gate of the study is missing, is another, or stands there without being one of them."""
    gates = {gate.id: gate for gate in protocol.gates}
    rows = {row[0]: row for row in registered_rows(protocol)}
    require({*gates} == {*rows}, f"{where}: gates", expected=", ".join(rows), found=", ".join(gates) or "none")
    for name, (_, reach, kind, _, tiers) in rows.items():
        wanted = (reach, kind, {tier: grid_of(protocol, reach, tier) for tier in tiers})
        found = _asked(gates[name])
        require(found == wanted, f"{where}: gates.{name}", expected=wanted, found=found)


def _asked(gate: Gate) -> tuple[str, str, dict[Tier, str]]:
    return gate.reach, gate.rows, {tier: at.grid for tier, at in gate.tiers.items()}
