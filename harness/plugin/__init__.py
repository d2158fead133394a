"""The pytest plugin: hooks that delegate. Registered by the root conftest; it acts only on sessions over gates/.

Knows pytest and xdist; every judgement is `harness.checks`', every run `harness.run`'s.
"""

import warnings
from collections.abc import Generator
from typing import Any

import pytest

from harness.errors import HarnessError
from harness.plugin import collect, options, reports
from harness.plugin.session import Judged, gate_session, is_gate_session, open_session

__all__ = ["gate_row", "judged"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """The harness's options (DESIGN: tiers and options)."""
    options.add(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Refuse what a tier refuses, choose run folders and the JUnit file, before anything is collected."""
    open_session(config)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """What is under test, and what is unfrozen."""
    return gate_session(config).header() if is_gate_session(config) else []


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test item for each row of each gate that a protocol registers in the tier."""
    if is_gate_session(metafunc.config):
        collect.parametrize(metafunc)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Exactly one tier marker an item; protocols in order, gates in the order in which they need each other.

    First of all hooks: `-m` would deselect an item without a marker before anybody missed it.
    """
    if is_gate_session(config):
        collect.drop_unregistered(config, items)
        try:
            collect.require_plain_names(items)
            collect.require_one_tier(items)
        except pytest.UsageError as error:
            if not gate_session(config).is_worker:
                raise
            collect.give_up(config, items, str(error))
        collect.order(items)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Everything that can be refused without a model is refused here, as one clear error."""
    if is_gate_session(session.config):
        try:
            gate_session(session.config).start()
        except HarnessError as error:
            raise pytest.UsageError(str(error)) from error
        except OSError as error:
            raise pytest.UsageError(f"{error.filename or 'the run folder'}: {error.strerror or error}") from error


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """A worker judges the controller's runs."""
    if is_gate_session(node.config):
        node.workerinput["harness_runs"] = gate_session(node.config).plain()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: list[str]) -> None:
    """What a worker collected."""
    if is_gate_session(node.config):
        gate_session(node.config).books.collect(ids)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """A worker that died."""
    if is_gate_session(node.config) and error:
        gate_session(node.config).books.worker_died(str(getattr(node, "gateway", node)), str(error))


def pytest_collection_finish(session: pytest.Session) -> None:
    """What this process collected."""
    if is_gate_session(session.config):
        gate_session(session.config).books.collect([item.nodeid for item in session.items])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """No lone surrogate in any report; no skip in a formal or replay session."""
    report = yield
    if is_gate_session(item.config):
        reports.scrub(report)
        reports.refuse_skip(report, gate_session(item.config).tier)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a file: one that skips itself is a failure of a formal or replay session."""
    report = yield
    if is_gate_session(collector.config):
        reports.scrub(report)
        reports.refuse_skip(report, gate_session(collector.config).tier)
    return report


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    """Close the books; an open book is a failed session, whatever the rest says.

    After workers were stopped and JUnit was written, before the terminal's summary.
    """
    try:
        yield
    except Exception as error:  # another plugin's, or a full disk's: entered, so that the books still close
        if not is_gate_session(session.config):
            raise
        gate_session(session.config).books.errors.append(f"at the session's end: {type(error).__name__}: {error}")
    if is_gate_session(session.config):
        gate_session(session.config).finish(session, int(session.exitstatus))


@pytest.hookimpl(tryfirst=True)
def pytest_warning_recorded(warning_message: warnings.WarningMessage) -> None:
    """A warning travels from workers as a report does. The hook has no config: it acts in every session."""
    reports.scrub_warning(warning_message)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The account of each gate, and where the record is."""
    if is_gate_session(config):
        for line in gate_session(config).summary():
            terminalreporter.write_line(line)


@pytest.fixture
def gate_row(request: pytest.FixtureRequest) -> collect.GateRow:
    """The row that this item judges."""
    row: collect.GateRow = request.param
    return row


@pytest.fixture
def judged(request: pytest.FixtureRequest, gate_row: collect.GateRow) -> Judged:
    """The row's differences and the gate's fraction; properties of the JUnit case are recorded on the way."""
    return gate_session(request.config).judge(request, gate_row)
