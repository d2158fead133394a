"""`code-v1` on texts of our own: which step decides, and whether what it took passes when it is executed.

Each case is a claim: its ID says what the text does, the method says how it is read.
"""

import pytest
from pregate_support.programs import PROMPT, TEST, extraction, passes

from harness.errors import InputError
from harness.evaluate.code import code_v1
from harness.records.evaluation import CodeMissing

DEF = "def triple(n):\n    return [n]*3\n"
WRONG = "def triple(n):\n    return [n]*4\n"
ENTRY, JOINED, BODY = "fence_with_entry_point", "fences_joined", "fence_body"

CASES = {
    "upper-case tag": (f"```PYTHON\n{DEF}```", ENTRY, True),
    "py tag": (f"```py\n{DEF}```", ENTRY, True),
    "python3 tag": (f"```python3\n{DEF}```", ENTRY, True),
    "tag with attributes": (f'```{{.python title="x.py"}}\n{DEF}```', ENTRY, True),
    "tag with a file name": (f"```python:solution.py\n{DEF}```", ENTRY, True),
    "tag of another language over Python": (f"```text\n{DEF}```", ENTRY, True),
    "four backticks": (f"````python\n{DEF}````", ENTRY, True),
    "closing longer than opening": (f"```python\n{DEF}`````\nDone", ENTRY, True),
    "tilde fence without tag": (f"~~~\n{DEF}~~~\nDone", ENTRY, True),
    "opening after prose on its line": (f"Solution: ```python\n{DEF}```", ENTRY, True),
    "opening after a list marker": ("- ```python\n  def triple(n):\n      return [n]*3\n  ```\n", ENTRY, True),
    "closing at the end of the last statement": ("```python\ndef triple(n):\n    return [n]*3```\nDone", ENTRY, True),
    "tab-indented fence": ("\t```python\n\tdef triple(n):\n\t\treturn [n]*3\n\t```", ENTRY, True),
    "unterminated fence then prose": (f"```python\n{DEF}\nThis works because it repeats.", "definition", True),
    "unterminated fence, next one opens": (f"```python\n{DEF}\n```python\nprint(triple(2))\n```", ENTRY, True),
    "tagged fence within a docstring": (
        '```python\ndef triple(n):\n    """e.g.\n    ```python\n    triple(1)\n    ```\n    """\n    return [n]*3\n```',
        ENTRY,
        True,
    ),
    "fence at column 0 within a docstring": (
        '```python\ndef triple(n):\n    """e.g.\n```\ntriple(1)\n```\n    """\n    return [n]*3\n```\nDone.',
        ENTRY,
        True,
    ),
    "docstring fence, never closed": (
        '```python\ndef triple(n):\n    """e.g.\n    ```\n    triple(1)\n    ```\n    """\n    return [n]*3\n',
        ENTRY,
        True,
    ),
    "correction comes last": (f"```python\n{WRONG}```\nWait, that is wrong:\n```python\n{DEF}```", ENTRY, True),
    "stub comes last": (f"```python\n{DEF}```\nThe shape:\n```python\ndef triple(n):\n    ...\n```", ENTRY, True),
    "stub comes first": (f"```python\ndef triple(n):\n    pass\n```\nFull:\n```python\n{DEF}```", ENTRY, True),
    "last one breaks off": (f"```python\n{DEF}```\nOr:\n```python\ndef triple(n):\n    return [n", ENTRY, True),
    "usage imports it": (
        f"```python\n{DEF}```\n```python\nfrom solution import triple\nprint(triple(1))\n```",
        ENTRY,
        True,
    ),
    "output block after it": (f"```python\n{DEF}```\nOutput:\n```\n[2, 2, 2]\n```", ENTRY, True),
    "untagged prose block before it": (f"```\nthe plan is simple\n```\n```python\n{DEF}```", ENTRY, True),
    "JSON block before it": (f'```json\n{{"n": 2}}\n```\n```python\n{DEF}```', ENTRY, True),
    "helper in an earlier block": (
        "```python\ndef rep(n, k):\n    return [n]*k\n```\nThen\n```python\ndef triple(n):\n    return rep(n, 3)\n```",
        JOINED,
        True,
    ),
    "helper in a later block": (
        "```python\ndef triple(n):\n    return rep(n, K)\n```\nwith\n```python\nK = 3\n"
        "def rep(n, k):\n    return [n]*k\n```",
        JOINED,
        True,
    ),
    "import in a block of its own": (
        "```python\nimport math\n```\n```python\ndef triple(n):\n    return [math.floor(n)]*3\n```",
        JOINED,
        True,
    ),
    "helper's helper": (
        "```python\nK = 3\n```\n```python\ndef rep(n):\n    return [n]*K\n```\n"
        "```python\ndef triple(n):\n    return rep(n)\n```",
        JOINED,
        True,
    ),
    "class in an earlier block": (
        "```python\nclass Box:\n    k = 3\n```\n```python\ndef triple(n):\n    return [n]*Box.k\n```",
        JOINED,
        True,
    ),
    "wrapped afterwards in a block of its own": (
        f"```python\n{DEF}```\n```python\nfrom functools import lru_cache\ntriple = lru_cache(triple)\n```",
        ENTRY,
        True,
    ),
    "async definition is taken": (
        "```python\nasync def triple(n):\n    return [n]*3\n```",
        ENTRY,
        False,
    ),
    "assigned partial": (
        "```python\nfrom functools import partial\ndef rep(k, n):\n    return [n]*k\ntriple = partial(rep, 3)\n```",
        ENTRY,
        True,
    ),
    "callable class instance": (
        "```python\nclass T:\n    def __call__(self, n):\n        return [n]*3\ntriple = T()\n```",
        ENTRY,
        True,
    ),
    "defined under if": ("```python\nif True:\n    def triple(n):\n        return [n]*3\n```", ENTRY, True),
    "future import": (f"```python\nfrom __future__ import annotations\n{DEF}```", ENTRY, True),
    "method of a class is no entry point": (
        "```python\nclass Solution:\n    def triple(self, n):\n        return [n]*3\n```",
        "unparsed_fence",
        False,
    ),
    "body in a fence": ("```python\n    return [n]*3\n```", BODY, True),
    "body in a list-indented fence": ("1. Body:\n   ```python\n       return [n]*3\n   ```", BODY, True),
    "body in a fence, indentation lost": ("```python\nreturn [n]*3\n```", "fence", False),
    "block defines something else": ("```python\ndef triples(n):\n    return [n]*3\n```", "fence", False),
    "closed block that doesn't parse": (f"```python\n{DEF}print(triple(2)\n```", "unparsed_fence", False),
    "function breaks off in a fence": ("```python\ndef triple(n):\n    x = [n,", "unparsed_fence", False),
    "whole text is the program": (f"import math\n\n{DEF}", "whole_text", True),
    "whole text, assignment": ("triple = lambda n: [n]*3", "whole_text", True),
    "whole text, then a word": (f"{DEF}\nDone", "whole_text", True),
    "whole text, usage kept": (f"{DEF}\nprint(triple(2))\n", "whole_text", True),
    "whole text indented": ("    def triple(n):\n        return [n]*3\n", "whole_text", True),
    "byte order mark": (f"\ufeff{DEF}", "whole_text", True),
    "form feed and trailing spaces": (f"{DEF}\x0c\n   \n", "whole_text", True),
    "space before the first line": (f" import math\n\n{DEF}", "whole_text", True),
    "space before the first line, then prose": (
        " import math\n\ndef triple(n):\n    return [math.floor(n)]*3\n\nIt's simple.",
        "definition",
        True,
    ),
    "space before a definition on the first line": (f" {DEF}\nIt's simple.", "definition", True),
    "space before a fence": (f" ```python\n{DEF}```", ENTRY, True),
    "byte order mark, then prose": (f"\ufeff{DEF}\nIt's simple.", "definition", True),
    "definition between prose": (f"Here is it:\n\n{DEF}\nIt's simple.\nReally simple.", "definition", True),
    "definition with imports and helper above": (
        "Here is it:\n\nimport math\n\ndef rep(n):\n    return [math.floor(n)]*3\n\n"
        "def triple(n):\n    return rep(n)\n\nOK?",
        "definition",
        True,
    ),
    "decorated definition between prose": (
        "So:\nfrom functools import lru_cache\n@lru_cache(\n    maxsize=None)\n"
        "def triple(n):\n    return [n]*3\nThat's it.",
        "definition",
        True,
    ),
    "indented definition between prose": (
        "So:\n\n    def triple(n):\n        return [n]*3\n\nThat's it.",
        "definition",
        True,
    ),
    "assignment between prose": ("A lambda does it:\n\ntriple = lambda n: [n]*3\n\nThat's it.", "definition", True),
    "definition then usage breaks off": (f"So:\n{DEF}\nprint(triple(", "definition", True),
    "definition then usage in a fence": (
        f"So, first:\n{DEF}\nUse it:\n```python\nprint(triple(2))\n```",
        "definition",
        True,
    ),
    "program, then the fence that the prompt opened closes": (f"{DEF}```\nThis works.", "definition", True),
    "prose names the definition first": (
        f"The line\ndef triple of n\nis wrong, this is right:\n{DEF}\nYes.",
        "definition",
        True,
    ),
    "body then prose": ("    return [n]*3\n\nThis isn't hard.\n- one\n- two\n", "suffix_cut", True),
    "body then fence then usage": ("    return [n]*3\n```\nUse:\n```python\nprint(triple(2))\n```", "suffix_cut", True),
    "body then a word": ("    return [n]*3\n\nDone", "suffix", True),
    "body then another function": ("    return rep(n)\n\ndef rep(n):\n    return [n]*3\n", "suffix", True),
    "body begins with an empty line": ("\n\n    return [n]*3", "suffix", True),
    "body begins with a comment": ("    # easy\n    return [n]*3", "suffix", True),
    "body with a fence in a string": ('    s = """\n```\n"""\n    return [n]*3\n', "suffix", True),
    "body CRLF": ("    k = 3\r\n    return [n]*k\r\n", "suffix", True),
    "body breaks off": ("    x = [n,\n", "unparsed_suffix", False),
    "body with wrong indentation isn't repaired": ("   return [n]*3\n", "unparsed_suffix", False),
    "comment only": ("    # nothing to do\n", "unparsed_suffix", False),
    "NUL in prose after it": (f"So:\n{DEF}\nDo\0ne", "definition", True),
    "NUL in it": ("```python\ndef triple(n):\n    return [n]*3\0\n```", "unparsed_fence", False),
    "one word": ("Sorry", None, False),
    "empty": ("", None, False),
    "white space": (" \n\t\n", None, False),
    "other language": ("```javascript\nconst triple = n => [n, n, n]\n```", None, False),
}


