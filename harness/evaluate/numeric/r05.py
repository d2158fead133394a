r"""`numeric-r05`: a number by the first of four rules that has a hit, the last hit of it (R05 5), and R05 4.2's marker.

1. `boxed`: `\boxed{number}`; 2. `hash`: `#### number`; 3. `phrase`: answer, result, total or profit, then `is` or `=`,
then a number; 4. `last`: the last number of the text, a fallback and no marker.

A number is Round 04's `[-+]?\d[\d,]*(\.\d+)?` with ASCII digits. What the clause leaves open is read here once and
frozen (docs/evaluators-numeric.md lists it): a dollar sign may stand before the number; a box holds nothing else;
`####` is exactly four; the phrase keeps to one line and one sentence, with at most 80 characters between the word and
`is` or `=`, and the number next to those.
This module doesn't know how an output stopped, and so not whether it was complete.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator

from harness.evaluate.number import NUMBER_R04, plain_number
from harness.records.evaluation import NumericExtraction, NumericFound, NumericMissing, NumericRule

_NUMBER = r"(?P<number>[-+]?\d[\d,]*+(?:\.\d++)?)"
_DOLLAR = r"[ \t]*+(?:\\?\$[ \t]*+)?"
_FLAGS = re.ASCII | re.IGNORECASE

BOXED_R05 = re.compile(rf"\\boxed[ \t]*+\{{{_DOLLAR}{_NUMBER}[ \t]*+\}}", re.ASCII)
HASH_R05 = re.compile(rf"(?<!#)####(?!#){_DOLLAR}{_NUMBER}", re.ASCII)
LINK_R05 = re.compile(rf"(?:\bis\b|(?<![<>!])=)[ \t]*+:?[ \t]*+\**+{_DOLLAR}{_NUMBER}", _FLAGS)
WORD_R05 = re.compile(r"\b(?:answer|result|total|profit)\b", _FLAGS)
WINDOW_R05 = 80
# The clause's "...": nothing between the word and `is`/`=` may end a line or a sentence.
_STOP = re.compile(r"[\r\n。！？；]|[.!?;](?=\s)")
_LONGEST_WORD = len("answer")

_BOX = re.compile(r"\\boxed[ \t]*+\{")
_BRACE = re.compile(r"\\[\\{}]|[{}]")
_HASH = re.compile(r"(?<!#)####(?!#)")


def numeric_r05(text: str) -> NumericExtraction:
    """The number of a text by clause 5's order; the span is the number's, in code points. Never raises."""
    steps = (("boxed", BOXED_R05.finditer(text)), ("hash", HASH_R05.finditer(text)), ("phrase", _phrases(text)))
    for method, hits in steps:
        if found := last_hit(hits):
            start, end = found.span("number")
            return NumericFound(
                rule="numeric-r05",
                method=method,
                value=plain_number(found["number"]),
                marker=True,
                start=start,
                end=end,
            )
    return last_number(text, rule="numeric-r05")


def final_marker_r05(text: str) -> bool:
    r"""R05 4.2, math: does an explicit `\boxed{}`, `####` or final-answer phrase occur in the text?

    A closed box and exactly four `#` count whatever they hold, a number or none: the task terminal and the evaluable
    account are two accounts. A box that never closes isn't `\boxed{}`: the answer was still being written. The phrase
    counts with a number only, since "the total is found by" ends nothing.
    """
    return _HASH.search(text) is not None or _closed_box(text) or last_hit(_phrases(text)) is not None


def last_number(text: str, *, rule: NumericRule) -> NumericExtraction:
    """The last number of a text, as a fallback: method `last`, no marker (R05 5, 4; R08 6.2)."""
    found = last_hit(NUMBER_R04.finditer(text))
    if found is None:
        return NumericMissing(rule=rule)
    value = plain_number(found[0])
    return NumericFound(rule=rule, method="last", value=value, marker=False, start=found.start(), end=found.end())


def last_hit(hits: Iterable[re.Match[str]]) -> re.Match[str] | None:
    """The last of some matches, none of the others kept."""
    kept = deque(hits, maxlen=1)
    return kept[0] if kept else None


def _phrases(text: str) -> Iterator[re.Match[str]]:
    return (link for link in LINK_R05.finditer(text) if _word_before(text, link.start()))


def _word_before(text: str, end: int) -> bool:
    """Does one of the four words end at most WINDOW_R05 before `end`, in the same line and sentence?"""
    start = max(0, end - WINDOW_R05 - _LONGEST_WORD)
    # The pattern sees the letter before `start`, so half a word is none.
    words = [word.end() for word in WORD_R05.finditer(text, start, end) if word.end() >= end - WINDOW_R05]
    return bool(words) and _STOP.search(text, words[-1], end) is None


def _closed_box(text: str) -> bool:
    """One pass over the braces: is any that belongs to a box closed?"""
    boxes = {box.end() - 1 for box in _BOX.finditer(text)}
    opened: list[bool] = []
    for brace in _BRACE.finditer(text):
        if brace[0] == "{":
            opened.append(brace.start() in boxes)
        elif brace[0] == "}" and opened and opened.pop():
            return True
    return False
