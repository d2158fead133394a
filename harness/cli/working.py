"""What a verb shows on stderr while it works: a spinner with the step in a terminal, elsewhere a line now and then.

Times decide what is shown and nothing else.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text

from harness.cli.show import is_terminal, tell, visible

INTERVAL_S = 10.0

Note = Callable[[str], None]


@contextmanager
def working(verb: str, clock: Callable[[], float] = time.monotonic) -> Iterator[Note]:
    """Gives `note(step)`, which says what is being done. Nothing of it is on stdout, and nothing stays in a terminal.

    Without a terminal a step is a line only where none was said for ten seconds: a short verb says nothing.
    """
    if not is_terminal(sys.stderr):
        yield _now_and_then(verb, clock)
        return
    with Console(stderr=True).status(Text(verb)) as status:
        yield lambda step: status.update(Text(f"{verb}: {visible(step)}"))


def _now_and_then(verb: str, clock: Callable[[], float]) -> Note:
    said = clock()

    def note(step: str) -> None:
        nonlocal said
        if clock() - said >= INTERVAL_S:
            said = clock()
            tell(f"{verb}: {step}")

    return note
