"""Programs against their tasks' tests: what a line gives is taken by a rule or as it is, and the sandbox judges it.

A line has a `candidate` (a whole program, run as it is), a `text` or a `completion` (read by the rule), and a task:
prompt, entry point and tests of its own, or those that its `task_id` names. Results come in the file's order; what is
held back is bounded. An infrastructure failure is no verdict, and neither it nor a bad line ends the file.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, Protocol

from harness.errors import HarnessError, InputError, SandboxError
from harness.evaluate.code import CODE_RULES
from harness.evaluate.code.task import check_entry_point
from harness.judge.lines import TODO, ErrorLine, Line, LineId, said
from harness.judge.tasks import HumanEval, own_task
from harness.protocols.load import load_protocol
from harness.records.base import Record
from harness.records.evaluation import CodeExtraction, CodeFound
from harness.records.protocol import JudgedProtocol
from harness.records.sandbox import Execution, Outcome, Task
from harness.run.execute import ExecutionCall, open_sandbox

if TYPE_CHECKING:
    from harness.sandbox.execute import Engine

CONTRACT_OF = "nano-completion"  # R05 6 with a recorded image
PROGRAMS = ("candidate", "text", "completion")
TASK = ("prompt", "entry_point", "test")
HELD_BACK = 256  # finished lines that wait for a verdict before them
NOT_RUN = "engine_gone"
BAD_TASK = "bad_task_"  # the checker's word for a task that judges nobody: the line is bad, the engine is well


class CodeRuleName(StrEnum):
    """The rules that are offered."""

    CODE_R05 = "code-r05"
    CODE_V1 = "code-v1"


RULES: dict[CodeRuleName, Callable[[str, str, str], CodeExtraction]] = {
    CodeRuleName.CODE_R05: CODE_RULES["code-r05"],
    CodeRuleName.CODE_V1: CODE_RULES["code-v1"],
}


class Extraction(Record):
    """What was executed and from where. `rule` and `method` are `given` for a candidate; `method` is null where the
    rule found nothing. The span is the text's, in code points.
    """

    rule: str
    method: str | None
    start: int | None
    end: int | None


class CodeLine(Record):
    """The judgement of one line.

    `detail`: a word of the checker's or an exception's class name. `seconds`: wall time of the candidate's process from
    its start to the verdict; null where nothing ran or no verdict came from within.
    """

    id: LineId
    line: int
    extraction: Extraction
    outcome: Outcome
    detail: str
    seconds: float | None


class Executes(Protocol):
    """What is needed of an engine."""

    def execute_many(self, jobs: Iterable[tuple[int, str, Task]]) -> Iterator[tuple[int, Execution]]:
        """(line, program, task) as (line, execution), in order."""


@dataclass(frozen=True, slots=True)
class Job:
    """A program that waits for its verdict."""

    id: LineId
    line: int
    extraction: Extraction
    program: str
    task: Task


def open_recorded(image: str | None) -> "Engine":
    """An engine under R05 clause 6 with the named image; SandboxError where there is none."""
    protocol = load_protocol(CONTRACT_OF).protocol
    if not isinstance(protocol, JudgedProtocol):
        raise RuntimeError(f"{CONTRACT_OF} has no sandbox contract")
    return open_sandbox(protocol, ExecutionCall(inputs=(), image=image))


def names_its_task(line: Line | ErrorLine) -> bool:
    """Is this a line of a samples file, whose task is known by `task_id` alone?"""
    return isinstance(line, Line) and "task_id" in line.fields and not any(field in line.fields for field in TASK)


class CodeJudge:
    """Judges lines with one engine. `failure`: what ended the engine before the file's end, if anything did."""

    def __init__(self, engine: Executes, rule: CodeRuleName, tasks: HumanEval) -> None:
        self.failure: SandboxError | None = None
        self._engine = engine
        self._rule = rule
        self._tasks = tasks
        self._waiting: deque[Job | CodeLine | ErrorLine] = deque()
        self._at_end = False

    def judge(self, lines: Iterable[Line | ErrorLine]) -> Iterator[CodeLine | ErrorLine]:
        """One line out for each line in, in order."""
        source = iter(lines)
        try:
            while not self._at_end:
                for number, execution in self._engine.execute_many(self._jobs(source)):
                    yield from self._finished()
                    yield _verdict(self._next_job(number), execution)
                yield from self._finished()
        except SandboxError as error:
            self.failure = error
            yield from self._without_engine(source)

    def _jobs(self, source: Iterator[Line | ErrorLine]) -> Iterator[tuple[int, str, Task]]:
        """Programs for the engine. Ends early where too many finished lines wait, so that they are let go."""
        for line in source:
            item = self._prepared(line)
            self._waiting.append(item)
            if isinstance(item, Job):
                yield item.line, item.program, item.task
            elif len(self._waiting) >= HELD_BACK:
                return
        self._at_end = True

    def _finished(self) -> Iterator[CodeLine | ErrorLine]:
        """What waits for no verdict any more."""
        while self._waiting and not isinstance(self._waiting[0], Job):
            yield self._waiting.popleft()  # type: ignore[misc]  # it is no job: just looked at

    def _next_job(self, number: int) -> Job:
        job = self._waiting.popleft()
        if not isinstance(job, Job) or job.line != number:
            raise RuntimeError(f"the engine answered for line {number} out of order")
        return job

    def _without_engine(self, source: Iterator[Line | ErrorLine]) -> Iterator[CodeLine | ErrorLine]:
        """Every line that is left, without a verdict where it needed the engine."""
        for item in self._waiting:
            yield _unexecuted(item)
        for line in source:
            yield _unexecuted(self._prepared(line))

    def _prepared(self, line: Line | ErrorLine) -> Job | CodeLine | ErrorLine:
        if isinstance(line, ErrorLine):
            return line
        try:
            return self._job(line)
        except HarnessError as error:
            return line.error(error)

    def _job(self, line: Line) -> Job | CodeLine:
        line_id, field = line.own_id(), _program_field(line)
        task = self._tasks.task(line) if names_its_task(line) else own_task(line)
        written, entry_point = line.text(field), check_entry_point(task.entry_point)
        if field == "candidate":
            extraction, program = Extraction(rule="given", method="given", start=None, end=None), written
            return Job(line_id, line.number, extraction, program, task)
        found = RULES[self._rule](written, task.prompt, entry_point)
        if isinstance(found, CodeFound):
            extraction = Extraction(rule=found.rule, method=found.method, start=found.start, end=found.end)
            return Job(line_id, line.number, extraction, found.program, task)
        return CodeLine(
            id=line_id,
            line=line.number,
            extraction=Extraction(rule=found.rule, method=None, start=None, end=None),
            outcome="extract_failed",
            detail="",
            seconds=None,
        )


