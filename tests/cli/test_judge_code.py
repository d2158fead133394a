"""`judge code` over an engine that only pretends: order, bad lines, lost engines, samples; then over a real one."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from itertools import count, islice
from pathlib import Path

import pytest

from harness.errors import SandboxError
from harness.evaluate.code import CODE_RULES
from harness.judge.code import HELD_BACK, CodeJudge, CodeRuleName
from harness.judge.lines import Line
from harness.judge.tasks import HumanEval

TESTS = Path(__file__).parents[1]
PASSES = "def f():\n    return 1\n# passed\n"
MISSING = {"rule": "code-v1", "method": None, "start": None, "end": None}


def test_the_line_that_comes_out(invoke, fake, write, task):
    """Fields of a judged line: a given program, a taken one, and nothing to take."""
    rows = ({"candidate": PASSES}, {"text": f"```python\n{PASSES}```\n"}, {"text": "I can't."})
    result = invoke("code", write(*({"id": "a", **task, **row} for row in rows)))
    taken = {"rule": "code-v1", "method": "fence_with_entry_point", "start": 10, "end": 10 + len(PASSES)}
    given = {"rule": "given", "method": "given", "start": None, "end": None}
    ran = {"outcome": "passed", "detail": "", "seconds": 0.0015}
    assert result.code == 0
    assert result.lines == [
        {"id": "a", "line": 1, "extraction": given, **ran},
        {"id": "a", "line": 2, "extraction": taken, **ran},
        {"id": "a", "line": 3, "extraction": MISSING, "outcome": "extract_failed", "detail": "", "seconds": None},
    ]
    assert "code-v1 (1 programs given as they are): passed 2/3, extract_failed 1/3; 0 without a verdict" in result.err
    assert "image sha256:0, CPython 3.11.0" in result.err
    assert fake.closed


def test_a_candidate_is_run_as_it_is(invoke, fake, write, task):
    """Nothing is put before a given program; the task goes with it."""
    invoke("code", write({"id": "a", **task, "candidate": PASSES}))
    ((program, given),) = fake.seen
    assert (program, given.prompt, given.entry_point, given.test) == (PASSES, *task.values())


def test_published_rule(invoke, fake, write, task):
    """`--rule code-r05` reads by the published order, and says so."""
    result = invoke("code", write({"id": "a", **task, "text": "    return 1\n# passed"}), "--rule", "code-r05")
    assert result.lines[0]["extraction"] == {"rule": "code-r05", "method": "suffix", "start": 0, "end": 21}
    assert "code-r05 (0 programs" in result.err


def test_every_code_rule_is_offered():
    """A rule that the evaluators gain has to be offered here too."""
    assert {name.value for name in CodeRuleName} == set(CODE_RULES)


def test_no_verdict_is_no_denominator(invoke, fake, write, task):
    """An infrastructure outcome is exit 1 and counted apart; a time that isn't known is null."""
    rows = (PASSES, "# infrastructure container_lost 0")
    result = invoke("code", write(*({"id": "a", **task, "candidate": row} for row in rows)))
    assert result.code == 1
    assert (result.lines[1]["outcome"], result.lines[1]["seconds"]) == ("infrastructure", None)
    assert "passed 1/1; 1 without a verdict (infrastructure), 0 error lines of 2" in result.err


BAD = [
    ("no test", {"test": None, "candidate": "x"}, "line 1, field test", "null"),
    ("blank test", {"test": " \n", "candidate": "x"}, "line 1, field test", "none"),
    ("unusable test", {"candidate": "# infrastructure bad_task_no_check"}, "line 1, task", "bad_task_no_check"),
    ("number as prompt", {"prompt": 3, "candidate": "x"}, "line 1, field prompt", "a number"),
    ("no name", {"entry_point": "1f", "candidate": "x"}, "entry point", "`1f`"),
    ("keyword", {"entry_point": "def", "text": "x"}, "entry point", "`def`"),
    ("no program", {}, "line 1", "none of them"),
    ("two programs", {"text": "x", "candidate": "y"}, "line 1", "candidate and text"),
    ("null program", {"candidate": None}, "line 1, field candidate", "null"),
    ("surrogate", {"candidate": "\ud800"}, "line 1, field candidate", "a lone surrogate"),
    ("surrogate in a test", {"candidate": "x", "test": "SECRET \ud800"}, "line 1, field test", "a lone surrogate"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "where", "found"), [one[1:] for one in BAD], ids=[one[0] for one in BAD])
