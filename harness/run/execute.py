"""Executing the programs of a generated run: each in a fresh container, landed one by one, finished ones kept.

An infrastructure failure is no verdict: it is put aside as evidence, the execution stops, and the run can be judged
again once there is an engine. Knows no model.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.canon import digest
from harness.errors import SandboxError
from harness.gold import registered_tasks
from harness.journal.folder import RunFolder, write_once, write_record
from harness.ledgers.executions import SANDBOX, code_cells, read_executions
from harness.protocols.grids import executed_grid, is_executed
from harness.protocols.load import LoadedProtocol
from harness.records.evaluation import CodeFound
from harness.records.kinds import JudgedRun
from harness.records.protocol import AnyJudged, JudgedProtocol
from harness.records.sandbox import Execution, SandboxFacts, Task
from harness.run.progress import Sink, quiet
from harness.run.request import Request

if TYPE_CHECKING:
    from harness.sandbox.execute import Engine

FACTS = "sandbox.json"
FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ExecutionCall:
    """Where the registered tasks are, and which image runs them (none: the registered one)."""

    inputs: tuple[Path, ...]
    image: str | None


def executes(loaded: LoadedProtocol, request: Request) -> bool:
    """Whether the requested run executes programs: its gates judge verdicts, and one of its domains has programs."""
    judged = executed_grid(loaded.protocol, request.grid)
    return judged and any(is_executed(domain) for domain in loaded.protocol.domains if domain.name in request.domains)


def require_engine(protocol: AnyJudged, call: ExecutionCall) -> None:
    """SandboxError unless an engine answers, with a fit image, before anything is generated."""
    try:
        open_sandbox(protocol, call).close()
    except SandboxError as error:
        raise SandboxError(
            f"{protocol.id}: {error.where}",
            expected=error.expected,
            found=error.found,
            todo=f"{error.todo} docs/sandbox.md has the way to an engine and an image; --protocol runs another alone.",
        ) from error


def open_sandbox(protocol: AnyJudged, call: ExecutionCall) -> "Engine":
    """The engine with the protocol's image; SandboxError where there is none, or no library to reach it."""
    try:
        from harness.sandbox.execute import open_engine  # noqa: PLC0415 - only what executes needs the engine's library
    except ModuleNotFoundError as error:
        if error.name != "docker":
            raise
        raise SandboxError(
            "container engine",
            expected="the library that reaches it",
            found="no module docker",
            todo="Install the extra `sandbox` (pip install -e '.[sandbox]').",
        ) from error
    return open_engine(protocol.sandbox, image=call.image)


def execute_programs(
    loaded: LoadedProtocol, run: JudgedRun, folder: RunFolder, call: ExecutionCall, *, sink: Sink = quiet
) -> None:
    """Give every program of the run that has no verdict yet to the sandbox; SandboxError names what stopped it."""
    protocol = loaded.protocol
    if not isinstance(protocol, JudgedProtocol):
        raise RuntimeError(f"{protocol.id} executes nothing")
    with folder.lock(SANDBOX):
        done = read_executions(folder)
        programs = {
            cell.key: (cell.extraction.program, cell.source_id)
            for cell in code_cells(protocol, run)
            if isinstance(cell.extraction, CodeFound) and cell.key not in done
        }
        if not programs:
            return
        tasks = registered_tasks(loaded, call.inputs, loaded.units(run.grid, run.domains))
        with open_sandbox(protocol, call) as engine:
            write_once(folder.file(FACTS), facts_of(engine), what="sandbox facts")
            for number, (key, execution) in enumerate(engine.execute_many(_jobs(programs, tasks)), 1):
                sink(f"{protocol.id} {run.grid}: program {number}/{len(programs)} executed")
                _land(folder, key, execution)
        sink("")


def facts_of(engine: "Engine") -> SandboxFacts:
    """What all executions of the run share."""
    return SandboxFacts(
        schema=1,
        image_id=engine.image_id,
        python=engine.python,
        registered=engine.registered,
        limits=engine.limits,
        harness_sha256=engine.harness_sha256,
    )


def _jobs(programs: Mapping[str, tuple[str, str]], tasks: Mapping[str, Task]) -> Iterator[tuple[str, str, Task]]:
    for key, (program, source_id) in programs.items():
        yield key, program, tasks[source_id]


def _land(folder: RunFolder, key: str, execution: Execution) -> None:
    if execution.evidence.outcome != "infrastructure":
        write_record(folder.path / SANDBOX / f"{key}.json", execution)
        return
    write_record(folder.path / SANDBOX / FAILED / f"{key}-{digest(execution)[:12]}.json", execution)
    raise SandboxError(
        f"execution of {key}",
        expected="a verdict",
        found=f"infrastructure: {execution.evidence.detail}",
        todo="Mend the engine and judge the run again with --run; finished executions stay valid.",
    )
