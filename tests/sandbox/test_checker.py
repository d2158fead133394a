"""The checker's judgement without a container: what a program, a test and a call come to."""

import hashlib

import pytest

RIGHT = "def triple(n):\n    return [n] * 3\n"
RAISES = (
    "def check(candidate):\n    try:\n        candidate(2)\n    except ValueError:\n        return\n    assert False\n"
)
AS_ASKED = "def check(candidate):\n    assert candidate(2) == [2, 2, 2]\n"
# Takes the checker's own allowance of open files: its parent is the checker, in a container and here.
NO_DESCRIPTORS_ABOVE = (
    "import os, resource\n"
    "try:\n    resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (0, 0))\nexcept OSError:\n    pass\n"
) + RIGHT


@pytest.mark.parametrize(
    ("candidate", "outcome", "detail"),
    [
        pytest.param(RIGHT, "passed", "", id="right"),
        pytest.param("def triple(n):\n    return n\n", "assertion_failed", "AssertionError", id="wrong"),
        pytest.param("def triple(n):\n    return (n,) * 3\n", "assertion_failed", "AssertionError", id="tuple"),
        pytest.param("def triple(n):\n    assert False\n", "runtime_error", "AssertionError", id="its own assertion"),
        pytest.param("def triple(n):\n    raise ValueError(n)\n", "runtime_error", "ValueError", id="raises"),
        pytest.param(
            "class Mine(KeyError): pass\ndef triple(n):\n    raise Mine\n", "runtime_error", "KeyError", id="own class"
        ),
        pytest.param("1 / 0\n", "runtime_error", "ZeroDivisionError", id="raises at load"),
        pytest.param("raise SystemExit(0)\n", "runtime_error", "SystemExit", id="exits at load"),
        pytest.param("def triple(n):\n    exit(0)\n", "runtime_error", "SystemExit", id="exits in a call"),
        pytest.param(
            "def triple(n):\n    raise KeyboardInterrupt\n", "runtime_error", "KeyboardInterrupt", id="interrupt"
        ),
        pytest.param(
            "class B(BaseException): pass\ndef triple(n):\n    raise B\n", "runtime_error", "BaseException", id="base"
        ),
        pytest.param("def triple(n):\n    raise MemoryError\n", "out_of_memory", "MemoryError", id="memory"),
        pytest.param("def triple(n):\n    return triple(n)\n", "runtime_error", "RecursionError", id="recursion"),
        pytest.param("def other(n):\n    return 1\n", "runtime_error", "entry_point_missing", id="no entry point"),
        pytest.param("triple = [1]\n", "runtime_error", "entry_point_missing", id="nothing to call"),
        pytest.param("def triple(n)\n", "syntax_error", "SyntaxError", id="syntax"),
        pytest.param(RIGHT + "# \udcff", "syntax_error", "UnicodeEncodeError", id="no UTF-8"),
        pytest.param("  def triple(n): pass\n", "syntax_error", "IndentationError", id="indented"),
        pytest.param("return 1\n", "syntax_error", "SyntaxError", id="return outside"),
        pytest.param("", "runtime_error", "entry_point_missing", id="empty"),
        pytest.param("(" * 400 + ")" * 400, "syntax_error", "SyntaxError", id="nested"),
        pytest.param("def triple(n):\n    return object()\n", "runtime_error", "value_not_plain", id="object"),
        pytest.param(
            "def triple(n):\n    x = []\n    x.append(x)\n    return x\n", "runtime_error", "value_too_deep", id="cycle"
        ),
        pytest.param("def triple(n):\n    return 'x' * (9 << 20)\n", "runtime_error", "value_too_large", id="large"),
        pytest.param("def triple(n):\n    return None\n", "assertion_failed", "AssertionError", id="nothing"),
        pytest.param("import os\nos.kill(os.getpid(), 11)\n", "runtime_error", "signal_11", id="segmentation fault"),
        pytest.param("import os\nos.close(4)\n" + RIGHT, "runtime_error", "exit_1", id="closed its replies"),
        pytest.param("import os\nos._exit(3)\n", "runtime_error", "exit_3", id="exit"),
        pytest.param(
            "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n" + RIGHT,
            "passed",
            "",
            id="dataclass",
        ),
        pytest.param(
            "import random\nassert random.random() == 0.8444218515250481\n" + RIGHT, "passed", "", id="seeded"
        ),
        pytest.param("assert __name__ == 'candidate'\n" + RIGHT, "passed", "", id="name"),
        pytest.param("import sys\nassert sys.stdin.read() == ''\n" + RIGHT, "passed", "", id="empty input"),
        pytest.param(
            "import collections\ntriple = lambda n: collections.deque([n] * 3)\n",
            "runtime_error",
            "value_not_plain",
            id="deque",
        ),
    ],
)
def test_what_a_program_comes_to(judged_here, task_of, candidate, outcome, detail):
    """One outcome and one fixed word for each way to go."""
    found = judged_here(candidate, task_of())
    assert (found.outcome, found.detail) == (outcome, detail)


