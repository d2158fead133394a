"""Ways of damaging a finished run, and reading what the gates say of it. Each keeps or renews the digests as it says.

`seal` makes a damaged run agree with itself again, as a careful forger would; what is red after it is red because of
what the run claims and not because of a stale digest.
"""

import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from harness.canon import canonical_bytes, digest, ids_sha256, sha256_hex, text_sha256, unescaped
from harness.checks.attempts import placement_attempts
from harness.checks.comparison import observations, paired_comparison
from harness.checks.completion import baseline_prefix, baseline_prompts, completion_state
from harness.checks.depth import (
    edge_trace,
    embedding_identity,
    forward_contract,
    generation_join,
    hooks_change_nothing,
    scale_identity,
    stages_and_gates,
    target_tokens,
)
from harness.checks.depth_apart import frozen_tensors, replay_hidden, replay_routes, replay_sources, replay_weights
from harness.checks.frozen import (
    SmokeEvidence,
    SnapshotEvidence,
    frozen_snapshots,
    frozen_verdicts,
    registration,
    smoke_passed,
)
from harness.checks.generation import decode_contract, greedy_steps, normal_return, output_identity, rng_untouched
from harness.checks.pairs import independent_replay, placement_equivalence, row_determinism
from harness.checks.prompts import batch_alignment, prompt_hashes, single_id_contract
from harness.checks.sandbox import sandbox_verdicts
from harness.checks.whole import assembled_run, placement_recorded
from harness.errors import HarnessError
from harness.evidence import Check, PairEvidence, RunEvidence, VariantEvidence, guarded
from harness.journal.folder import RunFolder, read_record
from harness.ledgers.close import close_books, close_generation, close_run
from harness.places import Places
from harness.protocols.grids import RowKey, gate_rows
from harness.protocols.load import LoadedProtocol, load_protocol
from harness.records.audit import SmokeReference
from harness.records.protocol import ApartRule, BaselinedProtocol, BehaviorProtocol, Gate, GenerationProtocol, PairRule
from harness.snapshots.baseline import frozen_baseline
from harness.snapshots.store import read_frozen

CHECKS: dict[str, Check] = {
    "registration": registration,
    "smoke_passed": smoke_passed,
    "normal_return": normal_return,
    "prompt_hashes": prompt_hashes,
    "single_id_contract": single_id_contract,
    "batch_alignment": batch_alignment,
    "decode_contract": decode_contract,
    "greedy_steps": greedy_steps,
    "output_identity": output_identity,
    "rng_untouched": rng_untouched,
    "placement_recorded": placement_recorded,
    "assembled_run": assembled_run,
    "observations": observations,
    "paired_comparison": paired_comparison,
    "placement_equivalence": placement_equivalence,
    "independent_replay": independent_replay,
    "row_determinism": row_determinism,
    "frozen_snapshots": frozen_snapshots,
}
COMPLETION_CHECKS: dict[str, Check] = {
    **{gate: check for gate, check in CHECKS.items() if gate != "row_determinism"},
    "baseline_prompts": baseline_prompts,
    "baseline_prefix": baseline_prefix,
    "placement_attempts": placement_attempts,
    "completion_state": completion_state,
    "sandbox_verdicts": sandbox_verdicts,
    "frozen_verdicts": frozen_verdicts,
}
DEPTH_CHECKS: dict[str, Check] = {
    **{gate: CHECKS[gate] for gate in ("registration", "smoke_passed", "normal_return", "prompt_hashes")},
    **{gate: CHECKS[gate] for gate in ("single_id_contract", "batch_alignment", "rng_untouched", "placement_recorded")},
    **{gate: CHECKS[gate] for gate in ("assembled_run", "frozen_snapshots")},
    "generation_join": generation_join,
    "target_tokens": target_tokens,
    "forward_contract": forward_contract,
    "hooks_change_nothing": hooks_change_nothing,
    "stages_and_gates": stages_and_gates,
    "embedding_identity": embedding_identity,
    "edge_trace": edge_trace,
    "scale_identity": scale_identity,
    "replay_sources": replay_sources,
    "replay_hidden": replay_hidden,
    "replay_routes": replay_routes,
    "replay_weights": replay_weights,
    "frozen_tensors": frozen_tensors,
}
DERIVED = ("run.json", "ledger.json", "statistics.json")
OUTPUT = ("generated_ids", "generated_sha256", "text_escaped", "text_sha256", "eos", "truncated", "length")

