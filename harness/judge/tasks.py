"""The HumanEval tasks that a samples file names by `task_id` alone: the registered input, or a file of one's own.

The registered file is found by its digest under any name; a file of one's own is taken as it is, and `origin` says
which it is. Tests are handed to whoever executes and are in no message. This module executes nothing.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from harness.errors import HarnessError, InputError
from harness.files import file_sha256
from harness.inputs.find import find_files, location_of, require_present
from harness.inputs.readers import read_rows
from harness.judge.lines import TODO, ErrorLine, Line, opened, read_lines
from harness.protocols.grids import is_executed
from harness.protocols.load import load_protocol
from harness.records.base import Frozen
from harness.records.sandbox import Task
from harness.records.sources import InputFile

REGISTERED_BY = "deepseek-completion"


class HumanEval:
    """The tasks by ID, read when the first is asked for. `origin`: where they came from; empty as long as none was."""

    def __init__(self, prompts: Path | None, folders: Sequence[Path]) -> None:
        self.origin = ""
        self._prompts = prompts
        self._folders = folders
        self._tasks: dict[str, Task] = {}
        self._error: HarnessError | None = None

    def load(self) -> None:
        """Read the tasks; InputError or StorageError, the same one each time, where they can't be had."""
        if self._error is not None:
            raise self._error
        if self._tasks:
            return
        try:
            self._tasks = self._registered() if self._prompts is None else self._own(self._prompts)
        except HarnessError as error:
            self._error = error
            raise

    def task(self, line: Line) -> Task:
        """The task that a line's `task_id` names; the errors of `load`, and InputError for an unknown ID."""
        task_id = line.text("task_id")
        self.load()
        if task_id not in self._tasks:
            raise InputError(
                line.where("task_id"), expected=f"one of the {len(self._tasks)} tasks", found="another", todo=TODO
            )
        return self._tasks[task_id]

    def _registered(self) -> dict[str, Task]:
        file = registered_file()
        present = require_present(find_files([file], self._folders), file.name)
        self.origin = f"{location_of(present)}, the registered HumanEval, SHA-256 {present.sha256}"
        rows = read_rows(present)
        return _by_id([Line(number, None, row) for number, row in enumerate(rows, 1)], where=location_of(present))

    def _own(self, path: Path) -> dict[str, Task]:
        sha256, registered = file_sha256(path, what="file of tasks"), registered_file().digest
        same = isinstance(registered, Frozen) and registered.sha256 == sha256
        self.origin = f"{path}, {'' if same else 'not '}the registered HumanEval, SHA-256 {sha256}"
        with opened(str(path)) as stream:
            return _by_id(read_lines(stream, name=str(path)), where=str(path))


def registered_file() -> InputFile:
    """HumanEval as the DeepSeek protocol registers it."""
    protocol = load_protocol(REGISTERED_BY).protocol
    name = next(domain.input for domain in protocol.domains if is_executed(domain))
    return next(file for file in protocol.inputs if file.name == name)


def own_task(line: Line) -> Task:
    """The task of a line that has prompt, entry point and tests; InputError for what is absent or empty."""
    prompt, entry_point, test = (line.text(field) for field in ("prompt", "entry_point", "test"))
    if not test.strip():
        raise InputError(line.where("test"), expected="tests that define `check(candidate)`", found="none", todo=TODO)
    return Task(id=str(line.id), prompt=prompt, entry_point=entry_point, test=test)


def _by_id(lines: Iterable[Line | ErrorLine], *, where: str) -> dict[str, Task]:
    tasks: dict[str, Task] = {}
    for line in lines:
        if isinstance(line, ErrorLine):
            error = line.error
            raise InputError(f"{where}: {error.where}", expected=error.expected, found=error.found, todo=TODO)
        task_id = line.text("task_id")
        if task_id in tasks:
            raise InputError(f"{where}: {line.where('task_id')}", expected="each once", found="one again", todo=TODO)
        tasks[task_id] = own_task(line)
    return tasks
