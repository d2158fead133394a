"""Sampled runs by hand: units that were drawn under a protocol's own seeds, runs of them, and their folders.

A unit agrees with itself as the checks ask; what a cell said is given, so that no draw is made. `land_samples` writes a
whole grid over a registered protocol's own sources, so that it assembles and closes without a model.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.canon import digest, sha256_hex
from harness.gold import recorded_tasks
from harness.journal.folder import RunFolder, write_journal, write_record
from harness.ledgers.executions import code_cells
from harness.protocols.generators import seeded_states
from harness.protocols.grids import UnitKey
from harness.protocols.load import LoadedProtocol
from harness.protocols.seeds import batch_seeds, seed_value
from harness.records.evaluation import CodeFound
from harness.records.run import Baseline, Environment, RunSpec, StateHash, UnitEvidence
from harness.records.sampling import SampledBatch, SampledEvidence, SampledRun
from harness.records.sandbox import Execution, Outcome

from .books import CompletionBuilder, Said, signed
from .sampling import COLUMNS, IDS, TEMPERATURE, TOP_P, parameters, with_sampling
from .traces import OBSERVED, PROCESS, environment_of

FENCED = "```python\ndef f(n):\n    return n + 1\n```"
SAID: Mapping[str, Said] = {"code": Said(FENCED), "math": Said("so \\boxed{12}")}


@dataclass(frozen=True)
class SampledBuilder(CompletionBuilder):
    """Makes runs of a sampling protocol. Of its baseline every source has one replicate, whatever the run's."""

    def boundary_id(self, name: str) -> int:
        """The registered ID of a boundary; four conditions register no BOS, with which every prompt begins."""
        return IDS.bos if name == "bos" else super().boundary_id(name)

    def drawn(
        self, domain: str, index: int, said: Mapping[str, Said], *, replicate: str = "R0", grid: str = "formal"
    ) -> SampledEvidence:
        """One batch under the replicate's seed; `said` as in `unit`."""
        unit = self.unit(domain, index, said, grid=grid, replicate=replicate)
        seeds = batch_seeds(
            self.protocol.decode.seeds, self.protocol.registered_id, source_id=unit.source_id, replicate=replicate
        )
        before = seeded_states(seed_value(seeds), gpus=0)
        after = msgspec.structs.replace(before, torch_cpu=StateHash(sha256=sha256_hex(f"after {seeds.run}".encode())))
        sampling = SampledBatch(
            seeds=seeds,
            generator="torch_cpu",
            rows=len(unit.cells),
            columns=COLUMNS,
            draws=unit.checks.steps,
            parameters=parameters(unit.max_new_tokens),
            processors=(TEMPERATURE, TOP_P),
            drawable=unit.checks.rows_checked,
            several=3,
        )
        return with_sampling(msgspec.structs.replace(unit, rng_before=before, rng_after=after), sampling)

    def baseline(self, units: tuple[UnitEvidence, ...], said: Mapping[tuple[str, str], Said] | None = None) -> Baseline:
        """One greedy cell a source and condition: what the first seed said, cut."""
        first = {unit.source_id: unit for unit in reversed(units)}
        greedy = tuple(msgspec.structs.replace(unit, replicate="greedy") for unit in reversed(first.values()))
        return super().baseline(greedy, said)

    def sampled_run(
        self, units: tuple[SampledEvidence, ...], *, gold: Mapping[str, str] | None = None, grid: str = "formal"
    ) -> SampledRun:
        """The assembled run of units, over their domains in the protocol's order; a gold number is 12."""
        run = self.completion_run(units, gold=gold if gold is not None else gold_of(units), grid=grid)
        return SampledRun(**{name: getattr(run, name) for name in SampledRun.__struct_fields__})

    def verdicts(self, run: SampledRun, outcomes: Mapping[str, Outcome]) -> dict[str, Execution]:
        """An execution of each distinct program; `outcomes` by the program's last line, "*" for all others."""
        return {
            cell.key: self.execution(
                cell.extraction.program,
                self.task(cell.source_id),
                outcomes.get(cell.extraction.program.strip().splitlines()[-1].strip(), outcomes.get("*", "passed")),
                container=cell.key,
            )
            for cell in code_cells(self.protocol, run)
            if isinstance(cell.extraction, CodeFound)
        }


def gold_of(units: tuple[SampledEvidence, ...]) -> dict[str, str]:
    """12 for every source of mathematics."""
    return {unit.source_id: "12" for unit in units if unit.domain == "math"}


def sampled_builder(loaded: LoadedProtocol) -> SampledBuilder:
    """A builder over a registered protocol's own source IDs."""
    return SampledBuilder(loaded.protocol, {(one.domain, one.index): one.source_id for one in loaded.manifest.sources})


def drawn_for(loaded: LoadedProtocol, key: UnitKey, grid: str, environment: Environment) -> SampledEvidence:
    """The unit of a key of a registered protocol's grid; English says its seed, so that replicates part."""
    builder = sampled_builder(loaded)
    said = SAID.get(key.domain, Said(f"said {key.replicate}", eos=False))
    unit = builder.drawn(key.domain, key.index, {"*": said}, replicate=key.replicate, grid=grid)
    return msgspec.structs.replace(
        unit,
        protocol_digest=loaded.digest,
        environment_sha256=digest(environment),
        placement_sha256=digest(builder.placement()),
        source_text_sha256=loaded.source(key.source_id).text_sha256,
    )


def land_samples(
    path: Path, loaded: LoadedProtocol, *, grid: str = "formal", made_by: str = PROCESS.model_load_id
) -> RunFolder:
    """Write a whole run of the grid, each distinct program's passed execution among it where the grid has any.

    `made_by`: the model load that drew the units; it names the containers too, so that two runs share none.
    """
    folder, builder, environment = RunFolder(path), sampled_builder(loaded), environment_of(loaded)
    folder.create()
    units = []
    for key in loaded.units(grid, loaded.domains):
        units.append(drawn_for(loaded, key, grid, environment))
        process = msgspec.structs.replace(PROCESS, model_load_id=made_by)
        write_journal(folder, key, units[-1], msgspec.structs.replace(OBSERVED, process=process))
    run = builder.sampled_run(tuple(units), grid=grid)
    write_record(folder.file("spec.json"), _spec(loaded, path.name, grid))
    write_record(folder.file("environment.json"), environment)
    write_record(folder.file("placement.json"), builder.placement())
    write_record(folder.file("gold.json"), run.gold)
    write_record(folder.file("baseline.json"), run.baseline)
    write_record(folder.file("tasks.json"), recorded_tasks({name: builder.task(name) for name in run.tasks}))
    if grid == loaded.protocol.tier_grids["formal"]:
        for key, execution in builder.verdicts(run, {}).items():
            own = signed(execution.evidence, execution.limits, f"{made_by} {key}")
            write_record(folder.path / "sandbox" / f"{key}.json", own)
        write_record(folder.file("sandbox.json"), builder.facts())
    return folder


def _spec(loaded: LoadedProtocol, run_id: str, grid: str) -> RunSpec:
    return RunSpec(
        schema=1,
        run_id=run_id,
        protocol=loaded.protocol.id,
        registered_id=loaded.protocol.registered_id,
        protocol_digest=loaded.digest,
        tier=next((tier for tier, name in loaded.protocol.tier_grids.items() if name == grid), "smoke"),
        grid=grid,
        placement=loaded.protocol.placement,
        domains=loaded.domains,
        port=False,
        deviations=(),
        threads=loaded.protocol.execution.threads,
    )
