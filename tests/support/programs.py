"""Running an extracted program with its test in a plain subprocess: for harmless code of our own only."""

import subprocess
import sys

PROMPT = 'from typing import List\n\ndef triple(n: int) -> List[int]:\n    """Return [n]*3."""\n'
TEST = "def check(candidate):\n    assert candidate(2) == [2, 2, 2]\n"


def passes(program, test=TEST, entry_point="triple"):
    """Whether the program, then its test, run to the end."""
    source = f"{program}\n{test}\ncheck({entry_point})\n"
    data = source.encode("utf-8", "surrogatepass")
    done = subprocess.run([sys.executable, "-I", "-S", "-"], input=data, capture_output=True, check=False, timeout=60)
    return done.returncode == 0


def extraction(rule, text, prompt=PROMPT, entry_point="triple"):
    """(method, whether the program passes); method None where nothing was found."""
    found = rule(text, prompt, entry_point)
    program = getattr(found, "program", None)
    return getattr(found, "method", None), program is not None and passes(program)
