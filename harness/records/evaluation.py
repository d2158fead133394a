"""What an evaluator of text returns: a number or a program that it took from a text, by which rule and from where.

Spans are `text[start:end]` in code points. Every record says which rule it is from; a rule never changes, a better one
gets a new name and both results stay.
"""

from typing import Literal

from harness.records.base import Record

NumericRule = Literal["numeric-r05", "numeric-r08", "numeric-v1"]
CodeRule = Literal["code-r05", "code-v1"]


class NumericFound(Record, tag_field="state", tag="found"):
    """A number in plain normalised form and how it was found.

    `method` is the rule's own word for the step that found it; `marker`: that step rests on an explicit final-answer
    marker (a box, `####`, a phrase), not on the number's place alone.
    """

    rule: NumericRule
    method: str
    value: str
    marker: bool
    start: int
    end: int


class NumericMissing(Record, tag_field="state", tag="missing"):
    """The rule found no number in the text."""

    rule: NumericRule


NumericExtraction = NumericFound | NumericMissing


class CodeFound(Record, tag_field="state", tag="found"):
    """A candidate program, by which step, and the part of the text that it was taken from.

    `program` is what is executed: the part (adjusted as the rule says), with the prompt or its imports and helpers
    before it. `program` isn't repeated in ledgers, only its digest.
    """

    rule: CodeRule
    method: str
    program: str
    start: int
    end: int


class CodeMissing(Record, tag_field="state", tag="missing"):
    """The rule found nothing to execute."""

    rule: CodeRule


CodeExtraction = CodeFound | CodeMissing

# The five states of one output (R05 4.4), from the stopping and terminal accounts and the fallback diagnosis alone.
CompletionClass = Literal[
    "NATURAL_EOS",
    "TASK_TERMINAL_BEFORE_EOS",
    "BUDGET_TRUNCATED_WITH_FALLBACK_ONLY",
    "BUDGET_TRUNCATED_UNRESOLVED",
    "OTHER_STOP",
]