@pytest.mark.parametrize(("text", "method", "passed"), CASES.values(), ids=CASES)
def test_a_text_is_read(text, method, passed):
    """The step that decides, and whether the program passes: prose never does, code that is there does."""
    assert extraction(code_v1, text) == (method, passed)


def program(text, prompt=PROMPT, entry_point="triple"):
    """The program that `code-v1` takes."""
    return code_v1(text, prompt, entry_point).program


def test_a_span_is_of_the_text():
    """`text[start:end]` is what was taken, code points counted, whatever stands before it."""
    text = f"\U0001f600 So:\n```python\n{DEF}```"
    found = code_v1(text, PROMPT, "triple")
    assert text[found.start : found.end] == DEF
    assert found.program == f"from typing import List\n\n{DEF}"


def test_a_span_of_joined_blocks_reaches_from_the_first_to_the_last():
    """What lies between them is in the span and not in the program."""
    text = "```python\nK = 3\n```\nprose\n```python\ndef triple(n):\n    return [n]*K\n```"
    found = code_v1(text, PROMPT, "triple")
    assert text[found.start : found.end].startswith("K = 3\n```\nprose")
    assert "prose" not in found.program


def test_the_last_of_two_programs_is_taken():
    """Both are whole and differ: the later one is the answer."""
    assert "*4" in program(f"```python\n{DEF}```\nBetter:\n```python\n{WRONG}```")


