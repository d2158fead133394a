"""How faults of a completion run are planted: in its executions, its baseline, its ledger, its frozen results.

The run's code cells end by themselves and their programs pass; its mathematics is cut at the budget.
"""

from collections.abc import Callable
from typing import Any

from harness.canon import digest, sha256_hex, text_sha256
from harness.journal.assemble import assemble
from harness.journal.folder import RunFolder
from harness.ledgers.executions import code_cells
from harness.places import Places
from harness.snapshots.content import snapshot_bytes
from harness.snapshots.store import accept, frozen_folder

from .damage import Case, Damage, cell_of, edit, read
from .planting import in_cell, in_ledger

MATH = ("{1}:s0_x",)
CODE = ("{0}:*",)
CODE_ROW, MATH_ROW = 4, 12  # the ledger's rows of the two sources' s0_x
FLAGS: dict[str, Any] = {
    "network": "bridge",
    "read_only": False,
    "user": "0:0",
    "cap_drop": [],
    "cap_add": ["SYS_ADMIN"],
    "security_options": [],
    "privileged": True,
    "memory_bytes": 0,
    "memory_swap_bytes": -1,
    "pids": 0,
    "nano_cpus": 0,
    "tmpfs": {},
    "mounts": ["/var/run"],
    "ipc": "host",
}
FAILED: dict[str, Any] = {"outcome": "assertion_failed", "detail": "AssertionError", "exit_code": 1}


def key_of(case: Case, condition: str = "s0_x") -> str:
    """The execution of a code cell, by its file's name."""
    return f"sandbox/code-00-{case.source().replace('/', '-')}-greedy-{condition}.json"


def in_execution(change: Callable[[Any], None], condition: str = "s0_x", *, renew: bool = True) -> Damage:
    """A change of a cell's execution, with its digests renewed."""

    def altered(execution: Any) -> None:
        change(execution)
        if renew:
            execution["evidence"]["limits_sha256"] = digest(execution["limits"])
            execution["evidence_sha256"] = digest(execution["evidence"])

    return lambda case: case.edit(key_of(case, condition), altered)


def in_verdict(**changes: Any) -> Damage:
    """Fields of an execution's evidence."""
    return in_execution(lambda one: one["evidence"].update(changes))


def in_facts(change: Callable[[Any], None]) -> Damage:
    """A change of what all executions share."""
    return lambda case: case.edit("sandbox.json", change)


def in_baseline(**changes: Any) -> Damage:
    """Fields of the baseline as recorded, in its file and in run.json; a callable value is given the old one."""

    def change(baseline: Any) -> None:
        baseline.update({name: new(baseline[name]) if callable(new) else new for name, new in changes.items()})

    def plant(case: Case) -> None:
        case.edit("baseline.json", change)
        case.edit("run.json", lambda run: change(run["baseline"]))

    return plant


def other_cell(cells: list[Any]) -> list[Any]:
    """The baseline's cells with another prompt hash in the one of code s0_x."""
    found = [dict(cell) for cell in cells]
    found[CODE_ROW]["prompt_sha256"] = "0" * 64
    return found


def row_of(at: int, **changes: Any) -> Damage:
    """Fields of a row of the ledger."""
    return in_ledger("cells", lambda rows: rows[at].update(changes))


def part_of(at: int, part: str, **changes: Any) -> Damage:
    """Fields of one account of a row of the ledger."""
    return in_ledger("cells", lambda rows: rows[at][part].update(changes))


def a_port(case: Case) -> None:
    """The run and its baseline say that they are ports, and the run's environment is another one."""
    case.edit("spec.json", lambda spec: spec.update(port=True))
    case.edit("run.json", lambda run: run.update(environment_sha256="0" * 64))
    in_baseline(port=True)(case)


def other_stop(case: Case) -> None:
    """A cell that neither ended nor reached its budget, in the run and, in agreement, in the ledger."""
    in_cell("s0_x", at=1, eos=False, truncated=False)(case)
    row_of(MATH_ROW, stop="other_stop", completion="OTHER_STOP")(case)


def stranger(case: Case) -> None:
    """An execution of no cell of the run."""
    (case.run / key_of(case, "s9_x")).write_bytes((case.run / key_of(case)).read_bytes())


def same_container(case: Case) -> None:
    """Two executions that name one container."""
    own = read(case.run / key_of(case))["observation"]["container"]
    in_execution(lambda one: one["observation"].update(container=own), "s1_x")(case)


def nothing_extracted(case: Case) -> None:
    """An execution of a cell whose text holds no program."""
    in_cell("s0_x", text_escaped="<|eos|>")(case)


def failed_and_sealed(case: Case) -> None:
    """A verdict that was flipped, with ledger and statistics made again from it."""
    in_verdict(**FAILED, nonce_returned=False)(case)
    case.seal()


def uncounted_failure(case: Case) -> None:
    """A verdict that was flipped; the ledger still counts the pass."""
    in_verdict(**FAILED, nonce_returned=False)(case)


def counted_pass(case: Case) -> None:
    """The ledger counts a pass that the verdict isn't, and names that verdict."""
    uncounted_failure(case)
    named = read(case.run / key_of(case))["evidence_sha256"]
    in_ledger("cells", lambda rows: rows[CODE_ROW]["code"]["verdict"].update(execution_sha256=named))(case)


def frozen(damage: Damage, *, own: bool = False) -> Damage:
    """The run is accepted (as another run's results, unless `own`) and damaged afterwards."""

    def plant(case: Case) -> None:
        accept(case.run, Places(case.tree))
        if not own:
            index = frozen_folder(case.protocol, Places(case.tree)) / "index.json"
            edit(index, lambda one: one.update(origins=["0" * 64]))
        damage(case)

    return plant


def frozen_verdict(case: Case) -> None:
    """A frozen verdict is another one, and the index agrees with it."""
    folder = frozen_folder(case.protocol, Places(case.tree))
    (path,) = folder.glob("*-verdicts.json")
    content = read(path)
    cell_of(content, "s0_x")["verdict"].update(outcome="timeout")
    path.write_bytes(snapshot_bytes(content))
    edit(folder / "index.json", lambda one: one["units"].update({path.stem: sha256_hex(path.read_bytes())}))


def other_task(**changes: Any) -> Damage:
    """Fields of the code task as recorded; executions, run, ledger and statistics agree with it."""

    def plant(case: Case) -> None:
        case.edit("tasks.json", lambda tasks: tasks[case.source()].update(changes))
        run = assemble(RunFolder(case.run), case.loaded)
        for cell in code_cells(case.loaded.protocol, run):
            fitting = {
                "candidate_sha256": text_sha256(cell.extraction.program),
                "tests_sha256": run.tasks[cell.source_id].tests_sha256,
            }
            in_execution(lambda one, fitting=fitting: one["evidence"].update(fitting), cell.condition)(case)
        case.seal()

    return plant


def attempts(case: Case) -> None:
    """A list of attempts that lists none."""
    folder = case.run / "attempts.json"
    folder.write_text("{}", encoding="ascii")
    edit(folder, lambda one: one.update(schema=1, protocol_digest=case.loaded.digest, attempts=[]))


def empty_file(name: str) -> Damage:
    """A file that nothing of the run wrote."""

    def plant(case: Case) -> None:
        path = case.run / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"{}")

    return plant
