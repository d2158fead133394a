"""All 164 HumanEval solutions in the shapes in which models write them: extracted, they pass their own checks.

The programs are the data set's own reference solutions; one subprocess runs all of a shape.
"""

import ast
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.evaluate.code import CODE_RULES
from harness.evaluate.code.task import kept_of_prompt

pytestmark = pytest.mark.inputs

RUNNER = """
import json, sys
failed = []
for name, source in json.load(sys.stdin):
    try:
        exec(compile(source, name, "exec"), {"__name__": "program"})
    except BaseException as error:
        failed.append([name, type(error).__name__])
print("\\n" + json.dumps(failed))
"""
SHAPES = {
    "suffix": lambda task, _: task["canonical_solution"],
    "whole program in a fence": lambda task, _: f"Sure:\n```python\n{whole(task)}```\nDone.",
    "definition after prose": lambda task, own: f"Here is the function.\n\n{own}",
    "fence with the function alone": lambda _, own: f"```python\n{own}```\n",
    "body in a fence": lambda task, _: f"```python\n{task['canonical_solution']}```\n",
    "body, then the prompt's fence closes": lambda task, _: f"{task['canonical_solution']}```\nThis isn't hard.",
    "definition between prose": lambda task, own: f"Here is the function.\n\n{own}\nIt isn't hard.",
    "list-indented fence": lambda task, _: "1. So:\n   ```\n" + indented(whole(task)) + "   ```\n",
    "unterminated fence": lambda task, _: f"```python\n{whole(task)}",
    "CRLF": lambda task, _: f"```python\n{whole(task)}```\n".replace("\n", "\r\n"),
}
TO_THE_LETTER = (
    "suffix",
    "whole program in a fence",
    "definition after prose",
    "fence with the function alone",
    "unterminated fence",
    "CRLF",
)


def whole(task):
    """Prompt and solution as one program."""
    return task["prompt"] + task["canonical_solution"]


def indented(source):
    """Each line three spaces in, as below a list item."""
    return "".join(f"   {line}" if line.strip() else line for line in source.splitlines(keepends=True))


@pytest.fixture(scope="module")
def tasks():
    """The registered data file's rows."""
    path = Path(os.environ["HARNESS_INPUTS"]) / "HumanEval.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def programs(rule, shape, tasks):
    """(task ID, extracted program) of each task in a shape."""
    found = []
    for task in tasks:
        own = whole(task).removeprefix(kept_of_prompt(task["prompt"], task["entry_point"]))
        text = SHAPES[shape](task, own)
        found.append((task["task_id"], CODE_RULES[rule](text, task["prompt"], task["entry_point"]).program))
    return found


def failures(sources):
    """[(name, error class)] of the sources that don't run to their end, all in one subprocess."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", RUNNER], input=json.dumps(sources), capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def checked(found, tasks):
    """The programs with their checks behind them."""
    by_id = {task["task_id"]: task for task in tasks}
    return [(name, f"{one}\n{by_id[name]['test']}\ncheck({by_id[name]['entry_point']})\n") for name, one in found]


CASES = [("code-r05", shape) for shape in TO_THE_LETTER] + [("code-v1", shape) for shape in SHAPES]


@pytest.mark.parametrize(("rule", "shape"), CASES)
def test_reference_solutions_pass_in_every_shape(rule, shape, tasks):
    """Each program parses, defines its entry point, and passes its task's own check."""
    found = programs(rule, shape, tasks)
    assert len(found) == 164
    for (_, program), task in zip(found, tasks, strict=True):
        assert task["entry_point"] in {getattr(one, "name", "") for one in ast.parse(program).body}
    assert failures(checked(found, tasks)) == []


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape not in TO_THE_LETTER])
def test_what_the_letter_of_the_order_loses(shape, tasks):
    """`code-r05` repairs nothing, so in these shapes not one of the 164 runs: a finding about the rule."""
    assert len(failures(checked(programs("code-r05", shape, tasks), tasks))) == 164


@pytest.mark.parametrize("rule", CODE_RULES)
def test_an_empty_body_fails_everywhere(rule, tasks):
    """The control: the same way with `pass` for a body, and no task passes."""
    found = [
        (task["task_id"], CODE_RULES[rule]("    pass\n", task["prompt"], task["entry_point"]).program) for task in tasks
    ]
    assert len(failures(checked(found, tasks))) == 164


def test_what_is_kept_of_each_prompt(tasks):
    """Exactly the prompts with an import or a helper keep something, and it is the prompt's beginning."""
    kept = {task["task_id"]: kept_of_prompt(task["prompt"], task["entry_point"]) for task in tasks}
    for task in tasks:
        assert task["prompt"].removeprefix(kept[task["task_id"]]).lstrip().startswith(f"def {task['entry_point']}")
    helpers = [name for name, one in kept.items() if "def " in one]
    assert helpers == ["HumanEval/10", "HumanEval/32", "HumanEval/38", "HumanEval/50"]
