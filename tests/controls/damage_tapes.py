"""A task run in a private tree, to be damaged and judged without a session, as `damage.py` has it of other runs.

What only smoke judges (prompts of the whole grid, the synthetic table, what was drawn again, the two parts that decode
greedily) is judged over the smoke run that the formal one stands on; so is the first side of the placement pair.
"""

from dataclasses import dataclass, replace
from typing import Any

from harness.checks.frozen import frozen_verdicts
from harness.checks.pairs import same_process_replay
from harness.checks.sandbox import sandbox_verdicts
from harness.checks.taped_loop import PARTS, LoopEvidence, loop_equivalence, loop_recorded
from harness.checks.taped_run import (
    blocks_apart,
    finished_rows,
    registered_prompts,
    shared_uniforms,
    synthetic_cdf,
    tape_account,
    taped_contract,
    taped_steps,
    tapes_part,
)
from harness.evidence import Check, PairEvidence, RunEvidence, guarded
from harness.journal.folder import RunFolder
from harness.protocols.grids import gate_rows
from harness.protocols.loops import loop_check
from harness.records.protocol import LoopProgram, PairRule, TaskCrnProtocol
from harness.run.again import SAME_PROCESS

from .damage import CHECKS, Case, name_of, read

OF_EVERY_RUN = ("registration", "smoke_passed", "normal_return", "prompt_hashes", "single_id_contract")
OF_EVERY_RUN += ("batch_alignment", "decode_contract", "output_identity", "rng_untouched", "placement_recorded")
OF_EVERY_RUN += ("assembled_run", "observations", "placement_equivalence", "independent_replay", "frozen_snapshots")
TAPED_CHECKS: dict[str, Check] = {
    **{gate: CHECKS[gate] for gate in OF_EVERY_RUN},
    "registered_prompts": registered_prompts,
    "taped_contract": taped_contract,
    "tape_account": tape_account,
    "shared_uniforms": shared_uniforms,
    "finished_rows": finished_rows,
    "taped_steps": taped_steps,
    "tapes_part": tapes_part,
    "synthetic_cdf": synthetic_cdf,
    "blocks_apart": blocks_apart,
    "sandbox_verdicts": sandbox_verdicts,
    "same_process_replay": same_process_replay,
    "loop_recorded": loop_recorded,
    "loop_equivalence": loop_equivalence,
    "frozen_verdicts": frozen_verdicts,
}


@dataclass(frozen=True)
class TapedCase(Case):
    """A formal task run; a gate that only smoke has is judged over its smoke run."""

    @property
    def smoke_case(self) -> "TapedCase":
        """The smoke run that it stands on, to be damaged in the same way; of the same protocol, also an altered one."""
        case = TapedCase(self.smoke, self.protocol)
        case.__dict__["loaded"] = self.loaded
        return case

    def name(self, at: int) -> str:
        """The unit of a journal as rows name it: source and replicate."""
        unit = read(self.journal(at))["evidence"]
        return f"{unit['source_id']}:{unit['replicate']}"

    def red(self, gate: str, *, closing: bool = False) -> dict[str, str]:
        """The gate's red rows, by name, with their messages, in the formal tier or in the only one that it has."""
        registered = self.registered(gate)
        alone = "formal" not in registered.tiers and registered.reach == "run"
        case = self.smoke_case if alone else self
        return self.red_in(gate, case.evidence(registered.reach, closing=closing))

    def red_in(self, gate: str, evidence: Any) -> dict[str, str]:
        """The same over evidence of the gate's reach that was read before."""
        loaded, registered = self.loaded, self.registered(gate)
        at = registered.tiers["formal" if "formal" in registered.tiers else "smoke"]
        rows = gate_rows(loaded.protocol, loaded.profile, registered, loaded.units(at.grid, loaded.domains))
        found = {row: guarded(TAPED_CHECKS[gate], evidence, row) for row in rows}
        return {name_of(row): "; ".join(lines) for row, lines in found.items() if lines}

    def evidence(self, reach: str, *, closing: bool = False) -> Any:
        """Evidence of a reach, from the files as they are."""
        protocol = self.loaded.protocol
        if not isinstance(protocol, TaskCrnProtocol):
            raise TypeError(f"{protocol.id} draws under no tape")
        match reach:
            case "placement":
                second = self._evidence_at(RunFolder(self.run / reach))
                whole = self.main().spec.run_id
                return PairEvidence(
                    self.smoke_case.main(), second, protocol.placement_equivalence, self._pids(reach), part_of=whole
                )
            case "same_process":
                again, own = protocol.same_process_replay, protocol.placement
                rule = PairRule(grid=again.grid, left=own, right=own, fields=again.fields)
                smoke = self.smoke_case
                return PairEvidence(smoke.main(), self._evidence_at(RunFolder(smoke.run / SAME_PROCESS)), rule, ())
            case "loop":
                smoke = self.smoke_case
                pids = tuple(smoke._pids(PARTS[program]) for program in PARTS)
                sides = tuple(smoke.loop_side(program) for program in PARTS)
                return LoopEvidence(smoke.main(), *sides, pids)
        return super().evidence(reach, closing=closing)

    def loop_side(self, program: LoopProgram) -> RunEvidence:
        """A part of this smoke run that was decoded greedily by that program."""
        folder = RunFolder(self.run / PARTS[program])
        return replace(self._evidence_at(folder), loaded=loop_check(self.loaded, program))

    def _pids(self, part: str) -> tuple[int, ...]:
        return tuple(read(self.run / part / "complete.json")["pids"])
