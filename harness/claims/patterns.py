"""Registered patterns of prohibited conclusions: what a pattern may be, and whether a sentence matches one.

A pattern is a row of parts, each found after the end of the one before. No part repeats without a bound or repeats
what already repeats, and parts are searched one after another: a sentence of n characters costs O(parts x n log n).
"""

import re
from bisect import bisect_left
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
    """Where the sentence first states the conclusion; None where it doesn't."""
    return next(matches(rule, sentence), None)


def matches(rule: ProhibitedRule, sentence: str) -> Iterator[tuple[int, int]]:
    """Every place where the sentence states the conclusion, [start, end): one for each beginning of each pattern.

    A place that is denied mustn't hide one that isn't, so the first alone would not do.
    """
    for pattern in rule.patterns:
        spans = [[match.span() for match in _compiled(part).finditer(sentence)] for part in pattern.parts]
        starts = [[start for start, _ in listed] for listed in spans]
        for start, end in spans[0] if all(spans) else ():
            last = _end(end, spans[1:], starts[1:])
            if last is None:
                break  # a later beginning has no end either
            yield start, last


def _end(end: int, spans: list[list[tuple[int, int]]], starts: list[list[int]]) -> int | None:
    """The end of the last part, each part being the next one that begins where the one before has ended."""
    for listed, begins in zip(spans, starts, strict=True):
        at = bisect_left(begins, end)
        if at == len(listed):
            return None
        end = listed[at][1]
    return end


@lru_cache(maxsize=2048)
def _compiled(part: str) -> re.Pattern[str]:
    return re.compile(part, re.IGNORECASE)


def _bad(where: str, expected: str, found_: str) -> ProtocolError:
    return ProtocolError(where, expected=expected, found=found_, todo=TODO)