def test_bad_line(change, where, found, invoke, fake, write, task):
    """A bad line is an error line in its place, under its ID; no test is quoted."""
    first = {"id": "bad", **task, **change}
    good = {"id": "good", **task, "candidate": PASSES}
    result = invoke("code", write(first, good))
    assert result.code == 1
    assert [one["id"] for one in result.lines] == ["bad", "good"]
    assert (result.lines[0]["error"]["where"], result.lines[0]["error"]["found"]) == (where, found)
    assert result.lines[1]["outcome"] == "passed"
    assert "SECRET" not in result.out + result.err


@pytest.mark.parametrize("field", ["prompt", "entry_point", "test"])
def test_task_without_a_field(field, invoke, fake, write, task):
    """A task that lacks one of its three fields isn't looked for elsewhere: an error line names the field."""
    del task[field]
    result = invoke("code", write({"id": "a", "task_id": "HumanEval/0", **task, "candidate": PASSES}))
    error = result.lines[0]["error"]
    assert (result.code, error["where"], error["found"]) == (1, f"line 1, field {field}", "no such field")


def test_order_over_more_than_a_window(invoke, fake, write, task):
    """Bad lines, empty ones and programs come out in the order of the file."""
    kinds = ({**task, "candidate": PASSES}, {"candidate": 1}, {**task, "text": ""}, {**task, "candidate": PASSES})
    rows = [{"id": n, **kinds[n % 4]} for n in range(200)]
    result = invoke("code", write(*rows))
    assert [one["id"] for one in result.lines] == list(range(200))
    assert "passed 100/150, extract_failed 50/150; 0 without a verdict (infrastructure), 50 error lines" in result.err


@pytest.mark.parametrize("every", [1, 3, HELD_BACK * 2], ids=["programs", "some", "hardly any program"])
def test_memory_is_bounded(every, fake, task):
    """Results of an endless file come while it is read; what is held back is bounded."""
    read = count()

    def endless():
        for number in read:
            fields = {**task, "candidate": PASSES} if number % every == 0 else {}
            yield Line(number, number, fields)

    results = list(islice(CodeJudge(fake, CodeRuleName.CODE_V1, HumanEval(None, [])).judge(endless()), 1000))
    assert [one.line for one in results] == list(range(1000))
    assert next(read) <= 1000 + HELD_BACK + (fake.window + 1) * every


def test_lost_engine(invoke, fake, write, task):
    """What was judged stands; every later program is without a verdict, every bad line still said; exit 1."""
    programs = [PASSES] * 12 + ["# gone"] + [PASSES] * 12
    rows = [{"id": n, **task, "candidate": one} for n, one in enumerate(programs)]
    rows[20] = {"id": 20}
    result = invoke("code", write(*rows))
    assert result.code == 1
    assert [one["id"] for one in result.lines] == list(range(25))
    assert [one.get("outcome") for one in result.lines] == ["passed"] * 12 + ["infrastructure"] * 8 + [None] + [
        "infrastructure"
    ] * 4
    assert {one["detail"] for one in result.lines[12:20]} == {"engine_gone"}
    assert "engine: expected an engine, found none. Start it." in result.err
    assert fake.closed


def test_no_engine(invoke, write, task, monkeypatch):
    """Without an engine nothing is judged: one line on stderr, exit 2."""

    def refuse(protocol, call):
        raise SandboxError("engine", expected="an engine", found="none", todo="Start it.")

    monkeypatch.setattr("harness.judge.code.open_sandbox", refuse)
    result = invoke("code", write({"id": "a", **task, "candidate": PASSES}))
    assert (result.code, result.out) == (2, "")
    assert result.err == "engine: expected an engine, found none. Start it.\n"


@pytest.mark.parametrize("option", ["--image", "--sandbox-image", "environment"])
def test_contract_and_image(option, invoke, fake, write, task, monkeypatch):
    """The contract is R05 clause 6's with a recorded image; the image is the option's or the environment's."""
    asked = []
    monkeypatch.setattr("harness.judge.code.open_sandbox", lambda *one: asked.append(one) or fake)
    monkeypatch.setenv("HARNESS_SANDBOX_IMAGE", "named" if option == "environment" else "other")
    arguments = () if option == "environment" else (option, "named")
    invoke("code", write({"id": "a", **task, "candidate": PASSES}), *arguments)
    ((protocol, call),) = asked
    assert (call.image, protocol.sandbox.image.__struct_config__.tag) == ("named", "recorded")
    assert (protocol.sandbox.network, protocol.sandbox.wall_timeout_ms, protocol.sandbox.pids) == ("none", 5000, 64)


@pytest.fixture
def tasks(write, task):
    """A file of two tasks."""
    return write({"task_id": "T/0", **task}, {"task_id": "T/1", **task, "entry_point": "g"}, name="tasks.jsonl")


