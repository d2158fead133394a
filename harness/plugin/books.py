"""The session's books: collected = reported, no error, no nameless case, no dead worker; else the exit code isn't 0."""

from collections import Counter
from dataclasses import dataclass, field

import pytest


@dataclass(slots=True)
class Books:
    """What was collected, what was reported, what went wrong apart from verdicts."""

    collected: set[str] = field(default_factory=set)
    outcomes: dict[str, str] = field(default_factory=dict)
    properties: dict[str, dict[str, object]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    _cases: Counter[str] = field(default_factory=Counter)

    def collect(self, ids: list[str]) -> None:
        """The items of this process or of a worker; all workers collect the same."""
        if any(not one for one in ids):
            self.errors.append("a collected case without a name")
        self.collected |= set(ids)

    def worker_died(self, worker: str, why: str) -> None:
        """A worker that went down is an open entry, whatever was rescheduled."""
        self.errors.append(f"a worker died: {worker} {why}"[:300])

    def report(self, report: pytest.TestReport) -> None:
        """Enter a report: a case is reported by its call, or by the setup that kept it from being called."""
        if not report.nodeid:
            self.errors.append("a report without a name")
            return
        if report.when != "call" and report.failed:
            self.errors.append(f"error in {report.when} of {report.nodeid}")
        if report.when == "call" or (report.when == "setup" and not report.passed):
            self._cases[report.nodeid] += 1
            self.outcomes[report.nodeid] = report.outcome
            self.properties[report.nodeid] = dict(report.user_properties)

    def problems(self) -> tuple[str, ...]:
        """Why the books don't close; empty where they do."""
        found = list(self.errors)
        missing = sorted(self.collected - set(self._cases))
        strangers = sorted(set(self._cases) - self.collected)
        twice = sorted(name for name, count in self._cases.items() if count > 1)
        for what, names in (
            ("never reported", missing),
            ("reported but not collected", strangers),
            ("reported twice", twice),
        ):
            if names:
                found.append(f"{len(names)} of {len(self.collected)} cases {what}, first {names[0]}")
        if not self.collected:
            found.append("nothing was collected")
        return tuple(found)


class Recorder:
    """Hooks that see every report of a session, on the controller. They get no config, so they hold its books."""

    def __init__(self, books: Books) -> None:
        self._books = books

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count it."""
        self._books.report(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that can't be collected is an open entry, also where the rest ran."""
        if not report.passed:
            self._books.errors.append(f"{report.outcome} at collection: {report.nodeid or 'the session'}")

    def pytest_internalerror(self, excrepr: object) -> None:
        """An error of pytest or of a plugin, here or on a worker, is an open entry, whatever the exit code."""
        self._books.errors.append(f"internal error: {str(excrepr).splitlines()[-1]}"[:300])
