"""Live progress: source, step, tokens/s, ETA. A sink that prints nothing is the default; timing is never evidence."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

Sink = Callable[[str], None]
INTERVAL_S = 0.2


def quiet(line: str) -> None:
    """The sink of a run without a terminal."""
    del line


@dataclass(slots=True)
class Progress:
    """Counts steps over a run of `units` batches of `rows` rows, at most `budget` steps each."""

    sink: Sink
    label: str
    units: int
    rows: int
    budget: int
    done: int = 0
    _steps: int = 0
    _unit: str = ""
    _started: float = field(default_factory=time.monotonic)
    _shown: float = 0.0

    def start_unit(self, name: str) -> None:
        """A unit begins."""
        self._unit = name
        self._show(0)

    def step(self, step: int) -> None:
        """`step` tokens of each row have been chosen (from 1)."""
        self._steps += 1
        if time.monotonic() - self._shown >= INTERVAL_S:
            self._show(step)

    def end_unit(self) -> None:
        """A unit has landed."""
        self.done += 1
        self._show(0)

    def close(self) -> None:
        """Erase the line."""
        self.sink("")

    def _show(self, step: int) -> None:
        self._shown = time.monotonic()
        elapsed = max(self._shown - self._started, 1e-9)
        rate = self._steps * self.rows / elapsed
        left = (self.units - self.done) * self.budget - step
        eta = f"{left * self.rows / rate:.0f} s at most" if rate > 0 else "unknown"
        self.sink(
            f"{self.label}: unit {min(self.done + 1, self.units)}/{self.units} {self._unit} "
            f"step {step}/{self.budget}, {rate:.0f} tokens/s, ETA {eta}"
        )
