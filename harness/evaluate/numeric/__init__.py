"""Numbers that an output gives as its answer, by frozen rules under names of their own.

A published rule is kept to the letter and a better one gets a new name; a protocol says which it uses, and
docs/evaluators-numeric.md shows what each gives on the same texts. Rules know no gold number, no run and no protocol.
"""

from collections.abc import Callable

from harness.evaluate.numeric.exact import parse_gold, same_number
from harness.evaluate.numeric.r05 import final_marker_r05, numeric_r05
from harness.evaluate.numeric.r08 import numeric_r08
from harness.evaluate.numeric.v1 import numeric_v1
from harness.records.evaluation import NumericExtraction, NumericRule

NUMERIC_RULES: dict[NumericRule, Callable[[str], NumericExtraction]] = {
    "numeric-r05": numeric_r05,
    "numeric-r08": numeric_r08,
    "numeric-v1": numeric_v1,
}

__all__ = [
    "NUMERIC_RULES",
    "final_marker_r05",
    "numeric_r05",
    "numeric_r08",
    "numeric_v1",
    "parse_gold",
    "same_number",
]
