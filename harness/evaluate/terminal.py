"""The task terminal of an output: two published rules, `terminal-r05` (R05 4.2) and `terminal-r07` (R07 8.2), and ours.

Each rule says only whether the task's own end is in the text; it never says that an answer is right. English and
Chinese have no judge: their state is `no_judge`, which is not `not_reached`, since a full stop isn't completion. This
module doesn't know what a final marker is (the numeric rules do) nor how tests were run: both come in as truth values.
"""

from typing import Literal

from harness.evaluate.code.fences import closed_fence, closed_python_fence
from harness.records.evaluation import NumericExtraction, NumericFound

__all__ = ["KINDS", "Kind", "Terminal", "closed_python_fence", "final_marker_v1", "terminal_r05", "terminal_r07"]

Terminal = Literal["reached", "not_reached", "no_judge"]
Kind = Literal["math", "code", "english", "chinese"]
KINDS: tuple[Kind, ...] = ("math", "code", "english", "chinese")


def terminal_r05(kind: Kind, text: str, *, natural_eos: bool, marker: bool) -> Terminal:
    """R05 4.2. Math: `marker`, an explicit final marker. Code: a closed Python fence, or natural EOS."""
    _known(kind)
    if kind == "math":
        return _state(marker)
    if kind == "code":
        return _state(natural_eos or closed_python_fence(text))
    return "no_judge"


def final_marker_v1(extraction: NumericExtraction, text: str, *, natural_eos: bool) -> bool:
    """`terminal-v1`, math: the registered numeric rule found its number by a marker, and the number is whole.

    A number that ends a cut text isn't: its next digit may be what was cut. `terminal-v1` is `terminal-r05` with this
    marker in the place of R05's own, for which "the total number of trucks: 2 x 3 = 6" is one wherever it stands.
    """
    if not isinstance(extraction, NumericFound) or not extraction.marker:
        return False
    return natural_eos or text[extraction.end :].strip(".,") != ""


def terminal_r07(kind: Kind, text: str, *, tests_passed: bool, marker: bool) -> Terminal:
    """R07 8.2. Math: `marker`, an explicit answer. Code: a closed fence, or passed tests. EOS is no terminal."""
    _known(kind)
    if kind == "math":
        return _state(marker)
    if kind == "code":
        return _state(tests_passed or closed_fence(text))
    return "no_judge"


def _state(reached: bool) -> Terminal:  # noqa: FBT001  # the one thing it says
    return "reached" if reached else "not_reached"


def _known(kind: str) -> None:
    if kind not in KINDS:
        raise RuntimeError(f"a terminal rule knows {', '.join(KINDS)}, got {kind!r}")
