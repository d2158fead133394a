"""Work beside the forward: a few stages at a time, each cut into tasks for a small pool of threads.

The forward waits in `submit` while `in_flight` stages are unfinished, so memory holds those and no more. Results keep
the order of submission and of each stage's tasks, whatever the threads did. A task's error is raised in the thread that
submits or finishes, as itself, and ends the rest.
"""

import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any

IN_FLIGHT = 2
_MOST_THREADS = 16

Task = Callable[[], Any]


def thread_count() -> int:
    """Processors that this process may use, 16 at most. No result depends on it."""
    return min(_MOST_THREADS, len(os.sched_getaffinity(0)))


class Work:
    """A pool for one trace. Leaving it waits for tasks that run and drops those that don't."""

    def __init__(self, in_flight: int = IN_FLIGHT) -> None:
        self.threads = thread_count()
        self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="trace")
        self._in_flight = in_flight
        self._running: deque[tuple[str, list[Future[Any]]]] = deque()
        self._done: list[tuple[str, list[Any]]] = []

    def __enter__(self) -> "Work":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def submit(self, name: str, tasks: Sequence[Task]) -> None:
        """Start a stage's tasks; first wait until fewer than `in_flight` stages are unfinished."""
        while len(self._running) >= self._in_flight:
            self._collect()
        self._running.append((name, [self._pool.submit(task) for task in tasks]))

    def finish(self) -> list[tuple[str, list[Any]]]:
        """Wait for all; each stage's name and its tasks' results."""
        while self._running:
            self._collect()
        return self._done

    def _collect(self) -> None:
        name, futures = self._running.popleft()
        self._done.append((name, [future.result() for future in futures]))
