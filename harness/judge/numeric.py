"""Numeric answers against gold numbers, by a named rule: exact, and strict where the answer is also complete.

strict = exact AND (natural EOS OR an explicit final marker) (R05 5). What counts as a marker is the rule's own matter:
`numeric-v1`, what it found rests on one; `numeric-r05` and `numeric-r08`, R05 4.2's marker is in the text (R08 takes
Round 05's); `number-r04`, none, its round had no markers. This module doesn't know what was asked.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from harness.errors import HarnessError, InputError
from harness.evaluate.number import last_number_r04
from harness.evaluate.numeric import NUMERIC_RULES, final_marker_r05, parse_gold
from harness.judge.lines import ErrorLine, Line, LineId, Number
from harness.records.base import Record
from harness.records.evaluation import NumericExtraction, NumericFound
from harness.records.ledger import NumberFound

GOLD_MARKER = "####"


class NumericRuleName(StrEnum):
    """The rules that are offered."""

    NUMBER_R04 = "number-r04"
    NUMERIC_R05 = "numeric-r05"
    NUMERIC_R08 = "numeric-r08"
    NUMERIC_V1 = "numeric-v1"


class Read(NamedTuple):
    """A number that a rule read: method, plain form, span in code points; and whether the answer has a marker."""

    method: str
    value: str
    start: int
    end: int
    marker: bool


Rule = Callable[[str], Read | None]


class NumericLine(Record):
    """The judgement of one line. Method, value and span are null where the rule found no number."""

    id: LineId
    line: int
    rule: str
    method: str | None
    value: str | None
    start: int | None
    end: int | None
    exact: bool
    strict: bool


def judge_numeric(lines: Iterable[Line | ErrorLine], rule: NumericRuleName) -> Iterator[NumericLine | ErrorLine]:
    """One line out for each line in, in order."""
    read = RULES[rule]
    for line in lines:
        if isinstance(line, ErrorLine):
            yield line
            continue
        try:
            yield _judged(line, rule, read)
        except HarnessError as error:
            yield line.error(error)


def _judged(line: Line, rule: NumericRuleName, read: Rule) -> NumericLine:
    line_id, text, gold, eos = line.own_id(), line.text("text"), _gold(line), line.flag("natural_eos")
    found = read(text)
    exact = found is not None and found.value == gold
    return NumericLine(
        id=line_id,
        line=line.number,
        rule=rule.value,
        method=None if found is None else found.method,
        value=None if found is None else found.value,
        start=None if found is None else found.start,
        end=None if found is None else found.end,
        exact=exact,
        strict=exact and (eos or (found is not None and found.marker)),
    )


def _gold(line: Line) -> str:
    """The gold number in plain form: a JSON number, a written one, or what ends a GSM8K answer after `####`."""
    gold = line.fields.get("gold")
    written = gold.written if isinstance(gold, Number) else line.text("gold")
    try:
        return parse_gold(written.rpartition(GOLD_MARKER)[2])
    except InputError:
        # The evaluator's own error quotes the text; here that would be a gold answer in a report.
        raise InputError(
            line.where("gold"),
            expected="one number such as 18, 1,250, -42.0 or 1/3, alone or after ####",
            found="something else",
            todo="Write the gold answer as digits only: no unit, no currency sign, no words.",
        ) from None


def _r04(text: str) -> Read | None:
    found = last_number_r04(text)
    return Read("last", found.value, found.start, found.end, marker=False) if isinstance(found, NumberFound) else None


def _by(extract: Callable[[str], NumericExtraction], marker: Callable[[str, NumericFound], bool]) -> Rule:
    def read(text: str) -> Read | None:
        found = extract(text)
        if not isinstance(found, NumericFound):
            return None
        return Read(found.method, found.value, found.start, found.end, marker=marker(text, found))

    return read


def _found_by_marker(_text: str, found: NumericFound) -> bool:
    return found.marker


def _has_marker_r05(text: str, _found: NumericFound) -> bool:
    return final_marker_r05(text)


RULES: dict[NumericRuleName, Rule] = {
    NumericRuleName.NUMBER_R04: _r04,
    NumericRuleName.NUMERIC_R05: _by(NUMERIC_RULES["numeric-r05"], _has_marker_r05),
    NumericRuleName.NUMERIC_R08: _by(NUMERIC_RULES["numeric-r08"], _has_marker_r05),
    NumericRuleName.NUMERIC_V1: _by(NUMERIC_RULES["numeric-v1"], _found_by_marker),
}
