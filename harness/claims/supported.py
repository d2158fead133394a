"""Every figure that a run supports, with what it is about: from claims, statistics, gates, and its grids' sizes."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from typing import Any

import msgspec

from harness.claims.facets import APART, Facets, OwnNames, facets_of, facets_of_source, own_names
from harness.claims.own import OwnCells, own_cells
from harness.claims.quoted import Quoted
from harness.claims.view import RunView
from harness.protocols.grids import denominators
from harness.records.claims import Claims

# What was made a second time, and where it is said to be so many of the run's own cells.
AGAIN, OF_ALL = {"replay", "placement", "determinism"}, "of the run's cells"
_DESIGN = re.compile(r"(?:draws?|seeds?|conditions?|tokens?)$", re.IGNORECASE)
NAMES = ("domain", "condition", "measure", "edge")


@dataclass(frozen=True, slots=True)
class Fact:
    """`count` of `of`, where it stands, and what it is about."""

    count: int
    of: int
    where: str
    facets: Facets

    def is_(self, values: tuple[Decimal, ...]) -> bool:
        """Whether a quoted numerator and denominator are these."""
        return list(values) == [self.count, self.of]

    def shows(self, one: Quoted) -> bool:
        """Whether a quoted fraction or percentage is this one."""
        if one.form == "percentage":
            return bool(self.of) and _rounds(Decimal(100 * self.count) / self.of, one.values[0])
        return one.form == "fraction" and self.is_(one.values)


@dataclass(slots=True)
class Supported:
    """What may be quoted. `own`: the run's cells; `again`: what was made a second time over all of them, and whole;
    `sizes`: numbers of the protocol's grids; `numbers`: means and sums of the statistics.
    """

    own: OwnCells
    again: frozenset[str]
    facts: list[Fact] = field(default_factory=list)
    sizes: set[int] = field(default_factory=set)
    numbers: set[Decimal] = field(default_factory=set)
    _about: dict[tuple[Facets, int], list[Fact]] = field(default_factory=dict)

    def about(self, said: Facets) -> list[Fact]:
        """The facts that may be quoted in a clause about `said`; found once for all clauses about the same."""
        known = said, len(self.facts)
        if known not in self._about:
            self._about[known] = [fact for fact in self.facts if fact.facets.covers(said)]
        return self._about[known]


def supported(view: RunView, claims: Claims) -> Supported:
    """Everything that a judged run gives a write-up to quote."""
    found, names = Supported(own_cells(view), frozenset(_again(view))), own_names(view.loaded.protocol)
    if view.folder.file("statistics.json").exists():
        _walk(msgspec.to_builtins(view.statistics), (), (), found, names)
    for gate in view.audit.gates:
        found.facts.append(Fact(gate.passed, gate.registered, f"audit.{gate.id}", facets_of([gate.id], names)))
    _claimed(view, claims, found)
    found.sizes |= set(_sizes(view))
    return found


def _again(view: RunView) -> Iterator[str]:
    """What a whole gate has over a grid that is no smaller than the run's own."""
    protocol = view.loaded.protocol
    for gate in protocol.gates:
        account = view.gates.get(gate.id)
        scope = next((one for tier, one in gate.tiers.items() if tier == view.audit.tier), None)
        if account is not None and scope is not None and account.passed == account.registered:
            cells = denominators(protocol, scope.grid, len(view.spec.domains)).cells
            yield from facets_of([gate.id], own_names(protocol)).apart & AGAIN if cells >= view.sizes.cells else ()


def _claimed(view: RunView, claims: Claims, found: Supported) -> None:
    """The figures of claims; what was made apart may also be said to be so many of the run's own cells."""
    names = own_names(view.loaded.protocol)
    for claim in claims.permitted:
        for one in claim.figures:
            facets = facets_of_source(one.source, names)
            facets |= facets_of(["conditioned"] if claim.heading == "diagnostics" else [], names)
            found.facts.append(Fact(one.count, one.of, one.source, facets))
            if one.source == "replay.cells":
                found.facts.append(Fact(one.count, view.sizes.cells, f"{one.source} {OF_ALL}", facets))


