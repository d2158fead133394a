"""`code-r05`: the published order to the letter (R05 6), what of the prompt is kept, and what a fence is."""

import pytest
from pregate_support.programs import PROMPT, extraction

from harness.errors import InputError
from harness.evaluate.code import CODE_RULES, code_r05
from harness.evaluate.code.fences import closed_fence, closed_fences, closed_python_fence
from harness.evaluate.code.task import kept_of_prompt
from harness.records.evaluation import CodeFound, CodeMissing

DEF = "def triple(n):\n    return [n]*3\n"
KEPT = "from typing import List\n\n"


def found(text, prompt=PROMPT):
    """(method, the part of the text that was taken)."""
    one = code_r05(text, prompt, "triple")
    return one.method, text[one.start : one.end]


ORDER = {
    "a fence with the entry point before an earlier other one": (
        f"{DEF}\n```python\nx = 1\n```\n```python\n{DEF}```\n```py\n{DEF}#\n```",
        ("fence_with_entry_point", DEF),
    ),
    "the first fence with it": (f"```py\n{DEF}```\n```python\n{DEF}#\n```", ("fence_with_entry_point", DEF)),
    "async def": ("```py\nasync def triple(n): 1\n```", ("fence_with_entry_point", "async def triple(n): 1\n")),
    "named in a comment of the fence": ("```py\n# def triple\n```", ("fence_with_entry_point", "# def triple\n")),
    "the first other fence before a definition": (f"{DEF}\n```py\nx = 1\n```\n```py\ny = 2\n```", ("fence", "x = 1\n")),
    "longer name": ("```py\ndef triples(n): 1\n```", ("fence", "def triples(n): 1\n")),
    "name as an end": ("```py\nmydef triple(n): 1\n```", ("fence", "mydef triple(n): 1\n")),
    "empty fence": ("```python\n```\n", ("fence", "")),
    "fence of another tag, then a definition": (f"```python3\n{DEF}```", ("definition", f"{DEF}```")),
    "fence without tag, then a definition": (f"```\n{DEF}```\nEnd", ("definition", f"{DEF}```\nEnd")),
    "fence that isn't closed, then a definition": (f"```python\nimport os\n{DEF}", ("definition", DEF)),
    "definition to the end": (f"So:\n{DEF}Done.", ("definition", f"{DEF}Done.")),
    "decorators belong to it": (f"So:\n@a\n@b(1)\n{DEF}", ("definition", f"@a\n@b(1)\n{DEF}")),
    "indented definition": ("So:\n  def triple(n): 1", ("definition", "def triple(n): 1")),
    "definition within a line is none": ("Use def triple(n): 1", ("suffix", "Use def triple(n): 1")),
    "the rest": ("    return [n]*3\n", ("suffix", "    return [n]*3\n")),
    "prose": ("Sorry.", ("suffix", "Sorry.")),
}


@pytest.mark.parametrize(("text", "expected"), ORDER.values(), ids=ORDER)
def test_the_order_is_the_published_one(text, expected):
    """R05 6: fence with the entry point, other Python fence, definition, suffix; each the first of its kind."""
    assert found(text) == expected


@pytest.mark.parametrize(
    ("text", "program"),
    [
        (f"```python\n{DEF}```", KEPT + DEF),
        ("```python\ntriple = 1\n```", f"{KEPT}triple = 1\n"),
        (f"So:\n{DEF}", KEPT + DEF),
        ("    return [n]*3\n", f"{PROMPT}    return [n]*3\n"),
    ],
)
def test_a_fence_or_a_definition_replaces_the_prompt(text, program):
    """Its imports and helpers are kept before it; a suffix comes after the whole prompt."""
    assert code_r05(text, PROMPT, "triple").program == program


@pytest.mark.parametrize("text", ["", " ", "\n\n\t", "\u3000\n"])
def test_white_space_is_no_candidate(text):
    """A prompt alone would parse and run: an empty answer must not be counted as one that was executed."""
    assert code_r05(text, PROMPT, "triple") == CodeMissing(rule="code-r05")


NOT_REPAIRED = {
    "prose after a definition": f"{DEF}This works.",
    "prose after a body": "    return [n]*3\n\nThis works.",
    "indented fence": "1. So\n   ```python\n   def triple(n):\n       return [n]*3\n   ```",
    "body in a fence": "```python\n    return [n]*3\n```",
    "correction in a later fence": f"```python\ndef triple(n):\n    return [n]\n```\n```python\n{DEF}```",
    "helper in another fence": "```python\nK = 3\n```\n```python\ndef triple(n):\n    return [n]*K\n```",
    "byte order mark": f"\ufeff{DEF}",
}


@pytest.mark.parametrize("text", NOT_REPAIRED.values(), ids=NOT_REPAIRED)
def test_nothing_is_repaired(text):
    """What the letter of the clause doesn't fix isn't fixed: these fail under it and pass under `code-v1`."""
    assert extraction(code_r05, text)[1] is False
    assert extraction(CODE_RULES["code-v1"], text)[1] is True