def _program_field(line: Line) -> Literal["candidate", "text", "completion"]:
    held = [field for field in PROGRAMS if field in line.fields]
    if len(held) != 1:
        raise InputError(
            f"line {line.number}",
            expected="one of the fields candidate, text and completion",
            found=" and ".join(held) or "none of them",
            todo=TODO,
        )
    return held[0]  # type: ignore[return-value]  # one of PROGRAMS


def _verdict(job: Job, execution: Execution) -> CodeLine | ErrorLine:
    detail, wall_ns = execution.evidence.detail, execution.observation.wall_ns
    if execution.evidence.outcome == "infrastructure" and detail.startswith(BAD_TASK):
        problem = InputError(
            f"line {job.line}, task", expected="a prompt and tests that can judge a candidate", found=detail, todo=TODO
        )
        return ErrorLine(id=job.id, line=job.line, error=said(problem))
    return CodeLine(
        id=job.id,
        line=job.line,
        extraction=job.extraction,
        outcome=execution.evidence.outcome,
        detail=detail,
        seconds=round(wall_ns / 1e9, 6) if wall_ns else None,
    )


def _unexecuted(item: Job | CodeLine | ErrorLine) -> CodeLine | ErrorLine:
    if not isinstance(item, Job):
        return item
    return CodeLine(
        id=item.id, line=item.line, extraction=item.extraction, outcome="infrastructure", detail=NOT_RUN, seconds=None
    )