def test_samples_file(invoke, fake, write, tasks):
    """Several samples of a task, of any form; the task's ID stays and the line tells them apart."""
    forms = ("    return 1\n# passed\n", PASSES, f"```python\n{PASSES}```")
    result = invoke("code", write(*({"task_id": "T/0", "completion": one} for one in forms)), "--prompts", tasks)
    assert result.code == 0
    assert [(one["id"], one["line"]) for one in result.lines] == [("T/0", 1), ("T/0", 2), ("T/0", 3)]
    assert [one["extraction"]["method"] for one in result.lines] == ["suffix", "whole_text", "fence_with_entry_point"]
    assert all("return 1" in program for program, _ in fake.seen)
    assert f"tasks: {tasks}, not the registered HumanEval, SHA-256 " in result.err


def test_unknown_task(invoke, fake, write, tasks):
    """A sample of a task that isn't there is an error line."""
    rows = ({"task_id": "T/9", "completion": "x"}, {"task_id": "T/0", "completion": PASSES})
    result = invoke("code", write(*rows), "--prompts", tasks)
    assert (result.code, result.lines[0]["id"]) == (1, "T/9")
    assert result.lines[0]["error"]["expected"] == "one of the 2 tasks"
    assert result.lines[1]["outcome"] == "passed"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (({"task_id": "T/0"},), "line 1, field prompt: expected a string, found no such field"),
        ((b"nothing",), "line 1: expected one JSON object, found no JSON"),
        (({"id": "a"},), "line 1, field task_id: expected a string, found no such field"),
    ],
    ids=["no task", "no JSON", "no ID"],
)
def test_bad_file_of_tasks(rows, said, invoke, fake, write):
    """A file of tasks has to be right as a whole: exit 2 before anything runs."""
    samples = write({"task_id": "T/0", "completion": "x"})
    result = invoke("code", samples, "--prompts", write(*rows, name="tasks.jsonl"))
    assert (result.code, result.out) == (2, "")
    assert said in result.err


def test_task_twice(invoke, fake, write, task):
    """Of two tasks with one ID none is chosen."""
    tasks = write({"task_id": "T/0", **task}, {"task_id": "T/0", **task}, name="tasks.jsonl")
    result = invoke("code", write({"task_id": "T/0", "completion": "x"}), "--prompts", tasks)
    assert result.code == 2
    assert "line 2, field task_id: expected each once, found one again" in result.err


def test_no_humaneval(invoke, fake, write, tmp_path, monkeypatch):
    """A samples file without the registered input: exit 2 and where it is to be had."""
    monkeypatch.delenv("HARNESS_INPUTS", raising=False)
    (tmp_path / "empty").mkdir()
    result = invoke("code", write({"task_id": "HumanEval/0", "completion": "x"}), "--inputs", tmp_path / "empty")
    assert (result.code, result.out) == (2, "")
    assert "input humaneval: expected the registered file" in result.err


def test_humaneval_needed_late(invoke, fake, write, task, tmp_path, monkeypatch):
    """In a file of both kinds, samples without the registered input are error lines, the others are judged."""
    monkeypatch.delenv("HARNESS_INPUTS", raising=False)
    sample = {"task_id": "HumanEval/0", "completion": "x"}
    result = invoke("code", write({"id": "a", **task, "candidate": PASSES}, sample, sample))
    assert (result.code, [one.get("outcome") for one in result.lines]) == (1, ["passed", None, None])
    assert result.lines[1]["error"]["where"] == "input humaneval"


@pytest.mark.inputs
def test_registered_tasks(invoke, fake, write):
    """The registered HumanEval is found by digest, and its prompt goes before a completion."""
    result = invoke("code", write({"task_id": "HumanEval/2", "completion": "    return number % 1.0\n# passed\n"}))
    assert result.lines[0]["extraction"]["method"] == "suffix"
    ((program, task),) = fake.seen
    assert program.startswith("\n\ndef truncate_number(")
    assert task.entry_point == "truncate_number"
    assert ", the registered HumanEval, SHA-256 b796127e" in result.err


def vectors(path):
    """The rows of a vectors file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.docker
def test_code_vectors(invoke):
    """All 20 programs of the extraction vectors pass or don't as they say, in a real sandbox."""
    path = TESTS / "evaluate" / "vectors_code.jsonl"
    result = invoke("code", path)
    rows = vectors(path)
    assert {one["id"]: one["outcome"] == "passed" for one in result.lines} == {one["id"]: one["passes"] for one in rows}
    assert (result.code, len(rows)) == (0, 20)