def test_a_nul_byte(judged_here, task_of):
    """Pythons disagree on the class, not on the outcome."""
    found = judged_here(RIGHT + "\0", task_of())
    assert found.outcome == "syntax_error"
    assert found.detail in ("SyntaxError", "ValueError")


@pytest.mark.parametrize(
    ("test", "candidate", "outcome", "detail"),
    [
        pytest.param(RAISES, "def triple(n):\n    raise ValueError\n", "passed", "", id="the expected exception"),
        pytest.param(
            RAISES, "def triple(n):\n    raise KeyError\n", "runtime_error", "KeyError", id="another exception"
        ),
        pytest.param(RAISES, RIGHT, "assertion_failed", "AssertionError", id="no exception"),
        pytest.param(
            "def check(candidate):\n    try:\n        candidate(2)\n    except BaseException:\n        pass\n",
            "def triple(n):\n    raise SystemExit\n",
            "runtime_error",
            "SystemExit",
            id="an exit is never caught",
        ),
        pytest.param(
            "def check(candidate):\n    try:\n        candidate(2)\n    except BaseException:\n        pass\n",
            "import os\ndef triple(n):\n    os._exit(0)\n",
            "runtime_error",
            "exit_0",
            id="nor a death",
        ),
        pytest.param(
            "def check(candidate):\n    candidate(2)['a']\n",
            RIGHT,
            "runtime_error",
            "test_TypeError",
            id="a value of no use",
        ),
        pytest.param(
            "def check(candidate):\n    assert candidate(n=2) == [2, 2, 2]\n", RIGHT, "passed", "", id="keywords"
        ),
        pytest.param("def check(candidate):\n    assert triple(2) == [2, 2, 2]\n", RIGHT, "passed", "", id="by name"),
        pytest.param(
            "def check(candidate):\n    print('x')\n    assert candidate(2) == [2, 2, 2]\n",
            RIGHT,
            "passed",
            "",
            id="prints",
        ),
        pytest.param("def check(candidate):\n    pass\n", RIGHT, "passed", "", id="a test that asks nothing"),
        pytest.param(
            "def check(candidate):\n    x = candidate(2)\n    for _ in range(98):\n        x = [x]\n    candidate(x)\n",
            "def triple(n):\n    return [[[n]]] if n == 2 else n\n",
            "runtime_error",
            "argument_too_deep",
            id="an argument made of a value",
        ),
        pytest.param("", RIGHT, "infrastructure", "bad_task_no_check", id="no test"),
        pytest.param("x = 1\n", RIGHT, "infrastructure", "bad_task_no_check", id="no check"),
        pytest.param("check = 1\n", RIGHT, "infrastructure", "bad_task_no_check", id="nothing to call"),
        pytest.param("def check(:\n", RIGHT, "infrastructure", "bad_task_test", id="no Python"),
        pytest.param("def check(c): pass\n1 / 0\n", RIGHT, "infrastructure", "bad_task_test", id="raises by itself"),
        pytest.param(
            "def check(candidate):\n    candidate(print)\n", RIGHT, "infrastructure", "bad_task_argument", id="argument"
        ),
        pytest.param(
            "def check(candidate):\n    candidate(2)\n    candidate(print)\n",
            RIGHT,
            "runtime_error",
            "argument_not_plain",
            id="an argument after an answer",
        ),
        pytest.param(
            "def check(candidate):\n    for one in map(candidate, (2, 3)):\n        assert one == [2, 2, 2]\n",
            "def triple(n):\n    raise StopIteration\n",
            "runtime_error",
            "StopIteration",
            id="a loop is never ended",
        ),
        pytest.param(
            "def check(candidate):\n    for one in map(candidate, (2, 3)):\n        assert one == [2, 2, 2]\n",
            "class Mine(StopAsyncIteration): pass\ndef triple(n):\n    raise Mine\n",
            "runtime_error",
            "StopAsyncIteration",
            id="nor an asynchronous one",
        ),
        pytest.param(
            "raise OSError\n" + AS_ASKED,
            "while True: pass\n",
            "infrastructure",
            "bad_task_test",
            id="the test is run before the program",
        ),
        pytest.param(
            "import colorsys\n" + AS_ASKED,
            NO_DESCRIPTORS_ABOVE,
            "passed",
            "",
            id="no failure of the candidate's choice",
        ),
        pytest.param(
            "first = triple(2)\nraise OSError\n" + AS_ASKED,
            RIGHT,
            "runtime_error",
            "test_OSError",
            id="a test that fails after a call",
        ),
        pytest.param(
            "x = triple(2)\nif x == 1:\n    check = print\n",
            RIGHT,
            "runtime_error",
            "test_no_check",
            id="no check then",
        ),
        pytest.param("assert triple(2) == [2, 2, 2]\n" + AS_ASKED, RIGHT, "passed", "", id="a call outside check"),
        pytest.param(
            "assert triple(2) == 1\n" + AS_ASKED, RIGHT, "assertion_failed", "AssertionError", id="an assertion outside"
        ),
        pytest.param(
            "import random\nassert random.random() == 0.8444218515250481\n" + AS_ASKED,
            RIGHT,
            "passed",
            "",
            id="a seeded test",
        ),
    ],
)
def test_what_a_test_comes_to(judged_here, task_of, test, candidate, outcome, detail):
    """Expected exceptions, tests by name, and tasks that are at fault themselves: those judge nobody."""
    found = judged_here(candidate, task_of(test))
    assert (found.outcome, found.detail) == (outcome, detail)


