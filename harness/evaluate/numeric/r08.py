"""`numeric-r08`: the last normalised number of an output (R08 6.2), with no order of markers before it.

Numbers and their plain form are those of Round 04 and of Round 05's fallback; a marker has no say, so none is claimed
(`marker` is false). Missing is the document's `no_numeric_answer`. This module doesn't know the gold number.
"""

from harness.evaluate.numeric.r05 import last_number
from harness.records.evaluation import NumericExtraction


def numeric_r08(text: str) -> NumericExtraction:
    """The last number of a text in plain form, method `last`. Never raises."""
    return last_number(text, rule="numeric-r08")
