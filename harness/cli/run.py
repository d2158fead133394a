"""`run PROTOCOL`: make a run's units, here or on a Ray cluster, and leave it to be judged by pytest.

Exit 0: every unit landed; 1: refused, or ended before all had, with the reason.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from harness.cli import show
from harness.cli.errors import errors_to_stderr
from harness.cli.options import Folders, Named
from harness.cli.working import working
from harness.cluster.start import Call, Start
from harness.journal.folder import RunFolder
from harness.places import include, places
from harness.protocols.folders import beside, named_protocol
from harness.protocols.load import load_protocol
from harness.run.request import Options, new_run_id


class Engine(StrEnum):
    """Who makes the units."""

    LOCAL = "local"
    RAY = "ray"


class RunTier(StrEnum):
    """Tiers that have a run of their own."""

    SMOKE = "smoke"
    FORMAL = "formal"


Where = Annotated[Engine, typer.Option("--engine", help="This process, or actors of a Ray cluster.")]
Tier = Annotated[RunTier, typer.Option("--tier", help="Whose grid is made.")]
Address = Annotated[
    str | None,
    typer.Option("--address", metavar="HOST:PORT", help="Ray cluster; default: one of this machine, for this run."),
]
Workers = Annotated[
    int | None, typer.Option("--workers", min=1, metavar="N", help="Ray actors; default: what the cluster holds.")
]
Folder = Annotated[
    Path | None, typer.Option("--run", metavar="DIR", help="Run folder; default: a new one under reports/PROTOCOL.")
]
Files = Annotated[Path | None, typer.Option("--checkpoint", metavar="DIR", help="Checkpoint of the protocol's model.")]
Gpu = Annotated[str | None, typer.Option("--gpu-memory", metavar="SIZE", help="GPU budget of a placement.")]
Cpu = Annotated[str | None, typer.Option("--cpu-memory", metavar="SIZE", help="CPU budget of a placement.")]
Port = Annotated[bool, typer.Option("--port", help="Run the protocol's shape under deviations, and say so.")]
Baseline = Annotated[Path | None, typer.Option("--baseline", metavar="RUN", help="A port's own baseline.")]


def run(  # noqa: PLR0913
    protocol: Named,
    *,
    engine: Where = Engine.LOCAL,
    address: Address = None,
    workers: Workers = None,
    tier: Tier = RunTier.FORMAL,
    run: Folder = None,
    checkpoint: Files = None,
    inputs: Folders = None,
    gpu_memory: Gpu = None,
    cpu_memory: Cpu = None,
    port: Port = False,
    baseline: Baseline = None,
) -> None:
    """Make a run's units, here or on a Ray cluster; pytest judges it afterwards.

    Exit 0: every unit landed, and the command that judges them is on stdout; 1: refused, or ended before all had.
    """
    with errors_to_stderr(), working("run") as note:
        name, tree = named_protocol(protocol, places())
        include(tree.studies)
        loaded = load_protocol(name, tree)
        options = Options(
            checkpoint=checkpoint,
            inputs=(*(inputs or ()), *beside(loaded.folder, "inputs")),
            gpu_memory=gpu_memory,
            cpu_memory=cpu_memory,
            port=port,
            baseline=baseline,
        )
        folder = RunFolder((run or tree.reports / name / new_run_id(tier.value, port=port)).absolute())
        call = Call(engine.value, address, workers)
        keys = Start(loaded, options, folder, tree, tier.value, call, note).make()
    show.tell(f"{len(keys)} of {len(keys)} units landed; nothing is judged yet")
    typer.echo(f"python -m pytest gates/ -m {tier.value} --protocol {protocol} --run {folder.path}")