Change = Callable[[Any], None]
Damage = Callable[["Case"], None]


@dataclass(frozen=True)
class Case:
    """A run in a private tree, to be damaged and judged without a session."""

    run: Path
    protocol: str = "mini-behavior"

    @property
    def tree(self) -> Path:
        """The tree that the run lies in."""
        return self.run.parents[2]

    @cached_property
    def loaded(self) -> LoadedProtocol:
        """The tree's protocol, which no fault alters."""
        return load_protocol(self.protocol, Places(self.tree))

    @property
    def smoke(self) -> Path:
        """The smoke run that the formal run stands on."""
        return self.run.parent / str(read(self.run / "smoke.json")["run_id"])

    def journal(self, at: int = 0, part: str = "") -> Path:
        """The journal of the unit at that place, of the run or of one of its parts."""
        return sorted((self.run / part / "journal").glob("*.json"))[at]

    def source(self, at: int = 0) -> str:
        """The source of that journal."""
        return str(read(self.journal(at))["evidence"]["source_id"])

    def edit(self, name: str, change: Change) -> None:
        """Change a JSON file of the run; no digest is renewed."""
        edit(self.run / name, change)

    def edit_unit(self, change: Change, *, at: int = 0, part: str = "") -> None:
        """Change a unit's evidence; no digest is renewed."""
        edit(self.journal(at, part), lambda journal: change(journal["evidence"]))

    def edit_cell(self, condition: str, change: Change, *, at: int = 0, part: str = "") -> None:
        """Change one cell; no digest is renewed."""
        self.edit_unit(lambda unit: change(cell_of(unit, condition)), at=at, part=part)

    def seal(self, part: str = "") -> None:
        """Renew every digest of the run or part and make run.json, ledger and statistics again."""
        folder = self.run / part
        environment, placement = (digest(read(folder / f"{name}.json")) for name in ("environment", "placement"))
        for path in (folder / "journal").glob("*.json"):
            edit(path, lambda journal: _seal(journal, environment, placement))
        for name in DERIVED:
            (folder / name).unlink()
        close_run(RunFolder(folder), self.loaded)

    def red(self, gate: str, *, closing: bool = False) -> dict[str, str]:
        """The gate's rows that don't hold, by name, with their messages. `closing`: as a session judges, see `main`."""
        return self.red_in(gate, self.evidence(self.registered(gate).reach, closing=closing))

    def registered(self, gate: str) -> Gate:
        """The gate as the protocol registers it."""
        return next(one for one in self.loaded.protocol.gates if one.id == gate)

    def red_in(self, gate: str, evidence: Any) -> dict[str, str]:
        """The same over evidence of the gate's reach that was read before."""
        loaded, registered = self.loaded, self.registered(gate)
        units = loaded.units(registered.tiers["formal"].grid, loaded.domains)
        rows = gate_rows(loaded.protocol, loaded.profile, registered, units)
        found = {row: guarded((CHECKS | COMPLETION_CHECKS | DEPTH_CHECKS)[gate], evidence, row) for row in rows}
        return {name_of(row): "; ".join(lines) for row, lines in found.items() if lines}

    def main(self, *, closing: bool = False) -> RunEvidence:
        """The run as it lies there; or, as a session has it, with what stopped it from being closed again."""
        folder = RunFolder(self.run)
        if not closing:
            return self._evidence_at(folder)
        try:
            run = close_generation(folder, self.loaded)
        except HarnessError as error:
            return self._evidence_at(folder, stopped=error)
        try:
            close_books(folder, self.loaded, run)
        except HarnessError as error:
            return self._evidence_at(folder, unjudged=error)
        return self._evidence_at(folder)

    def _evidence_at(self, folder: RunFolder, **ended: HarnessError) -> RunEvidence:
        loaded = self.loaded
        if not isinstance(loaded.protocol, BaselinedProtocol):
            return RunEvidence(loaded, folder, **ended)
        return RunEvidence(
            loaded, folder, **ended, baseline_source=lambda keys: frozen_baseline(loaded, keys, Places(self.tree))
        )

    def evidence(self, reach: str, *, closing: bool = False) -> Any:
        """Evidence of a reach, from the files as they are."""
        loaded, main = self.loaded, self.main(closing=closing)
        match reach:
            case "smoke_record":
                reference = read_record(self.run / "smoke.json", SmokeReference, what="smoke reference")
                return SmokeEvidence(main, reference, RunFolder(self.smoke))
            case "placement" if isinstance(loaded.protocol, GenerationProtocol):
                return self.pair("placement", loaded.protocol.placement_equivalence, main)
            case "replay":
                return self.pair("replay", loaded.protocol.independent_replay, main)
            case "determinism" if isinstance(loaded.protocol, BehaviorProtocol):
                rule, own = loaded.protocol.row_determinism, loaded.protocol.placement
                same = PairRule(grid=rule.grid, left=own, right=own, fields=rule.fields)
                pairs = {one.id: self.pair(one.id, same, main) for one in rule.variants}
                return VariantEvidence(pairs, {one.id: one for one in rule.variants})
            case "snapshots" | "tensors":
                return SnapshotEvidence(main, read_frozen(loaded.protocol.id, Places(self.tree)))
        return main

    def pair(self, part: str, rule: ApartRule, main: RunEvidence) -> PairEvidence:
        """The run and one of its parts."""
        pids = tuple(read(self.run / part / "complete.json")["pids"])
        return PairEvidence(main, self._evidence_at(RunFolder(self.run / part)), rule, pids)