def _walk(value: Any, path: tuple[str, ...], groups: tuple[str, ...], found: Supported, names: OwnNames) -> None:
    """Counts, sums and means of a record, by the fields and groups that they stand in."""
    if isinstance(value, dict):
        groups += tuple(str(value[name]) for name in NAMES if isinstance(value.get(name), str) and value[name])
        if {"count", "of"} <= {*value} and isinstance(value["count"], int):
            facets = facets_of(path, names, groups)
            found.facts.append(Fact(value["count"], value["of"], ".".join((*groups, *path)), facets))
        if {"sum", "n"} <= {*value} and value["n"]:
            found.numbers |= {Decimal(value["sum"]) / Decimal(value["n"]), Decimal(value["sum"])}
        for name, inner in value.items():
            _walk(inner, (*path, name), groups, found, names)
    elif isinstance(value, list | tuple):
        for inner in value:
            _walk(inner, path, groups, found, names)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        found.numbers.add(Decimal(repr(value)))


def _sizes(view: RunView) -> Iterator[int]:
    """Numbers that describe the design: no outcome is among them."""
    protocol, domains = view.loaded.protocol, len(view.spec.domains)
    for name, grid in protocol.grids.items():
        sizes = denominators(protocol, name, domains)
        yield from (sizes.sources, sizes.units, sizes.cells, sizes.edges, grid.per_domain, grid.max_new_tokens)
        yield len(grid.replicates)
    yield from (len(protocol.conditions), len(protocol.edges), domains, len(protocol.placements))
    yield from _integers(msgspec.to_builtins(view.loaded.profile.shape))
    yield from _integers(msgspec.to_builtins(protocol.boundaries))
    yield from (view.run.baseline.max_new_tokens,) if hasattr(view.run, "baseline") else ()


def _integers(value: Any) -> Iterable[int]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    if isinstance(value, int) and not isinstance(value, bool):
        yield value
    for one in inner:
        yield from _integers(one)


def holds(known: Supported, one: Quoted, said: Facets, *, alone: bool) -> bool:
    """Whether a quoted figure is one of the run's, given what its clause is about.

    `alone`: no other number stands in the clause. Then a number beside an outcome's words is that outcome's count, and
    the size of the grid isn't one.
    """
    facts = known.about(said)
    if one.form in ("fraction", "percentage"):
        return any(fact.shows(one) for fact in facts)
    value = one.values[0]
    if one.form == "all":
        return any(value == fact.count == fact.of for fact in facts) or (
            not said.apart | said.measure and value in known.sizes
        )
    if one.form == "decimal":
        return any(_rounds(number, value) for number in known.numbers)
    counts = any(value == fact.count for fact in facts)
    if said.apart or (alone and said.measure):
        design = value in known.sizes and _DESIGN.search(one.words) is not None
        return counts or (not alone and (design or any(value == fact.of for fact in facts)))
    return counts or value in known.sizes or value in known.numbers or any(value == fact.of for fact in facts)


def sized(one: Quoted, own: set[int]) -> bool:
    """Whether a number of cells, of which nothing more is said than that they are there, is one of the run's own."""
    return one.values[-1] in own and one.values[0] <= one.values[-1]


def _rounds(exact: Decimal, shown: Decimal) -> bool:
    exponent = shown.as_tuple().exponent
    places = Decimal(1).scaleb(exponent if isinstance(exponent, int) else 0)
    return shown in {exact.quantize(places, rule) for rule in (ROUND_HALF_EVEN, ROUND_HALF_UP)}


def nearest(known: Supported, said: Facets, *, places: bool = False) -> str:
    """What the run has to say on the matter, two figures at most, for the message of one that it doesn't support.

    In words, or with `places` by where the figures stand in the run's records.
    """
    facts = (
        sorted(known.about(said), key=lambda fact: (_other(fact, said), len(fact.where), fact.where)) if said else []
    )
    named = [(fact, fact.where if places else _in_words(fact)) for fact in facts]
    shown = list(dict.fromkeys(f"{fact.count}/{fact.of} ({name})" for fact, name in named))[:2]
    names = sorted(said.apart & {*APART})
    return " or ".join(shown) or f"a figure of this run{' on ' + ', '.join(names) if names else ''}, which has none"


def _other(fact: Fact, said: Facets) -> int:
    """How many domains, conditions and other matters the figure or the text names alone."""
    pairs = (
        (fact.facets.apart, said.apart),
        (fact.facets.domain, said.domain),
        (fact.facets.condition, said.condition),
    )
    return sum(len(one ^ other) for one, other in pairs)


def _in_words(fact: Fact) -> str:
    facets = fact.facets
    listed = [*sorted(facets.apart), *sorted(facets.measure), *sorted(facets.domain), *sorted(facets.condition)]
    words = [name if name in facets.condition else name.replace("_", " ") for name in listed]
    return ", ".join(words) or fact.where.rsplit(".", 1)[-1].replace("_", " ")
