"""A task's cell (R08 6): four accounts of a program, one word for it, a number's result, strict beside fixed budget."""

import msgspec
import pytest
from pregate_support.books import Said

from harness.errors import JournalError
from harness.ledgers.executions import code_cells
from harness.ledgers.reading import NO_NUMBER, NO_PROGRAM
from harness.ledgers.task import task_ledger
from harness.records.completion import NotExecuted, NumericWithoutGold, ProgramTaken
from harness.records.evaluation import CodeFound, CodeMissing
from harness.records.tapes import NoEdge
from harness.records.task_ledger import NoVerdict, TaskExecution, TaskRow, TaskVerdict

from .tasks import TaskBuilder, task_protocol

replace = msgspec.structs.replace
FENCE = "```python\ndef f(n):\n    return n + 1\n```"
OPEN = "```python\ndef f(n):\n    return n + 1\n"
BARE = "def f(n):\n    return n + 1\n"


@pytest.fixture(scope="module")
def tasks():
    """A builder of one task a domain and one tape."""
    return TaskBuilder(task_protocol(tasks=1, diagnostic=()))


@pytest.fixture(scope="module")
def judge(tasks):
    """`judge(domain, said, outcome)`: the first cell's row of a run in which every cell of the domain said that."""

    def row(domain, said, outcome="passed", *, grid="formal", gold=None):
        tapes = ("T0", "T1") if grid == "smoke" else ("T0",)
        units = tuple(tasks.drawn(domain, 0, {"*": said}, tape=tape, grid=grid) for tape in tapes)
        run = tasks.task_run(units, grid=grid, gold=gold)
        made = tasks.executions(run, {"*": outcome}) if grid == "formal" else {}
        return task_ledger(tasks.protocol, run, made).cells[0]

    return row


@pytest.mark.parametrize(
    ("outcome", "word", "parses", "passed"),
    [
        ("passed", "passed", True, True),
        ("assertion_failed", "assertion_failed", True, False),
        ("runtime_error", "runtime_error", True, False),
        ("timeout", "timeout", True, False),
        ("out_of_memory", "runtime_error", True, False),
        ("syntax_error", "syntax_error", False, False),
    ],
)
def test_a_programs_accounts_and_its_one_word(judge, outcome, word, parses, passed):
    """R08 6.1: extracted, parses, executed, passed; Round 08's word, and the sandbox's own beside it."""
    code = judge("code", Said(FENCE), outcome).code
    assert isinstance(code.program, ProgramTaken)
    assert isinstance(code.execution, TaskExecution)
    assert code.execution.outcome == outcome
    assert code.verdict == TaskVerdict(
        failure_type=word, ast_parses=parses, executed=parses, passed=passed, strict_complete_pass=passed
    )


def test_nothing_to_extract(judge):
    """An empty text: no program, so nothing ran, and the word says why."""
    code = judge("code", Said("", eos=False)).code
    assert code.program == CodeMissing(rule="code-r05")
    assert code.execution == NotExecuted(reason="extract_failed")
    assert code.verdict == TaskVerdict(
        failure_type="extract_failed", ast_parses=False, executed=False, passed=False, strict_complete_pass=False
    )


def test_a_failed_engine_is_no_verdict(judge):
    """The document has no word for it, and a lost container is nothing that the program did."""
    code = judge("code", Said(FENCE), "infrastructure").code
    assert code.execution.outcome == "infrastructure"
    assert code.verdict == NoVerdict(reason="infrastructure")


def test_smoke_executes_nothing(judge):
    """The program is there; that it wasn't run is said, and is no failure."""
    code = judge("code", Said(FENCE), grid="smoke").code
    assert (code.execution, code.verdict) == (NotExecuted(reason="tier"), NoVerdict(reason="tier"))


@pytest.mark.parametrize(
    ("text", "eos", "outcome", "strict"),
    [
        (BARE, True, "passed", True),
        (FENCE, False, "passed", True),
        (OPEN, False, "passed", False),
        (BARE, False, "passed", False),
        (f"```js\nx\n```\n{BARE}", False, "passed", False),
        (FENCE, True, "assertion_failed", False),
        (FENCE, False, "timeout", False),
    ],
)
def test_a_strict_pass_has_an_end(judge, text, eos, outcome, strict):
    """Passed, and EOS or a closed Python fence; within the budget it is passed without either."""
    verdict = judge("code", Said(text, eos=eos), outcome).code.verdict
    assert (verdict.passed, verdict.strict_complete_pass) == (outcome == "passed", strict)