@pytest.mark.parametrize(
    ("prompt", "outcome", "detail"),
    [
        pytest.param("def triple(n):\n    # a body to come", "passed", "", id="no body"),
        pytest.param("def triple(n) ->", "infrastructure", "bad_task_prompt", id="no Python"),
        pytest.param("1 / 0\n", "infrastructure", "bad_task_prompt", id="raises"),
        pytest.param("# \ud800", "infrastructure", "bad_task_prompt", id="no text"),
    ],
)
def test_what_a_prompt_comes_to(judged_here, task_of, prompt, outcome, detail):
    """A prompt that stops before its body is whole; one that isn't Python is the task's fault."""
    found = judged_here(RIGHT, task_of(prompt=prompt))
    assert (found.outcome, found.detail) == (outcome, detail)


def test_helpers_of_the_prompt_are_the_tests(judged_here, task_of):
    """A test may call what the prompt defines (HumanEval/32, 38, 50)."""
    prompt = "def twice(x):\n    return 2 * x\n\ndef triple(n):\n    pass\n"
    test = "def check(candidate):\n    assert candidate(twice(1)) == [2, 2, 2]\n"
    assert judged_here(RIGHT, task_of(test, prompt=prompt)).outcome == "passed"


@pytest.mark.parametrize(
    ("candidate", "detail"),
    [
        pytest.param("while True: pass\n", "load", id="at load"),
        pytest.param("def triple(n):\n    while True: pass\n", "call", id="in a call"),
        pytest.param(
            "import os, signal\ndef triple(n):\n    os.kill(os.getpid(), signal.SIGSTOP)\n", "call", id="stopped"
        ),
    ],
)
def test_the_clock(judged_here, task_of, candidate, detail):
    """Whatever doesn't answer in time is a timeout."""
    found = judged_here(candidate, task_of(), deadline_ms=300)
    assert (found.outcome, found.detail) == ("timeout", detail)


def test_a_prompt_that_never_ends_is_the_tasks_fault(judged_here, task_of):
    """The clock of a task is no verdict on a candidate."""
    found = judged_here(RIGHT, task_of(prompt="while True: pass\n"), deadline_ms=300)
    assert (found.outcome, found.detail) == ("infrastructure", "bad_task_timeout")


def test_output_is_counted_and_hashed(judged_here, task_of):
    """All of it is counted, the first MiB is hashed, none of it is kept."""
    empty = judged_here(RIGHT, task_of()).verdict
    some = judged_here("print('x' * 9)\n" + RIGHT, task_of()).verdict
    much = judged_here("print('x' * (3 << 20))\n" + RIGHT, task_of()).verdict
    assert (empty.output_bytes, empty.output_sha256, empty.output_cut) == (0, "", False)
    assert (some.output_bytes, some.output_cut) == (10, False)
    assert some.output_sha256 == hashlib.sha256(b"x" * 9 + b"\n").hexdigest()
    assert (much.output_bytes, much.output_cut) == ((3 << 20) + 1, True)
