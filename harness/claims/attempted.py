"""What a write-up says of how often the run was tried, against the attempts that are on record."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from harness.claims.view import RunView
from harness.journal.attempts_file import attempt_rows, beginning, chained, lines_for

_TRIED = r"(?:attempt|try)"
_THIS = r"(?:the |this )?(?:whole |entire )?(?:protocol|experiment|study|grid|registered run|formal run)"
_ONLY = re.compile(
    rf"\b(?:only|single|sole|one) {_TRIED}\b(?! of)|\bno (?:other|further|earlier|previous|failed) {_TRIED}s?\b"
    rf"|\bran (?:{_THIS}|it) (?:exactly |only |just )?once\b"
    rf"|\b{_THIS} was (?:run|executed) (?:exactly |only |just )?once\b"
    r"|只(?:运行|跑|试|尝试)(?:了|过)?一(?:次|遍)|仅(?:运行|跑|试|尝试)(?:了|过)?一(?:次|遍)|唯一(?:的)?一?次(?:运行|尝试)"
    r"|没有(?:其他|其它|失败)的?(?:尝试|运行)",
    re.IGNORECASE,
)
_FIRST = re.compile(
    rf"\b(?:first|1st) {_TRIED}\b|\b(?:on|at|in) the first run\b|一次(?:运行|性)?(?:即|就|便)?(?:通过|成功)"
    r"|(?:首次|第一次)(?:运行|尝试)",
    re.IGNORECASE,
)
_OF = re.compile(rf"\b{_TRIED} (\d{{1,6}}) ?(?:/|of|out of) ?(\d{{1,6}})\b", re.IGNORECASE)
_COUNT = re.compile(
    rf"(?<![\w./])(\d{{1,6}}) (?:formal |recorded )?{_TRIED}s\b|(?<![\w./])(\d{{1,6}}) ?次(?:正式)?尝试", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Tried:
    """The run is attempt `number` of `of` on record; 0 of 0 where it isn't on record."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.of} on record" if self.of else "no attempts on record here"


def tried(view: RunView) -> Tried:
    """By the attempts file beside the run, else by the lines that the run keeps. JournalError where they are broken."""
    entries = chained(lines_for(view.folder.path), "attempts.jsonl")
    begun, rows = beginning(entries, view.audit.run_id), attempt_rows(entries)
    numbers = [row.number for row in rows]
    return Tried(1 + numbers.index(begun.number), len(rows)) if begun else Tried(0, 0)


def overstated(text: str, on_record: Tried) -> Iterator[tuple[int, int]]:
    """[start, end) of what a sentence says of attempts that isn't on record."""
    alone, first = on_record.of == 1, on_record.number == 1
    for pattern, holds in ((_ONLY, alone), (_FIRST, first)):
        yield from () if holds else (match.span() for match in pattern.finditer(text))
    for match in _OF.finditer(text):
        if (int(match[1]), int(match[2])) != (on_record.number, on_record.of):
            yield match.span()
    for match in _COUNT.finditer(text):
        if int(match[1] or match[2]) != on_record.of:
            yield match.span()
