"""`numeric-v1`: the harness's own best reading of the final number of a text, for new protocols.

1. The last box, `####` or answer tag that states one number, whichever stands last: `boxed`, `hash`, `tag`, or
   `open_box` where the box never closes.
2. The last answer phrase: `phrase`. It goes before 1 only where it comes later and a retraction (`wait`,
   `correction`, 更正) stands between.
3. In the last sentence with a number, what result, total, profit, sum or difference `is`, or what stands after the last
   `=`: `statement`.
4. The last number that is no label: `last`. 5. The last label: `last_label`.

Only boxes that close, `####`, tags and answer phrases are markers. A marker that says that there is no answer ("no
solution") ends the search: missing. The value is exact: a decimal without rounding, or a reduced fraction. Time and
memory are linear in the text. This module doesn't know the question, the gold number or how the output stopped.
"""

import re
from array import array

from harness.evaluate.numeric.fold import Folded, fold
from harness.evaluate.numeric.marks import Mark, last_box, last_hash, last_phrase, last_tag
from harness.evaluate.numeric.place import SENTENCE_END, is_label, is_time_adjunct
from harness.evaluate.numeric.reading import leading_value
from harness.evaluate.numeric.tokens import TOKEN, Token, token_of
from harness.records.evaluation import NumericExtraction, NumericFound, NumericMissing

_RETRACTION = re.compile(
    r"\b(?:wait|correction|corrected|mistake|wrong|oops|sorry|actually|instead)\b|更正|不对|错了|应该是", re.IGNORECASE
)
_STATEMENT = re.compile(
    r"\b(?:result|total|profit|sum|difference)\b[^\n=]{0,60}?(?:\bis\b|=)|=", re.IGNORECASE | re.ASCII
)
_CLAUSE = re.compile(r"[,;，；]|\bso\b")
_SENTENCE_REACH = 2000


def numeric_v1(text: str) -> NumericExtraction:
    """The final number of a text; the span is that of the number with its sign, in code points. Never raises."""
    folded = fold(text)
    mark = _mark(folded.text)
    if mark is None:
        return _unmarked(folded)
    if mark.number is None:
        return NumericMissing(rule="numeric-v1")
    return _found(folded, mark.number, method=mark.method, marker=mark.explicit)


def _mark(text: str) -> Mark | None:
    explicit = [mark for mark in (last_box(text), last_hash(text), last_tag(text)) if mark is not None]
    phrase = last_phrase(text)
    if not explicit:
        return phrase
    last = max(explicit, key=lambda mark: mark.start)
    if phrase and phrase.start > last.end and _RETRACTION.search(text, last.end, phrase.end):
        return phrase
    return last


def _unmarked(folded: Folded) -> NumericExtraction:
    text = folded.text
    starts = array("Q", (match.start() for match in TOKEN.finditer(text)))
    label: Token | None = None
    for index in range(len(starts) - 1, -1, -1):
        token = _token_at(text, starts[index])
        if token.value is None:
            continue
        if not is_label(text, token) and not (index and _qualifies(text, token, starts[index - 1])):
            return _last(folded, token)
        label = label or token
    if label is None:
        return NumericMissing(rule="numeric-v1")
    return _found(folded, label, method="last_label", marker=False)


def _token_at(text: str, start: int) -> Token:
    match = TOKEN.match(text, start)
    if match is None:
        raise RuntimeError(f"no number at {start}, where one was found before")
    return token_of(text, match)


def _qualifies(text: str, token: Token, start_before: int) -> bool:
    """`40 dollars in 3 days`: a span of time after a number of the same sentence."""
    if not is_time_adjunct(text, token):
        return False
    before = _token_at(text, start_before)
    return not is_label(text, before) and SENTENCE_END.search(text, before.end, token.start) is None


def _last(folded: Folded, token: Token) -> NumericExtraction:
    stated = _statement(folded.text, token)
    if stated is None:
        return _found(folded, token, method="last", marker=False)
    return _found(folded, stated, method="statement", marker=False)


def _statement(text: str, token: Token) -> Token | None:
    """The number of the last statement in the token's sentence, if no clause begins between the two."""
    reach = max(0, token.start - _SENTENCE_REACH)
    breaks = [stop.end() for stop in SENTENCE_END.finditer(text, reach, token.start)]
    statements = list(_STATEMENT.finditer(text, breaks[-1] if breaks else reach, token.start))
    stated = leading_value(text, statements[-1].end(), token.end) if statements else None
    return None if stated is None or _CLAUSE.search(text, stated.end, token.start) else stated


def _found(folded: Folded, token: Token, *, method: str, marker: bool) -> NumericFound:
    if token.value is None:
        raise RuntimeError("a token without a value is no number")
    start, end = folded.span(token.start, token.end)
    return NumericFound(rule="numeric-v1", method=method, value=token.value, marker=marker, start=start, end=end)
