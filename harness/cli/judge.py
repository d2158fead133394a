"""`judge numeric` and `judge code`: outputs of any harness, one JSON line for each line of a file.

Exit 0: every line was judged; 1: there are error lines or programs without a verdict; 2: nothing could be judged at
all or the lines can't be written, and the reason is on stderr. The last lines on stderr are the counts.
"""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import msgspec
import typer

from harness.cli.map import Verbs
from harness.cli.options import Folders
from harness.cli.show import drop_stdout, tell
from harness.errors import HarnessError, StorageError
from harness.judge import code as programs
from harness.judge.code import CodeJudge, CodeLine, CodeRuleName, names_its_task
from harness.judge.lines import ErrorLine, opened, read_lines
from harness.judge.numeric import NumericLine, NumericRuleName, judge_numeric
from harness.judge.summary import Summary
from harness.judge.tasks import HumanEval

NOTHING_JUDGED = 2
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

app = typer.Typer(cls=Verbs)

File = Annotated[str, typer.Argument(metavar="FILE", help="JSON lines, also gzipped; - for standard input.")]
NumericRule = Annotated[NumericRuleName, typer.Option("--rule", help="How a number is read.")]
CodeRule = Annotated[CodeRuleName, typer.Option("--rule", help="How a program is read.")]
Image = Annotated[
    str | None,
    typer.Option(
        "--image",
        "--sandbox-image",
        metavar="NAME",
        envvar="HARNESS_SANDBOX_IMAGE",
        help="Container image that has a Python.",
    ),
]
Prompts = Annotated[
    Path | None,
    typer.Option("--prompts", metavar="FILE", help="HumanEval's tasks; default: the registered file, in --inputs."),
]


@app.callback()
def outputs() -> None:
    """Judge numbers or programs of any harness: JSON lines in, JSON lines out, in order."""


@app.command()
def numeric(file: File, rule: NumericRule = NumericRuleName.NUMERIC_V1) -> None:
    """Judge numbers against gold numbers.

    Lines have id, text and gold, and may have natural_eos.

    Exit 0: all judged; 1: error lines; 2: nothing could be judged. The counts are on stderr.
    """
    summary = Summary(rule.value)
    with _nothing_without_lines(summary), opened(file) as stream:
        for line in judge_numeric(read_lines(stream, name=file), rule):
            _write(line, summary)
    _end(summary, summary.numeric())


@app.command()
def code(
    file: File,
    rule: CodeRule = CodeRuleName.CODE_V1,
    image: Image = None,
    prompts: Prompts = None,
    inputs: Folders = None,
) -> None:
    """Judge programs by their tests, each in a fresh container.

    Lines have id, prompt, entry_point, test, and text or candidate; a HumanEval samples file serves as it is.

    Exit 0: all judged; 1: error lines or programs without a verdict; 2: nothing could be judged. The counts are on
    stderr.
    """
    summary, tasks = Summary(rule.value), HumanEval(prompts, inputs or [])
    with _nothing_without_lines(summary), opened(file) as stream:
        lines = read_lines(stream, name=file)
        first = next(lines)
        if prompts is not None or names_its_task(first):
            tasks.load()
        with _ending_by_signals(), programs.open_recorded(image) as engine, _deaf_afterwards():
            judge = CodeJudge(engine, rule, tasks)
            for line in judge.judge(chain([first], lines)):
                _write(line, summary)
    if judge.failure is not None:
        tell(judge.failure)
    if tasks.origin:
        tell(f"tasks: {tasks.origin}")
    tell(f"image {engine.image_id}, {engine.python}, checker {engine.harness_sha256}")
    _end(summary, summary.code())


@contextmanager
def _nothing_without_lines(summary: Summary) -> Iterator[None]:
    """A HarnessError as its one line on stderr; exit 2 before the first line, 1 after it."""
    try:
        yield
    except HarnessError as error:
        tell(error)
        raise typer.Exit(1 if summary.lines else NOTHING_JUDGED) from error


@contextmanager
def _ending_by_signals() -> Iterator[None]:
    """Who is told to end removes its containers first. A signal that was ignored before stays so."""
    before = {one: signal.getsignal(one) for one in ENDING if signal.getsignal(one) != signal.SIG_IGN}
    for number in before:
        signal.signal(number, _end_by)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end_by(number: int, _frame: FrameType | None) -> NoReturn:
    _be_deaf()
    raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)


@contextmanager
def _deaf_afterwards() -> Iterator[None]:
    """Nothing interrupts the removal of containers."""
    try:
        yield
    finally:
        _be_deaf()


def _be_deaf() -> None:
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


def _write(line: NumericLine | CodeLine | ErrorLine, summary: Summary) -> None:
    """One line out at once: whoever reads along doesn't wait for the file's end."""
    summary.add(line)
    try:
        sys.stdout.buffer.write(msgspec.json.encode(line) + b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:  # whoever read along has enough
        raise
    except OSError as error:
        _no_room(error)


def _no_room(error: OSError) -> NoReturn:
    """Say so once and end; what couldn't be written is dropped, or Python would try again at its end."""
    drop_stdout()
    said = StorageError(
        "standard output",
        expected="room for every line",
        found=error.strerror or type(error).__name__,
        todo="Free disk space and judge the whole file again: the last line may be cut.",
    )
    tell(said)
    raise typer.Exit(NOTHING_JUDGED) from error


def _end(summary: Summary, counts: str) -> None:
    tell(counts)
    if not summary.whole:
        raise typer.Exit(1)
