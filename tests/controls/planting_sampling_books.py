"""How faults of a sampling run are planted in its books: baseline, shared executions, ledger, frozen results.

All eight code cells hold the same program, which passes and so has one execution. Mathematics is cut at the budget,
and the last number of a cut text is no answer: those cells are uncovered and keep their rows.
"""

import shutil
from collections.abc import Callable
from typing import Any

import msgspec

from harness.canon import digest, sha256_hex, text_sha256, unescaped
from harness.evaluate.code import CODE_RULES
from harness.records.evaluation import CodeFound
from harness.records.protocol import SamplingProtocol
from harness.records.run import CodeTask
from harness.snapshots.content import snapshot_bytes

from .damage import Case, Damage, cell_of, edit, read
from .planting import in_cell, in_ledger
from .planting_completion import FAILED

CODE, MATH = ("{0}:*", "{1}:*"), ("{2}:s0_period",)
CODE_ROW, MATH_ROW = 2, 10  # the ledger's rows of s0_period: code R0, mathematics R0


def in_baseline_cell(at: int, **changes: Any) -> Callable[[list[Any]], list[Any]]:
    """The baseline's cells with fields of one changed."""

    def change(cells: list[Any]) -> list[Any]:
        return [cell | changes if place == at else cell for place, cell in enumerate(cells)]

    return change


def shared_key(case: Case) -> str:
    """The execution that all code cells share, by its file's name."""
    (path,) = (case.run / "sandbox").glob("*.json")
    return f"sandbox/{path.name}"


def in_shared(change: Callable[[Any], None], *, renew: bool = True) -> Damage:
    """A change of the shared execution, with its digests renewed."""

    def altered(execution: Any) -> None:
        change(execution)
        if renew:
            execution["evidence"]["limits_sha256"] = digest(execution["limits"])
            execution["evidence_sha256"] = digest(execution["evidence"])

    return lambda case: case.edit(shared_key(case), altered)


def in_shared_verdict(**changes: Any) -> Damage:
    """Fields of the shared execution's evidence."""
    return in_shared(lambda one: one["evidence"].update(changes))


def failed_and_sealed(case: Case) -> None:
    """The shared verdict was flipped, and ledger and statistics were made again from it."""
    in_shared_verdict(**FAILED, nonce_returned=False)(case)
    case.seal()


def key_of_program(case: Case, program: str) -> str:
    """The execution of another program for the code source's task, by its file's name."""
    task = read(case.run / "run.json")["tasks"][case.source()]
    named = {"candidate_sha256": text_sha256(program), "task_sha256": digest(task)}
    return f"sandbox/code-00-{case.source().replace('/', '-')}-shared-{digest(named)[:32]}.json"


def program_of(case: Case) -> str:
    """The program that the registered rule takes from the text of code R0 s0_period."""
    run, protocol = read(case.run / "run.json"), case.loaded.protocol
    if not isinstance(protocol, SamplingProtocol):
        raise TypeError(f"{protocol.id} executes nothing")
    task = msgspec.convert(run["tasks"][case.source()], CodeTask)
    text = unescaped(cell_of(run["units"][0], "s0_period")["text_escaped"]).removesuffix("<|eos|>")
    found = CODE_RULES[protocol.evaluators.code](text, task.prompt, task.entry_point)
    if not isinstance(found, CodeFound):
        raise TypeError("the cell holds no program")
    return found.program


def other_program(execution: Callable[[Any, str], None]) -> Damage:
    """Code R0 s0_period holds another program; its execution is a copy of the shared one, changed as given."""

    def plant(case: Case) -> None:
        shared = shared_key(case)
        case.edit("run.json", lambda run: _add_comment(cell_of(run["units"][0], "s0_period")))
        program = program_of(case)
        target = case.run / key_of_program(case, program)
        shutil.copyfile(case.run / shared, target)

        def change(one: Any) -> None:
            execution(one, program)
            one["evidence_sha256"] = digest(one["evidence"])

        edit(target, change)

    return plant


def _add_comment(cell: Any) -> None:
    cell["text_escaped"] = cell["text_escaped"].replace("    return", "    # as asked\\n    return", 1)


def own_execution(execution: Any, program: str) -> None:
    """An execution of that program in a container of its own."""
    execution["evidence"].update(candidate_sha256=text_sha256(program))
    execution["observation"].update(container="f" * 64)


def another_container(execution: Any, program: str) -> None:
    """The shared execution once more, as another container's: the verdict on the other cells' program."""
    execution["observation"].update(container="f" * 64)


def the_same_execution(execution: Any, program: str) -> None:
    """The shared execution under this program's name."""


def without_cache(case: Case) -> None:
    """The shared execution lies under the name that a cell's own would have."""
    path = case.run / shared_key(case)
    path.rename(path.with_name(f"code-00-{case.source().replace('/', '-')}-R0-s0_period.json"))


def second_execution(case: Case) -> None:
    """An execution of a program that no cell holds."""
    path = case.run / shared_key(case)
    stranger = path.with_name(f"code-00-{case.source().replace('/', '-')}-shared-{'0' * 32}.json")
    shutil.copyfile(path, stranger)


def other_task(**changes: Any) -> Damage:
    """Fields of the code task as recorded; execution, run, ledger and statistics agree with it."""

    def plant(case: Case) -> None:
        shared = case.run / shared_key(case)
        case.edit("tasks.json", lambda tasks: tasks[case.source()].update(changes))
        case.edit("run.json", lambda run: run["tasks"][case.source()].update(changes))
        program, task = program_of(case), read(case.run / "tasks.json")[case.source()]
        in_shared_verdict(candidate_sha256=text_sha256(program), tests_sha256=task["tests_sha256"])(case)
        shared.rename(case.run / key_of_program(case, program))
        case.seal()

    return plant


def row_of(at: int, **changes: Any) -> Damage:
    """Fields of a row of the ledger."""
    return in_ledger("cells", lambda rows: rows[at].update(changes))


def part_of(at: int, part: str, **changes: Any) -> Damage:
    """Fields of one account of a row of the ledger."""
    return in_ledger("cells", lambda rows: rows[at][part].update(changes))


def other_stop(case: Case) -> None:
    """A cell that neither ended nor reached its budget, in the run and, in agreement, in the ledger."""
    in_cell("s0_period", at=2, eos=False, truncated=False)(case)
    row_of(MATH_ROW, stop="other_stop", completion="OTHER_STOP")(case)


def ended_uncovered(case: Case) -> None:
    """A cell without an answer that reached its terminal by stopping, as Round 05's rule has it for code."""
    in_ledger("cells", lambda rows: rows[MATH_ROW]["terminal"].update(reached=True))(case)


def without_row(at: int) -> Damage:
    """A row of the ledger is gone."""
    return in_ledger("cells", lambda rows: rows.pop(at))


def in_frozen(change: Callable[[Any], None], suffix: str = "R0") -> Damage:
    """A change of the code source's frozen file of that ending, the index agreeing with it."""

    def plant(case: Case) -> None:
        folder = case.tree / "snapshots" / case.protocol / "formal"
        (path,) = folder.glob(f"code-*-{suffix}.json")
        content = read(path)
        change(content)
        path.write_bytes(snapshot_bytes(content))
        named = sha256_hex(path.read_bytes())
        edit(folder / "index.json", lambda one: one["units"].update({path.stem: named}))

    return plant