def test_usage_is_not_executed():
    """A block that only uses the entry point is in no program."""
    assert "print" not in program(f"```python\n{DEF}```\n```python\nprint(triple(2))\n```")


def test_nothing_is_ever_indented():
    """Each line of a dedented program is an end of a line of the text."""
    lines = program("1. So\n   ```python\n   def triple(n):\n       return [n]*3\n   ```").splitlines()
    assert lines[-2:] == ["def triple(n):", "    return [n]*3"]


def test_future_imports_stay_first():
    """They move above what is kept of the prompt, from whichever block they come."""
    text = f"```python\nimport os\nfrom __future__ import annotations\n{DEF}```"
    assert program(text).startswith("from __future__ import annotations\nfrom typing import List\n\nimport os\n")


def test_a_prompt_that_the_text_repeats_is_kept_once_more():
    """The prompt's helpers stand before a text that defines them again: the text's are in force."""
    prompt = "def rep(n):\n    return [n]*4\n\ndef triple(n):\n    '''Use rep.'''\n"
    text = "```python\ndef rep(n):\n    return [n]*3\n\ndef triple(n):\n    return rep(n)\n```"
    assert passes(program(text, prompt))


def test_a_helper_of_the_prompt_serves():
    """What the prompt defines before the entry point isn't looked for in other blocks."""
    prompt = "def rep(n):\n    return [n]*3\n\ndef triple(n):\n    '''Use rep.'''\n"
    assert extraction(code_v1, "```python\ndef triple(n):\n    return rep(n)\n```", prompt) == (ENTRY, True)


