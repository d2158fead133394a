r"""The final-answer markers of a folded text, for `numeric-v1`: boxes, `####`, answer tags and answer phrases.

Of each kind the last one that states a number (or states that there is none) is returned. A box or marker that states
neither is passed over. Each marker is read up to the next of its kind at most, so the whole is linear. This module
doesn't know how the kinds rank.
"""

import re
from dataclasses import dataclass

from harness.evaluate.numeric.reading import leading_value, sentence_value, sole_value, states_no_answer, stretch
from harness.evaluate.numeric.tokens import Token

# `\b` written to a file as an escape becomes a backspace: the box of such a text is read too.
_BOX = re.compile(r"(?:\\f?boxed|\\fbox|\x08oxed|(?<![A-Za-z\\])boxed)[ \t]*+(?P<brace>\{)?")
_BRACE = re.compile(r"\\[\\{}]|[{}]")
_LINE_OR_MATH_END = re.compile(r"\n|\$\$|(?<!\\)\$(?![0-9])|\\[\])]")
_HASH = re.compile(r"(?<!#)####(?!#)")
_TAG = re.compile(r"<answer>(?P<inside>[^<]*+)</answer>", re.IGNORECASE)
_PHRASE = re.compile(
    r"\banswers?\b[^\n:=.!?;。]{0,60}?(?:\b(?P<link>is|are|was|equals)\b|=|(?P<colon>:))"
    r"|\bfinal[ ]answer\b[*_]*+(?=[ \t]*+[\n$0-9])"
    r"|答案[^\n。！？:=，]{0,12}?(?:[是为=]|等于|(?P<wide>:))"
    r"|(?<![回解问作])答[ ]?(?P<brief>:)",
    re.IGNORECASE | re.ASCII,
)
_NOT = re.compile(r"\bnot\b|n't\b|\bwould\b|不|没", re.IGNORECASE)
_NOT_AFTER = re.compile(r"[\s*:]*+(?:not\b|不)", re.IGNORECASE)
_THAT = re.compile(r"[ ]that\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Mark:
    """A marker at `start`: the number that it states, or None where it states that there is no answer."""

    method: str
    start: int
    end: int
    number: Token | None
    explicit: bool


def last_box(text: str) -> Mark | None:
    """The last box that states one number. One that never closes is read to the end of its line or formula.

    Only a box that holds no other box is read; an unclosed one only as the last of all, and it is no marker: what it
    holds may be cut off.
    """
    boxes = list(_BOX.finditer(text))
    limits = [box.start() for box in boxes[1:]] + [len(text)]
    last = len(boxes) - 1
    for index in range(last, -1, -1):
        if mark := _box(text, boxes[index], limits[index], is_last=index == last):
            return mark
    return None


def last_hash(text: str) -> Mark | None:
    """The last `####` (exactly four) that a number follows, on its line or on the next one."""
    return _last("hash", text, _HASH)


def last_tag(text: str) -> Mark | None:
    """The last `<answer>...</answer>` that states a number."""
    for tag in reversed(list(_TAG.finditer(text))):
        start, end = tag.span("inside")
        number = sole_value(text, start, end) or leading_value(text, start, end)
        if number is not None or states_no_answer(text, start, end):
            return Mark("tag", tag.start(), tag.end(), number, explicit=True)
    return None


def last_phrase(text: str) -> Mark | None:
    """The last answer phrase (`answer is`, `Answer:`, 答案是, 答：) that a number follows.

    After a colon or `is that` the number may stand within the sentence: `Answer: She has 42 apples.`
    """
    return _last("phrase", text, _PHRASE)


def _last(method: str, text: str, pattern: re.Pattern[str]) -> Mark | None:
    end = len(text)
    for hit in reversed(list(pattern.finditer(text))):
        if mark := _mark(method, text, hit, end):
            return mark
        end = hit.start()
    return None


def _mark(method: str, text: str, hit: re.Match[str], end: int) -> Mark | None:
    if _NOT.search(hit[0]) or _NOT_AFTER.match(text, hit.end(), end):
        return None
    number = leading_value(text, hit.end(), end)
    if number is None and states_no_answer(text, *stretch(text, hit.end(), end)):
        return Mark(method, hit.start(), hit.end(), None, explicit=True)
    if number is None and method == "phrase" and _may_be_apart(text, hit):
        number = sentence_value(text, hit.end(), _line_end(text, hit.end(), end))
    return Mark(method, hit.start(), hit.end(), number, explicit=True) if number else None


def _may_be_apart(text: str, hit: re.Match[str]) -> bool:
    groups = hit.groupdict()
    return any(groups[name] for name in ("colon", "wide", "brief")) or _THAT.match(text, hit.end()) is not None


def _line_end(text: str, start: int, end: int) -> int:
    stop = text.find("\n", start, end)
    return end if stop < 0 else stop


def _box(text: str, box: re.Match[str], limit: int, *, is_last: bool) -> Mark | None:
    start = box.end()
    if box["brace"] is None:
        number = leading_value(text, start, limit) if text[box.start()] == "\\" else None
        return Mark("boxed", box.start(), number.end, number, explicit=True) if number else None
    close = _closing(text, start, limit)
    if close is not None:
        number = sole_value(text, start, close)
        if number is not None or states_no_answer(text, start, close):
            return Mark("boxed", box.start(), close + 1, number, explicit=True)
        return None
    return _open_box(text, box, limit) if is_last else None


def _open_box(text: str, box: re.Match[str], limit: int) -> Mark | None:
    stop = _LINE_OR_MATH_END.search(text, box.end(), limit)
    end = stop.start() if stop else limit
    number = sole_value(text, box.end(), end) or leading_value(text, box.end(), end)
    return Mark("open_box", box.start(), end, number, explicit=False) if number else None


def _closing(text: str, start: int, limit: int) -> int | None:
    depth = 1
    for brace in _BRACE.finditer(text, start, limit):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if depth == 0:
            return brace.start()
    return None
