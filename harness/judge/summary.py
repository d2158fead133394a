"""What a whole file came to: counts with their denominators, in a few lines for a person. Error lines are in none.

An infrastructure failure is no verdict: it has a count of its own and is in no denominator.
"""

from collections import Counter

from harness.judge.code import CodeLine
from harness.judge.lines import ErrorLine
from harness.judge.numeric import NumericLine


class Summary:
    """Counts of the lines that came out."""

    def __init__(self, rule: str) -> None:
        self.errors = 0
        self.judged = 0
        self._rule = rule
        self._exact = 0
        self._strict = 0
        self._found = 0
        self._outcomes: Counter[str] = Counter()
        self._given = 0

    @property
    def lines(self) -> int:
        """Lines that came out."""
        return self.errors + self.judged

    @property
    def infrastructure(self) -> int:
        """Programs without a verdict."""
        return self._outcomes["infrastructure"]

    @property
    def whole(self) -> bool:
        """Was every line judged?"""
        return self.errors == 0 and self.infrastructure == 0

    def add(self, line: NumericLine | CodeLine | ErrorLine) -> None:
        """Count one line."""
        if isinstance(line, ErrorLine):
            self.errors += 1
            return
        self.judged += 1
        if isinstance(line, NumericLine):
            self._found += line.method is not None
            self._exact += line.exact
            self._strict += line.strict
        else:
            self._outcomes[line.outcome] += 1
            self._given += line.extraction.rule == "given"

    def numeric(self) -> str:
        """One line on numbers."""
        n = self.judged
        return (
            f"{self._rule}: number found {self._found}/{n}, exact {self._exact}/{n}, strict {self._strict}/{n}; "
            f"{self.errors} error lines of {self.lines}"
        )

    def code(self) -> str:
        """One line on programs: passed of those with a verdict, then every other outcome that occurred."""
        verdicts = self.judged - self.infrastructure
        others = sorted(name for name in self._outcomes if name not in ("passed", "infrastructure"))
        parts = [f"{name} {self._outcomes[name]}/{verdicts}" for name in ("passed", *others)]
        return (
            f"{self._rule} ({self._given} programs given as they are): {', '.join(parts)}; "
            f"{self.infrastructure} without a verdict (infrastructure), {self.errors} error lines of {self.lines}"
        )
