"""Registered patterns of prohibited conclusions: what a pattern may be, and whether a sentence matches one.

A pattern is a row of parts, each found after the end of the one before. No part repeats without a bound or repeats
what already repeats, and parts are searched one after another, so that a sentence of n characters costs O(parts x n).
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from harness.errors import ProtocolError
from harness.records.claims import Pattern, ProhibitedRule

LONGEST_PART, MOST_PARTS, WIDEST = 300, 5, 60
TODO = "Write the part as alternatives without * or +, and split a long one into parts."
_REPEATS = re.compile(r"(?<!\\)(?:[*+]|\{\d*,\}|\{\d+(?:,(\d+))?\})")
_GROUP_REPEATS = re.compile(r"\)(?:[*+{])")
_REFERENCES = re.compile(r"\\[1-9]|\(\?(?!:)")


def check_pattern(where: str, pattern: Pattern) -> None:
    """ProtocolError for a part that doesn't compile, that may repeat without bound, or that refers backwards."""
    if not 1 <= len(pattern.parts) <= MOST_PARTS:
        raise _bad(where, f"1 to {MOST_PARTS} parts", str(len(pattern.parts)))
    for part in pattern.parts:
        if not part or len(part) > LONGEST_PART:
            raise _bad(where, f"a part of 1 to {LONGEST_PART} characters", str(len(part)))
        unbounded = [one[0] for one in _REPEATS.finditer(part) if not one[1] or int(one[1]) > WIDEST]
        if unbounded or _GROUP_REPEATS.search(part) or _REFERENCES.search(part):
            raise _bad(where, "bounded repetition of single characters, no reference and no look-around", part)
        try:
            compiled = re.compile(part, re.IGNORECASE)
        except re.error as error:
            raise _bad(where, "a regular expression", f"{part}: {error}") from error
        if compiled.search("") is not None:
            raise _bad(where, "a part that doesn't match the empty text", part)


def check_sentences(where: str, rule: ProhibitedRule) -> None:
    """ProtocolError where the rule misses a sentence that it must match, or matches one that it must not."""
    if not rule.must_match or not rule.must_not_match or {one.language for one in rule.patterns} != {"en", "zh"}:
        raise _bad(where, "patterns and sentences, Chinese and English", "a part of them")
    for sentence in rule.must_match:
        if found(rule, sentence) is None:
            raise _bad(f"{where}: must_match", "a match", sentence)
    for sentence in rule.must_not_match:
        if (match := found(rule, sentence)) is not None:
            raise _bad(f"{where}: must_not_match", "no match", f"{sentence}: {sentence[slice(*match)]}")
    for pattern in rule.patterns:
        one = ProhibitedRule(id=rule.id, patterns=(pattern,), must_match=(), must_not_match=())
        if not any(found(one, sentence) for sentence in rule.must_match):
            raise _bad(where, "a sentence in must_match for every pattern", " ".join(pattern.parts))


def found(rule: ProhibitedRule, sentence: str) -> tuple[int, int] | None:
    """Where the sentence states the conclusion, [start, end) over all parts of the first pattern that matches."""
    return next((match for pattern in rule.patterns if (match := _in_order(pattern, sentence)) is not None), None)


def _in_order(pattern: Pattern, sentence: str) -> tuple[int, int] | None:
    spans = list(_spans(pattern, sentence))
    return (spans[0][0], spans[-1][1]) if len(spans) == len(pattern.parts) else None


def _spans(pattern: Pattern, sentence: str) -> Iterator[tuple[int, int]]:
    at = 0
    for part in pattern.parts:
        match = _compiled(part).search(sentence, at)
        if match is None:
            return
        yield match.span()
        at = match.end()


@lru_cache(maxsize=2048)
def _compiled(part: str) -> re.Pattern[str]:
    return re.compile(part, re.IGNORECASE)


def _bad(where: str, expected: str, found_: str) -> ProtocolError:
    return ProtocolError(where, expected=expected, found=found_, todo=TODO)