@pytest.mark.docker
def test_sandbox_vectors(invoke):
    """All 24 hostile and odd programs have one of the outcomes that their vector lists."""
    path = TESTS / "sandbox" / "vectors.jsonl"
    result = invoke("code", path)
    allowed = {one["id"]: one["outcomes"] for one in vectors(path)}
    assert [(one["id"], one["outcome"]) for one in result.lines if one["outcome"] not in allowed[one["id"]]] == []
    assert (result.code, len(result.lines), len(allowed)) == (0, 24, 24)


@pytest.mark.docker
def test_same_bytes_but_for_seconds(invoke, write, task):
    """Two runs over the same programs print the same, seconds aside."""
    test = "def check(candidate):\n    assert candidate() == 1\n"
    programs = ("def f(): return 1\n", "def f(): return 2\n", "def f(:\n", "def f(): raise KeyError\n")
    path = write(*({"id": one, **task, "test": test, "candidate": one} for one in programs))
    first, second = (re.sub(r'"seconds":[0-9.e-]+', "", invoke("code", path).out) for _ in range(2))
    assert first == second


@pytest.mark.docker
@pytest.mark.parametrize(
    ("test", "word"),
    [("def chock(c):\n    pass\n", "bad_task_no_check"), ("def check(c:\n", "bad_task_test")],
)
def test_task_that_judges_nobody(test, word, invoke, write, task):
    """Tests that can't judge are an error line of the task, no outcome of the program."""
    result = invoke("code", write({"id": "a", **task, "test": test, "candidate": "def f(): return 1\n"}))
    assert (result.code, result.lines[0]["error"]["found"]) == (1, word)


@pytest.mark.docker
@pytest.mark.parametrize(
    ("program", "outcome"),
    [("def f():\n    return 'SECRET'\n" + "# x\n" * 2_500_000, "passed"), ("def f(): return '\0'\n", "syntax_error")],
    ids=["10 MB", "NUL"],
)
def test_odd_programs(program, outcome, invoke, write, task):
    """A 10 MB program and one with NUL bytes have outcomes like any other."""
    result = invoke("code", write({"id": "a", **task, "candidate": program}))
    assert (result.code, result.lines[0]["outcome"]) == (0, outcome)


@pytest.mark.docker
@pytest.mark.inputs
def test_canonical_samples(invoke, write):
    """A samples file of canonical solutions, every eighth task of HumanEval, passes whole."""
    with gzip.open(Path(os.environ["HARNESS_INPUTS"]) / "HumanEval.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file][::8]
    path = write(*({"task_id": one["task_id"], "completion": one["canonical_solution"]} for one in rows))
    result = invoke("code", path)
    assert (result.code, [one for one in result.lines if one["outcome"] != "passed"]) == (0, [])
    assert [one["id"] for one in result.lines] == [one["task_id"] for one in rows]
    assert "passed 21/21" in result.err


@pytest.mark.docker
@pytest.mark.parametrize("ended_by", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(ended_by, write, task):
    """Ctrl-C or SIGTERM in the middle: no traceback, and every container that ran is gone."""
    import docker

    endless = {**task, "candidate": "def f():\n    while True: pass\n"}
    path = write({"id": 0, **task, "candidate": "def f(): pass\n"}, *({"id": n, **endless} for n in range(1, 40)))
    command = [sys.executable, "-m", "harness", "judge", "code", str(path)]
    engine = docker.from_env()
    before = {one.id for one in engine.containers.list(all=True, ignore_removed=True)}
    # A job in a shell's background ignores SIGINT, and so would its children.
    heard = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **heard) as child:
        child.stdout.readline()
        child.send_signal(ended_by)
        said = child.stderr.read().decode()
        assert child.wait(120) == {signal.SIGINT: 130, signal.SIGTERM: 143}[ended_by]
    assert "Traceback" not in said
    # Others may use the engine too: theirs go by themselves, one that was left stays.
    left = {one.id for one in engine.containers.list(all=True, ignore_removed=True)} - before
    for _ in range(60):
        left &= {one.id for one in engine.containers.list(all=True, ignore_removed=True)}
        if not left:
            break
        time.sleep(0.5)
    engine.close()
    assert left == set()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_nothing_interrupts_the_removal(number, fake, invoke, write, task, monkeypatch):
    """A signal while containers are removed is ignored; afterwards its handler is what it was."""
    before = signal.getsignal(number)

    def leave(self, *_):
        os.kill(os.getpid(), number)
        self.closed = True

    monkeypatch.setattr(type(fake), "__exit__", leave)
    result = invoke("code", write({"id": "a", "text": "```python\ndef f():\n    pass  # passed\n```", **task}))
    assert (result.code, fake.closed, signal.getsignal(number)) == (0, True, before)