HELPER = "import os\n\ndef rep(n):\n    return n\n\n"
KEPT_OF = {
    "imports": (PROMPT, KEPT),
    "helpers": (f'{HELPER}def triple(n):\n    """3"""\n', HELPER),
    "decorators belong to the definition": (f"{HELPER}@a\n@b(\n  1)\ndef triple(n):\n    '''3'''\n", HELPER),
    "async": (f"{HELPER}async def triple(n):\n    '''3'''\n", HELPER),
    "the last definition is the task": ("def triple(n): 1\nx = 1\ndef triple(n): 2\n", "def triple(n): 1\nx = 1\n"),
    "what follows goes": ("x = 1\ndef triple(n): 1\ny = 2\n", "x = 1\n"),
    "an example of a definition in a docstring": ("x = 1\ndef triple(n):\n    '''\ndef triple(n): 1\n'''\n", "x = 1\n"),
    "CRLF": ("import os\r\n\r\ndef triple(n):\r\n    '''3'''\r\n", "import os\r\n\r\n"),
    "no definition": ("import os", "import os\n"),
    "no definition, empty": ("", ""),
    "doesn't parse": (f"{HELPER}def triple(n):\n", HELPER),
    "doesn't parse, decorated": (f"{HELPER}@a\n  @b\ndef triple(n):\n", HELPER),
    "doesn't parse, a class before it": (
        "class A:\n    def triple(self): 1\n\ndef triple(n):\n",
        "class A:\n    def triple(self): 1\n\n",
    ),
    "doesn't parse, nor does what is before it": ("Please write:\ndef triple(n):\n", ""),
    "prose": ("Please write triple.", ""),
    "only an indented definition": ("So:\n    def triple(n):\n", ""),
}


@pytest.mark.parametrize(("prompt", "kept"), KEPT_OF.values(), ids=KEPT_OF)
def test_what_is_kept_of_a_prompt(prompt, kept):
    """All before the entry point's own definition, by the tree where it parses, else by lines if that much parses."""
    assert kept_of_prompt(prompt, "triple") == kept


FENCES = {
    "one": ("```python\na\n```", [("python", "a\n")]),
    "case and space": ("```  PyThon\na\n```", [("python", "a\n")]),
    "first word": ("```py title=x\na\n```", [("py", "a\n")]),
    "no tag": ("```\na\n```", [("", "a\n")]),
    "three spaces": ("   ```py\n   a\n   ```", [("py", "   a\n")]),
    "four spaces": ("    ```py\n    a\n    ```", []),
    "a tab": ("\t```py\na\n\t```", []),
    "four spaces close nothing": ("```py\na\n    ```\nb\n```", [("py", "a\n    ```\nb\n")]),
    "longer closing": ("```py\na\n`````  \n", [("py", "a\n")]),
    "shorter line closes nothing": ("````py\na\n```\n````", [("py", "a\n```\n")]),
    "an opening within": ("```py\na\n```py\nb\n```\nc\n```", [("py", "a\n```py\nb\n")]),
    "never closed": ("```py\na\n", []),
    "never closed, then one that is": ("````py\na\n```\nb\n```", [("", "b\n")]),
    "closed within a line": ("```py\na```", []),
    "opened within a line": ("So: ```py\na\n", []),
    "inline code": ("```x = 1```\n", []),
    "tildes": ("~~~py\na\n~~~", []),
    "CRLF": ("```py\r\na\r\n```\r\n", [("py", "a\r\n")]),
    "CR": ("```py\ra\r```\r", [("py", "a\r")]),
    "two": ("```py\na\n```\n```\nb\n```", [("py", "a\n"), ("", "b\n")]),
    "empty": ("```py\n```", [("py", "")]),
}


@pytest.mark.parametrize(("text", "expected"), FENCES.values(), ids=FENCES)
def test_what_a_closed_fence_is(text, expected):
    """Lines of backticks as in CommonMark, outside of containers; bodies as they are written."""
    assert [(one.tag, text[one.start : one.end]) for one in closed_fences(text)] == expected


@pytest.mark.parametrize(
    ("text", "python", "any_tag"),
    [
        ("```python\nx\n```", True, True),
        ("```Py\n\n```", True, True),
        ("```\nx\n```\n```py\n```", True, True),
        ("```python3\nx\n```", False, True),
        ("```\nx\n```", False, True),
        ("```python\nx", False, False),
        ("~~~python\nx\n~~~", False, False),
        ("", False, False),
    ],
)
def test_a_closed_fence_is_a_terminal_by_its_lines_alone(text, python, any_tag):
    """R05 4.2 asks for a Python fence, R07 8.2 for a fence; neither asks what is in it."""
    assert (closed_python_fence(text), closed_fence(text)) == (python, any_tag)


@pytest.mark.parametrize("rule", CODE_RULES)
def test_a_record_names_its_rule(rule):
    """What a rule of the registry finds, or doesn't, says which rule it was."""
    assert CODE_RULES[rule](DEF, PROMPT, "triple").rule == rule
    assert CODE_RULES[rule]("", PROMPT, "triple") == CodeMissing(rule=rule)
    assert isinstance(CODE_RULES[rule](DEF, PROMPT, "triple"), CodeFound)


def test_a_name_that_is_none_is_an_error():
    """A task whose entry point can't be a function's name is bad data and says so."""
    with pytest.raises(InputError, match="expected the name of a Python function, found `a b`"):
        code_r05(DEF, PROMPT, "a b")
