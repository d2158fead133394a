"""Shares in words: more than half, most, nearly all, none, 大多数, 超过一半, and whether a count is such a share."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

NEARLY = Fraction(9, 10)
VAST, HALF = Fraction(3, 4), Fraction(1, 2)
ABOUT = Fraction(1, 20)  # a half, a third: within a twentieth

_NOUNS = (
    r"(?:cells?|outputs?|programs?|answers?|problems?|tasks?|questions?|sequences?|generations?|results?|sources?|them)"
)
_MADE = r"(?:cells?|outputs?|programs?|answers?|generations?)"
_OF = r"(?: of)?(?: the| these| all| our)?"
_SOME = rf"{_OF} (?:[a-z]{{2,14}} )?{_NOUNS}\b"
Test = Callable[[Fraction], bool]


@dataclass(frozen=True, slots=True)
class Share:
    """A share at [start, end) of a clause; `denies`: it says few or none, and its own "no" denies nothing."""

    start: int
    end: int
    denies: bool
    holds: Test


def _about(value: Fraction) -> Test:
    return lambda share: abs(share - value) <= ABOUT


_ENDED = r"(?:were|are|ended|passed)\b"
_FORMS: tuple[tuple[re.Pattern[str], bool, Test], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), denies, test)
    for pattern, denies, test in (
        (
            r"\b(?:nearly|almost|virtually|practically) (?:all|every|each)\b|几乎(?:全部|所有|都|每)",
            False,
            lambda share: share >= NEARLY,
        ),
        (
            r"\b(?:vast|great|overwhelming|large) majority\b|绝大多数|绝大部分",
            False,
            lambda share: share >= VAST,
        ),
        (
            r"\b(?:less|fewer) than (?:one |a )?half\b|\ba minority\b|\bunder half\b|不到一半|不足一半|少于一半|少数",
            True,
            lambda share: share < HALF,
        ),
        (
            r"\b(?:more|greater) than (?:one |a )?half\b|\b(?:over|above) half\b|\bmajority\b"
            r"|超过一半|过半|一半以上|半数以上|大多数|多数|大部分",
            False,
            lambda share: share > HALF,
        ),
        (rf"(?<!\bat )(?<!\bthe )\bmost(?:{_SOME}| {_ENDED})", False, lambda share: share > HALF),
        (r"\bthree[- ](?:quarters|fourths)\b|四分之三", False, _about(Fraction(3, 4))),
        (r"\btwo[- ]thirds\b|三分之二", False, _about(Fraction(2, 3))),
        (r"\b(?:a|one)[- ]third\b|三分之一", False, _about(Fraction(1, 3))),
        (r"\b(?:a|one)[- ](?:quarter|fourth)\b|四分之一", False, _about(Fraction(1, 4))),
        (rf"\b(?:one |a |exactly )?half(?:{_SOME}| {_ENDED})|一半", False, _about(HALF)),
        (
            rf"\bnone(?: of (?:the |these |our )?(?:[a-z]{{2,14}} )?{_NOUNS})?\b"
            rf"|\b(?:no|not an?|not one) (?:single )?(?:[a-z]{{2,14}} )?{_MADE}\b"
            r"|没有(?:一|任何)\s?(?:个|条|道)?\s?(?:格|输出|程序|答案|题)|无一",
            True,
            lambda share: share == 0,
        ),
    )
)


def shares(clause: str) -> Iterator[Share]:
    """Every share in words of a clause, none twice."""
    taken = [False] * len(clause)
    for pattern, denies, test in _FORMS:
        for match in pattern.finditer(clause):
            if not any(taken[match.start() : match.end()]):
                taken[match.start() : match.end()] = [True] * (match.end() - match.start())
                yield Share(match.start(), match.end(), denies, test)
