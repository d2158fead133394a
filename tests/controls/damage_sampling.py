"""A sampling run in a private tree, to be damaged and judged without a session, as `damage.py` has it of other runs.

What the same process drew again is a part of the smoke run; placements are compared at the smoke budget, so that pair's
first run is the smoke run too.
"""

from dataclasses import dataclass
from typing import Any

from harness.canon import digest
from harness.checks.attempts import placement_attempts
from harness.checks.completion import baseline_prompts, completion_state
from harness.checks.frozen import frozen_verdicts
from harness.checks.pairs import same_process_replay
from harness.checks.sampled_run import (
    draw_shape,
    drawn_generator,
    replicates_part,
    sampled_steps,
    sampling_parameters,
    seed_identity,
    seeded_state,
)
from harness.checks.sandbox import sandbox_verdicts
from harness.evidence import Check, PairEvidence, guarded
from harness.journal.folder import RunFolder
from harness.protocols.grids import gate_rows
from harness.records.protocol import PairRule, SamplingProtocol
from harness.run.again import SAME_PROCESS

from .damage import CHECKS, Case, edit, name_of, read

OF_EVERY_RUN = ("registration", "smoke_passed", "normal_return", "prompt_hashes", "single_id_contract")
OF_EVERY_RUN += ("batch_alignment", "decode_contract", "output_identity", "placement_recorded", "assembled_run")
OF_EVERY_RUN += ("observations", "placement_equivalence", "independent_replay", "frozen_snapshots")
SAMPLING_CHECKS: dict[str, Check] = {
    **{gate: CHECKS[gate] for gate in OF_EVERY_RUN},
    "baseline_prompts": baseline_prompts,
    "placement_attempts": placement_attempts,
    "completion_state": completion_state,
    "sandbox_verdicts": sandbox_verdicts,
    "frozen_verdicts": frozen_verdicts,
    "sampling_parameters": sampling_parameters,
    "seed_identity": seed_identity,
    "seeded_state": seeded_state,
    "drawn_generator": drawn_generator,
    "sampled_steps": sampled_steps,
    "draw_shape": draw_shape,
    "replicates_part": replicates_part,
    "same_process_replay": same_process_replay,
}


@dataclass(frozen=True)
class SampledCase(Case):
    """A formal sampling run; a gate that only smoke has is judged over its smoke run."""

    @property
    def smoke_case(self) -> "SampledCase":
        """The smoke run that it stands on, to be damaged in the same way."""
        return SampledCase(self.smoke, self.protocol)

    def name(self, at: int) -> str:
        """The unit of a journal as rows name it: source and replicate."""
        unit = read(self.journal(at))["evidence"]
        return f"{unit['source_id']}:{unit['replicate']}"

    def seal_journals(self) -> None:
        """Renew the digests of the journals; nothing is made of them again."""
        for path in (self.run / "journal").glob("*.json"):
            edit(path, lambda journal: journal.update(evidence_sha256=digest(journal["evidence"])))

    def red_in(self, gate: str, evidence: Any) -> dict[str, str]:
        """The gate's red rows, by name, with their messages, in the formal tier or in the only one that it has."""
        loaded, registered = self.loaded, self.registered(gate)
        at = registered.tiers["formal" if "formal" in registered.tiers else "smoke"]
        rows = gate_rows(loaded.protocol, loaded.profile, registered, loaded.units(at.grid, loaded.domains))
        found = {row: guarded(SAMPLING_CHECKS[gate], evidence, row) for row in rows}
        return {name_of(row): "; ".join(lines) for row, lines in found.items() if lines}

    def evidence(self, reach: str, *, closing: bool = False) -> Any:
        """Evidence of a reach, from the files as they are."""
        protocol = self.loaded.protocol
        if not isinstance(protocol, SamplingProtocol):
            raise TypeError(f"{protocol.id} samples nothing")
        smoke = self.smoke_case
        if reach == "placement":
            pids = tuple(read(self.run / reach / "complete.json")["pids"])
            second = self._evidence_at(RunFolder(self.run / reach))
            return PairEvidence(
                smoke.main(), second, protocol.placement_equivalence, pids, part_of=self.main().spec.run_id
            )
        if reach == SAME_PROCESS:
            again, own = protocol.same_process_replay, protocol.placement
            rule = PairRule(grid=again.grid, left=own, right=own, fields=again.fields)
            return PairEvidence(smoke.main(), self._evidence_at(RunFolder(smoke.run / reach)), rule, ())
        return super().evidence(reach, closing=closing)
