"""SUPPORTED, REFUTED or NOT CHECKED: the one rule, over counts, and which of the first two a claim can ever be.

A claim is supported where every gate is whole and every figure reaches its threshold; it is refuted where one doesn't.
"""

from collections.abc import Iterator, Mapping, Sequence

from harness.claims.source import Source
from harness.protocols.grids import gate_rows
from harness.protocols.load import LoadedProtocol
from harness.records.claims import AtLeast, GateResult, PermittedRule, Status, Threshold, Whole
from harness.records.ledger import Count


def holds(threshold: Threshold, count: Count) -> bool:
    """Whether a count reaches its threshold."""
    if isinstance(threshold, Whole):
        return count.count == count.of > 0
    return count.count >= threshold.n if isinstance(threshold, AtLeast) else True


def status(*, judged: bool, gates: Sequence[GateResult], figures: Sequence[bool]) -> Status:
    """The state of a claim. `judged`: all of it was; `figures`: whether each reaches its threshold."""
    if not judged:
        return "NOT CHECKED"
    return "SUPPORTED" if all(gate.passed == gate.registered for gate in gates) and all(figures) else "REFUTED"


def reachable(loaded: LoadedProtocol, rule: PermittedRule, sources: Mapping[str, Source]) -> frozenset[Status]:
    """The states that a claim has over all counts within its denominators, and over all rows of its gates.

    A higher count never loses a threshold, so the best case is all counts at their denominators; from there each gate
    is tried with one row less and each figure at nothing, one at a time.
    """
    gates = [GateResult(id=name, passed=rows, registered=rows) for name, rows in _rows(loaded, rule)]
    planned = [sources[figure.source].planned(loaded, rule.tier, loaded.domains).of for figure in rule.figures]
    best = [holds(one.threshold, Count(count=of, of=of)) for one, of in zip(rule.figures, planned, strict=True)]
    least = [holds(one.threshold, Count(count=0, of=of)) for one, of in zip(rule.figures, planned, strict=True)]
    found = {status(judged=True, gates=gates, figures=best)}
    for at, gate in enumerate(gates):
        lost = GateResult(id=gate.id, passed=max(gate.registered - 1, 0), registered=gate.registered)
        found.add(status(judged=True, gates=[*gates[:at], lost, *gates[at + 1 :]], figures=best))
    for at, one in enumerate(least):
        found.add(status(judged=True, gates=gates, figures=[*best[:at], one, *best[at + 1 :]]))
    return frozenset(found)


def _rows(loaded: LoadedProtocol, rule: PermittedRule) -> Iterator[tuple[str, int]]:
    """Each gate of the claim, with its rows in the claim's tier."""
    for name in rule.gates:
        gate = next(one for one in loaded.protocol.gates if one.id == name)
        units = loaded.units(gate.tiers[rule.tier].grid, loaded.domains)
        yield name, len(gate_rows(loaded.protocol, loaded.profile, gate, units))
