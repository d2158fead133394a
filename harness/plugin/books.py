"""The session's books: collected = reported, no error, no nameless case, no dead worker; else the exit code isn't 0."""

from collections import Counter
from dataclasses import dataclass, field

import pytest

_reports: list[pytest.TestReport] = []


def note(report: pytest.TestReport) -> None:
    """Count a report. The hook has no config, so the reports of the process are kept here until they are taken."""
    _reports.append(report)


def take() -> list[pytest.TestReport]:
    """The reports since the last taking."""
    taken = list(_reports)
    _reports.clear()
    return taken


@dataclass(slots=True)
class Books:
    """What was collected, what was reported, what went wrong apart from verdicts."""

    collected: set[str] = field(default_factory=set)
    outcomes: dict[str, str] = field(default_factory=dict)
    properties: dict[str, dict[str, object]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    _cases: Counter[str] = field(default_factory=Counter)

    def collected_here(self, ids: list[str]) -> None:
        """The items of this process."""
        self._collect(ids)

    def collected_by_worker(self, ids: list[str]) -> None:
        """The items of a worker; all workers collect the same."""
        self._collect(ids)

    def worker_died(self, worker: str, why: str) -> None:
        """A worker that went down is an open entry, whatever was rescheduled."""
        self.errors.append(f"a worker died: {worker} {why}"[:300])

    def read(self, reports: list[pytest.TestReport]) -> None:
        """Enter reports: a case is reported by its call, or by the setup that kept it from being called."""
        for report in reports:
            if not report.nodeid:
                self.errors.append("a report without a name")
                continue
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

    def _collect(self, ids: list[str]) -> None:
        if any(not one for one in ids):
            self.errors.append("a collected case without a name")
        self.collected |= set(ids)
