"""`strict-r08`: a right output that also ended (R08 6): by EOS, or where its own text says that the answer is complete.

The marker and the fence are Round 05's; an output cut off at the budget with neither is right within the budget alone.
"""

from harness.evaluate.code.fences import closed_python_fence


def strict_number_r08(*, exact: bool, natural_eos: bool, final_marker: bool) -> bool:
    """Exact, and EOS or a final marker anywhere in the text."""
    return exact and (natural_eos or final_marker)


def strict_program_r08(text: str, *, passed: bool, natural_eos: bool) -> bool:
    """Passed, and EOS or a closed Python fence in the text."""
    return passed and (natural_eos or closed_python_fence(text))
