"""Stop state and completion class of an output (R05 4.1 and 4.4): functions of four truth values.

The class says how an output ended and what of it can be read; it never says that an answer is right. This module knows
no text and no budget: the decoder says what was EOS and what was cut.
"""

from typing import Literal

from harness.records.evaluation import CompletionClass

StopState = Literal["natural_eos", "budget_truncated", "other_stop"]


def stop_state(*, eos: bool, truncated: bool) -> StopState:
    """R05 4.1. EOS at the last allowed step is natural, so an output that has both is misuse: RuntimeError."""
    if eos and truncated:
        raise RuntimeError("an output ends by EOS or is cut off at the budget, never both")
    return "natural_eos" if eos else "budget_truncated" if truncated else "other_stop"


def completion_class(*, eos: bool, truncated: bool, terminal: bool, fallback_number: bool) -> CompletionClass:
    """R05 4.4: the class of one output, by the first that holds.

    `terminal`: the task terminal was reached; false also where there is no judge. `fallback_number`: a mathematics
    output that has a number by its place alone; false for every other kind. RuntimeError as in `stop_state`.
    """
    state = stop_state(eos=eos, truncated=truncated)
    if state == "natural_eos":
        return "NATURAL_EOS"
    if state == "other_stop":
        return "OTHER_STOP"
    if terminal:
        return "TASK_TERMINAL_BEFORE_EOS"
    return "BUDGET_TRUNCATED_WITH_FALLBACK_ONLY" if fallback_number else "BUDGET_TRUNCATED_UNRESOLVED"
