"""Collecting gates: a gate test is parametrised by the rows that protocols register for it. Loads no torch.

A gate is written once; which rows it judges, in which tier and out of how many, every protocol says.
"""

from collections.abc import Container
from dataclasses import dataclass
from typing import get_args

import pytest

from harness.evidence import Check
from harness.plugin.options import TIERS
from harness.plugin.reports import clean
from harness.plugin.session import GateSession, gate_session
from harness.protocols.grids import RowKey, gate_rows
from harness.protocols.load import LoadedProtocol
from harness.records.protocol import Gate, Tier
from harness.records.reaches import Reach
from harness.snapshots.acceptance import FROZEN
from harness.snapshots.store import is_frozen

ORDER = get_args(Reach)


@dataclass(frozen=True, slots=True)
class GateRow:
    """One item: a row of a gate of a protocol in a tier, and the check that judges it."""

    protocol: str
    tier: Tier
    gate: Gate
    row: RowKey
    check: Check

    @property
    def sort_key(self) -> int:
        """Where the gate's evidence stands in the order of a run."""
        return ORDER.index(self.gate.reach)


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Give a gate test its rows; an item without a gate is left as it is and refused by `require_one_tier`."""
    marker = metafunc.definition.get_closest_marker("gate")
    if marker is None or "gate_row" not in metafunc.fixturenames:
        return
    gate_id, check = marker.args
    params = [
        pytest.param(row, id=f"{row.protocol}-{row.tier}-{row.row.name}", marks=getattr(pytest.mark, row.tier))
        for row in rows_of(metafunc.config, gate_id, check)
    ]
    metafunc.parametrize("gate_row", params, indirect=True)


def rows_of(config: pytest.Config, gate_id: str, check: Check) -> list[GateRow]:
    """All rows of a gate over the session's protocols and tiers."""
    session = gate_session(config)
    tiers = TIERS if session.tier is None else (session.tier,)
    return [
        GateRow(loaded.protocol.id, tier, gate, row, check)
        for loaded in session.protocols
        for gate in loaded.protocol.gates
        if gate.id == gate_id
        for tier in tiers
        for row in tier_rows(loaded, gate, tier, session.domains(loaded), left_out=left_out_of(session, loaded, gate))
    ]


def left_out_of(session: GateSession, loaded: LoadedProtocol, gate: Gate) -> Container[str]:
    """The reaches that are left out, asked for only where the gate's could be: it reads this machine's packages."""
    return session.left_out(loaded) if gate.reach in FROZEN else ()


def tier_rows(
    loaded: LoadedProtocol, gate: Gate, tier: Tier, domains: tuple[str, ...], *, left_out: Container[str] = ()
) -> tuple[RowKey, ...]:
    """A gate's rows in a tier; none where it doesn't apply, or where there is nothing frozen to compare with.

    `left_out`: reaches whose frozen results can't be this session's; its head and its audit record say so.
    """
    at = gate.tiers.get(tier)
    if at is None or (gate.reach in FROZEN and not is_frozen(loaded.results)):
        return ()
    if gate.reach in left_out:
        return ()
    return gate_rows(loaded.protocol, loaded.profile, gate, loaded.units(at.grid, domains))


def drop_unregistered(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take out gates that no protocol of the session registers in its tier: they have no row to judge."""
    rowless = [item for item in items if _is_gate(item) and _row_of(item) is None]
    if rowless:
        config.hook.pytest_deselected(items=rowless)
        items[:] = [item for item in items if item not in set(rowless)]


def require_plain_names(items: list[pytest.Item]) -> None:
    """A name that UTF-8 can't hold reaches no worker, no JUnit file and no book."""
    for item in items:
        name = clean(item.nodeid)
        if any("\ud800" <= letter <= "\udfff" for letter in item.nodeid):
            raise pytest.UsageError(
                f"{name}: expected a name in Unicode text, found a lone surrogate. Rename the test."
            )


def require_one_tier(items: list[pytest.Item]) -> None:
    """An item with no tier, or with two, would be judged by nobody or twice: a collection error."""
    for item in items:
        marks = [name for name in TIERS if item.get_closest_marker(name) is not None]
        if len(marks) != 1:
            raise pytest.UsageError(
                f"{item.nodeid}: expected exactly one of the markers {', '.join(TIERS)}, found {marks or 'none'}."
            )


def give_up(config: pytest.Config, items: list[pytest.Item], reason: str) -> None:
    """On a worker: collect nothing and report why. An exception would end the worker without its reason."""
    items.clear()
    report = pytest.CollectReport(nodeid="gates", outcome="failed", longrepr=reason, result=[])
    config.hook.pytest_collectreport(report=report)


def order(items: list[pytest.Item]) -> None:
    """Protocols in the session's order; within one, gates in the order in which their evidence is made."""
    ranks = {item: _rank(item) for item in items}
    items.sort(key=lambda item: ranks[item])


def _rank(item: pytest.Item) -> tuple[int, int]:
    row = _row_of(item)
    if row is None:
        return (0, 0)
    names = [loaded.protocol.id for loaded in gate_session(item.config).protocols]
    return (names.index(row.protocol), row.sort_key)


def _is_gate(item: pytest.Item) -> bool:
    # A test that carries the marker and judges no row is no gate: it needs a tier marker like any other item.
    return item.get_closest_marker("gate") is not None and "gate_row" in getattr(item, "fixturenames", ())


def _row_of(item: pytest.Item) -> GateRow | None:
    row = item.callspec.params.get("gate_row") if hasattr(item, "callspec") else None
    return row if isinstance(row, GateRow) else None