def name_of(row: RowKey) -> str:
    """A row's name as the audit record has it."""
    return row.name or "whole"


def read(path: Path) -> Any:
    """A JSON file as plain data."""
    return msgspec.json.decode(path.read_bytes())


def edit(path: Path, change: Change) -> None:
    """Change a JSON file in place and write it in canonical form."""
    content = read(path)
    change(content)
    path.write_bytes(canonical_bytes(content))


def cell_of(unit: Any, condition: str) -> Any:
    """A unit's cell, by condition."""
    return next(cell for cell in unit["cells"] if cell["condition"] == condition)


def forge_audit(folder: Path, change: Change, *, reference: Path | None = None) -> None:
    """Change an audit record with its detached digest, and with the reference to it where one is given."""
    edit(folder / "audit.json", change)
    found = sha256_hex((folder / "audit.json").read_bytes())
    (folder / "audit.json.sha256").write_text(f"{found}  audit.json\n", encoding="ascii")
    named = read(folder / "audit.json")["run_sha256"]
    if reference is not None:
        edit(reference, lambda noted: noted.update(audit_sha256=found, run_sha256=named))


def failed_gates(run: Path) -> dict[str, list[str]]:
    """Gates of the session's audit record whose rows didn't all pass, with the names of those rows."""
    return {gate["id"]: gate["failed"] for gate in read(run / "audit.json")["gates"] if gate["failed"]}


def junit_messages(run: Path) -> dict[str, str]:
    """Failures and errors of the session's JUnit file: `gate cell` -> text."""
    found = {}
    for case in ET.fromstring((run / "junit.xml").read_text(encoding="utf-8")).iter("testcase"):
        properties = {one.get("name"): one.get("value") for one in case.iter("property")}
        for problem in (*case.iter("failure"), *case.iter("error")):
            name = f"{properties.get('gate', case.get('name'))} {properties.get('cell', '')}"
            found[name] = f"{problem.get('message')} {problem.text}"
    return found


def holds(message: str, *words: str) -> list[str]:
    """The words that a message lacks (none: it says them all)."""
    plain = " ".join(message.split())
    return [word for word in words if word not in plain]


def _seal(journal: Any, environment: str, placement: str) -> None:
    unit = journal["evidence"]
    unit["environment_sha256"], unit["placement_sha256"] = environment, placement
    for cell in unit["cells"]:
        cell["prompt_sha256"] = ids_sha256(cell["prompt_ids"])
        if "generated_ids" not in cell:
            continue
        cell["generated_sha256"] = ids_sha256(cell["generated_ids"])
        cell["text_sha256"] = text_sha256(unescaped(cell["text_escaped"]))
        cell["length"] = len(cell["generated_ids"])
    journal["evidence_sha256"] = digest(unit)


def unjudge(run: Path) -> None:
    """As if the session had been killed before it wrote its record."""
    for name in ("audit.json", "audit.json.sha256", "junit.xml"):
        (run / name).unlink()
