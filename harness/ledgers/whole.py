"""A ledger is exactly its grid: every planned row once, each rank of a domain one source. Or a refusal.

Every denominator of statistics by task or by source is settled by these two.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.compare import TODO
from harness.errors import JournalError
from harness.records.sources import Domain

Identity = tuple[str, int, str, str]
NAMED = 3


@dataclass(frozen=True, slots=True)
class Source:
    """A source of the grid: its domain, its rank within it and its ID."""

    domain: Domain
    index: int
    source_id: str


def require_rows(where: str, found: Sequence[Identity], *, planned: Sequence[Identity]) -> None:
    """Exactly the planned rows, each once: a lost one is never a smaller denominator, a doubled one no substitute."""
    times = Counter(found)
    lists = {
        "missing": sorted(set(planned) - set(times)),
        "foreign": sorted(set(times) - set(planned)),
        "doubled": sorted(identity for identity, often in times.items() if often > 1),
    }
    if any(lists.values()):
        faults = "; ".join(f"{len(rows)} {name}, {_first(rows)}" for name, rows in lists.items() if rows)
        raise JournalError(
            where, expected=f"{len(planned)} rows, each once", found=f"{len(found)}: {faults}", todo=TODO
        )


def _first(rows: Sequence[Identity]) -> str:
    named = ", ".join(f"{domain} {index} {replicate} {item}" for domain, index, replicate, item in rows[:NAMED])
    return f"{named} ..." if len(rows) > NAMED else named


def sources_of(rows: Iterable[tuple[str, int, str]], domains: Iterable[Domain]) -> tuple[Source, ...]:
    """The sources of rows (domain, index, source ID), by domain and rank.

    JournalError unless each rank is one source in all its rows, and no source has two ranks.
    """
    found: dict[tuple[str, int], set[str]] = {}
    for domain_name, index, source_id in rows:
        found.setdefault((domain_name, index), set()).add(source_id)
    owners = Counter(name for names in found.values() for name in names)
    for (domain_name, index), names in found.items():
        if len(names) > 1 or any(owners[name] > 1 for name in names):
            where = f"ledger: source {index} of {domain_name}"
            raise JournalError(where, expected="one ID of its own", found=str(sorted(names)), todo=TODO)
    return tuple(
        Source(domain=domain, index=index, source_id=next(iter(found[name, index])))
        for domain in domains
        for name, index in sorted(found)
        if name == domain.name
    )