@pytest.mark.parametrize(
    ("prompt", "text", "method"),
    [
        ("def triple(n):", " return [n]*3", "suffix"),
        ("def triple(n):\n    return", " [n]*3", "suffix"),
        ("def triple(n):\n", "    return [n]*3", "suffix"),
        ("def triple(n):\n    ", "return [n]*3", "suffix"),
        ("Write triple(n), please.", f"```python\n{DEF}```", ENTRY),
        ("", DEF, "whole_text"),
        ("\ufefffrom typing import List\n\ndef triple(n):\n    '''3'''\n", "    return [n]*3", "suffix"),
    ],
)
def test_a_prompt_of_another_shape_serves(prompt, text, method):
    """A prompt that breaks off anywhere, that is prose, that is empty, or that has a byte order mark."""
    assert extraction(code_v1, text, prompt) == (method, True)


@pytest.mark.parametrize("name", ["", "a b", "1a", "def", "a.b", "a\ud800"])
def test_a_name_that_is_none_is_an_error(name):
    """A task whose entry point can't be a function's name is bad data and says so."""
    with pytest.raises(InputError, match="entry point: expected the name of a Python function"):
        code_v1(DEF, PROMPT, name)


def test_a_name_within_a_name_is_another():
    """`triple_sum` and `my_triple` don't define `triple`; a name of other letters than ASCII is a name."""
    assert isinstance(code_v1("def triple_sum(n): pass\ndef my_triple(n): pass", PROMPT, "triple"), CodeMissing)
    assert code_v1("def drei\u00e4(n):\n    return n", "", "drei\u00e4").method == "whole_text"


def test_the_test_tells_apart():
    """The control of these tests: the check that they run fails for a wrong program, and for none."""
    assert (passes(DEF), passes(WRONG), passes("")) == (True, False, False)
    assert "assert" in TEST
