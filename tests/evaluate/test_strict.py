"""`strict-r08` (R08 6): a right output that also ended, over all its truth values."""

from itertools import product

import pytest

from harness.evaluate.strict import strict_number_r08, strict_program_r08

FENCE = "```python\ndef f():\n    return 1\n```"


@pytest.mark.parametrize(("exact", "eos", "marker"), list(product((False, True), repeat=3)))
def test_a_number(exact, eos, marker):
    """Exact, and one of the two ends; an end alone is nothing."""
    assert strict_number_r08(exact=exact, natural_eos=eos, final_marker=marker) is (exact and (eos or marker))


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        pytest.param(FENCE, True, id="closed"),
        pytest.param(f"{FENCE}\nand more", True, id="not at the end"),
        pytest.param(FENCE.replace("python", "py"), True, id="py"),
        pytest.param(FENCE.removesuffix("```"), False, id="open"),
        pytest.param(FENCE.replace("python", ""), False, id="no tag"),
        pytest.param(FENCE.replace("python", "js"), False, id="another language"),
        pytest.param("", False, id="empty"),
    ],
)
@pytest.mark.parametrize(("passed", "eos"), list(product((False, True), repeat=2)))
def test_a_program(text, closed, passed, eos):
    """Passed, and EOS or a closed Python fence."""
    assert strict_program_r08(text, passed=passed, natural_eos=eos) is (passed and (eos or closed))
