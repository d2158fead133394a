"""A depth run's folder by hand: request, environment, placement, baseline and journals that agree with each other.

Made by `DepthBuilder` over a registered protocol's own sources, so that it assembles and closes without a model; an
audit record that says that all its gates passed can be put to it.
"""

import shutil
from pathlib import Path
from typing import Any

import msgspec

from harness.canon import canonical_bytes, digest, sha256_hex
from harness.files import file_sha256, write_atomic
from harness.journal.assemble import read_spec
from harness.journal.folder import RunFolder, write_journal, write_record
from harness.places import Places, places
from harness.protocols.load import LoadedProtocol
from harness.records.audit import Audit, GateAccount
from harness.records.base import Frozen
from harness.records.profile import Shape
from harness.records.run import Environment, ProcessIdentity, RunSpec, UnitObservation
from harness.snapshots.acceptance import registered_rows
from harness.snapshots.store import run_files

from .books import SMALL, DepthBuilder

PROCESS = ProcessIdentity(
    pid=11, started_us=1_000_001, model_loaded_us=1_000_002, model_load_id="load-by-hand", str_hash="0123456789abcdef"
)
OBSERVED = UnitObservation(process=PROCESS, wall_ns=987_654_321, tokens=108, finished_us=1_000_003)


def depth_builder(loaded: LoadedProtocol, shape: Shape = SMALL) -> DepthBuilder:
    """A builder over a registered protocol's own source IDs."""
    sources = {(one.domain, one.index): one.source_id for one in loaded.manifest.sources}
    return DepthBuilder(loaded.protocol, sources, shape=shape)


def environment_of(loaded: LoadedProtocol, **changes: object) -> Environment:
    """An environment as the protocol registers it, with the profile's pinned checkpoint files."""
    execution = loaded.protocol.execution
    made = Environment(
        packages={"torch": "2.13.0+cpu", "numpy": "2.4.6"},
        python="3.11.7",
        machine="x86_64",
        cpu="a processor",
        cpu_capability="AVX512",
        gpus=(),
        cuda="none",
        dtype=execution.dtype,
        attention=execution.attention,
        experts=execution.experts,
        threads=execution.threads,
        interop_threads=2,
        deterministic_algorithms=execution.deterministic_algorithms,
        float32_matmul_precision=execution.float32_matmul_precision,
        kernels={"mkl": "True"},
        generation_config={
            "output_attentions": "false",
            "output_hidden_states": "false",
            "training": "false",
            "use_cache": "false",
        },
        checkpoint={file.name: file.digest.sha256 for file in loaded.profile.files if isinstance(file.digest, Frozen)},
    )
    return msgspec.structs.replace(made, **changes)


def land_traces(
    path: Path,
    loaded: LoadedProtocol,
    *,
    grid: str = "smoke",
    shape: Shape = SMALL,
    tokens: int = 3,
    environment: Environment | None = None,
) -> RunFolder:
    """Write a whole run of the grid; `tokens` target tokens in the first source, one more in each after it."""
    folder, builder = RunFolder(path), depth_builder(loaded, shape)
    folder.create()
    environment, placement = environment or environment_of(loaded), builder.placement()
    units = []
    for at, key in enumerate(loaded.units(grid, loaded.domains)):
        unit = builder.trace(key.domain, key.index, tokens=tokens + at, grid=grid)
        units.append(
            msgspec.structs.replace(
                unit,
                protocol_digest=loaded.digest,
                environment_sha256=digest(environment),
                placement_sha256=digest(placement),
                source_text_sha256=loaded.source(key.source_id).text_sha256,
            )
        )
        write_journal(folder, key, units[-1], OBSERVED)
    write_record(folder.file("spec.json"), _spec(loaded, path.name, grid))
    write_record(folder.file("environment.json"), environment)
    write_record(folder.file("placement.json"), placement)
    write_record(folder.file("baseline.json"), builder.trace_baseline(tuple(units)))
    return folder


def _spec(loaded: LoadedProtocol, run_id: str, grid: str) -> RunSpec:
    return RunSpec(
        schema=1,
        run_id=run_id,
        protocol=loaded.protocol.id,
        registered_id=loaded.protocol.registered_id,
        protocol_digest=loaded.digest,
        tier=next(tier for tier, name in loaded.protocol.tier_grids.items() if name == grid),
        grid=grid,
        placement=loaded.protocol.placement,
        domains=loaded.domains,
        port=False,
        deviations=(),
        threads=loaded.protocol.execution.threads,
    )


def protocol_tree(root: Path) -> Places:
    """A tree with nano's protocols and profile, and the frozen results of nano-behavior; no run, no checkpoint."""
    project, tree = places(), Places(root)
    for name in ("nano-behavior", "nano-depth"):
        shutil.copytree(project.protocols / name, tree.protocols / name)
    (tree.models / "nano").mkdir(parents=True)
    shutil.copyfile(project.models / "nano" / "profile.toml", tree.models / "nano" / "profile.toml")
    shutil.copytree(project.snapshots / "nano-behavior", tree.snapshots / "nano-behavior")
    return tree


def audited(folder: RunFolder, loaded: LoadedProtocol, **changes: Any) -> None:
    """Write the audit record of a session in which every registered row of a closed run passed; `changes` replace."""
    spec, run = read_spec(folder), folder.file("run.json")
    audit = Audit(
        schema=1,
        protocol=loaded.protocol.id,
        registered_id=loaded.protocol.registered_id,
        protocol_digest=loaded.digest,
        result_name=loaded.protocol.result_name,
        tier=spec.tier,
        run_id=spec.run_id,
        port=spec.port,
        deviations=spec.deviations,
        frozen=False,
        not_compared=(),
        unfrozen_sources=(),
        run_sha256=file_sha256(run, what="run"),
        environment_sha256=file_sha256(folder.file("environment.json"), what="environment"),
        smoke=None,
        gates=tuple(
            GateAccount(id=name, clause="", passed=rows, registered=rows, failed=())
            for name, rows in registered_rows(loaded).items()
        ),
        collected=1,
        reported=1,
        errors=0,
        books=(),
        judge={},
        passed=True,
        files=run_files(folder),
    )
    data = canonical_bytes(msgspec.structs.replace(audit, **changes))
    write_atomic(folder.file("audit.json"), data)
    write_atomic(folder.file("audit.json.sha256"), f"{sha256_hex(data)}  audit.json\n".encode())