@pytest.mark.parametrize(
    ("text", "eos", "result", "strict"),
    [
        ("so 12", True, "exact", True),
        ("so 12", False, "exact", False),
        ("\\boxed{12}", False, "exact", True),
        ("#### 5 and then 12", False, "exact", True),
        ("\\boxed{12} or rather 13", True, "wrong_numeric_answer", False),
        ("\\boxed{13}", True, "wrong_numeric_answer", False),
        ("twelve", True, "no_numeric_answer", False),
        ("so 12.0", True, "exact", True),
        ("so 1,2", True, "exact", True),
    ],
)
def test_a_numbers_result(judge, text, eos, result, strict):
    """R08 6.2: the last number of the text, whatever a marker says; strict where the text ended or has a marker."""
    numeric = judge("math", Said(text, eos=eos)).numeric
    assert numeric.result == result
    assert numeric.fixed_budget_exact is (result == "exact")
    assert numeric.strict_complete_exact is strict
    assert numeric.extraction.rule == "numeric-r08"


def test_a_number_without_gold_is_not_judged(judge):
    """The extraction is kept, and there is no result to count."""
    assert isinstance(judge("math", Said("so 12"), gold={}).numeric, NumericWithoutGold)


def test_a_row_has_neither_terminal_nor_class(judge):
    """Round 08 registers no terminal rule: the row has no field that could hold one."""
    assert {"terminal", "completion"} & set(TaskRow.__struct_fields__) == set()
    code, math = judge("code", Said(FENCE)), judge("math", Said("so 12", eos=False))
    assert (code.numeric, math.code) == (NO_NUMBER, NO_PROGRAM)
    assert (code.stop, math.stop) == ("natural_eos", "budget_truncated")


def test_a_row_has_its_own_tape_facts(tasks):
    """Consumed values, gaps and the nearest edge of its condition's row, joined by condition and not by place."""
    unit = tasks.drawn("math", 0, {"*": Said("so 12"), "s1_eos": Said("so")})
    first, *others = unit.tape.rows
    marked = replace(first, gaps=2, boundary_ties=1, nearest_edge=NoEdge())
    turned = replace(unit, tape=replace(unit.tape, rows=(*reversed(others), marked)))
    rows = task_ledger(tasks.protocol, tasks.task_run((turned,)), {}).cells
    assert [(row.condition, row.tape.consumed) for row in rows] == [
        ("s0_eos", 6), ("s1_eos", 3), ("s0_period", 6), ("s1_period", 6)
    ]  # fmt: skip
    assert (rows[0].tape.gaps, rows[0].tape.boundary_ties, rows[0].tape.nearest_edge) == (2, 1, NoEdge())
    assert rows[1].tape.consumed_sha256 == unit.tape.rows[1].consumed.sha256
    assert {row.tape.tape for row in rows} == {"T0"}


@pytest.mark.parametrize(
    "change", [lambda rows: rows[1:], lambda rows: (rows[0], *rows[:-1])], ids=["lacking", "twice"]
)
def test_a_cell_without_its_own_tape_row_is_refused(tasks, change):
    """One is lacking, or one is there twice."""
    unit = tasks.drawn("math", 0, {"*": Said("so 12")})
    broken = replace(unit, tape=replace(unit.tape, rows=change(unit.tape.rows)))
    with pytest.raises(JournalError, match=r"^unit math/0000, T0: tape rows: expected .*'s0_eos'.*, found"):
        task_ledger(tasks.protocol, tasks.task_run((broken,)), {})


def test_every_program_has_an_execution_of_its_own(tasks):
    """R08 registers no cache: four cells with one text are four programs to execute."""
    run = tasks.task_run((tasks.drawn("code", 0, {"*": Said(FENCE)}),))
    keys = [cell.key for cell in code_cells(tasks.protocol, run) if isinstance(cell.extraction, CodeFound)]
    assert len(set(keys)) == 4
    made = tasks.executions(run, {"*": "passed"})
    with pytest.raises(JournalError, match="expected the verdict on this cell's program, found none"):
        task_ledger(tasks.protocol, run, {key: one for key, one in made.items() if key != keys[0]})
