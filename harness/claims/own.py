"""How many cells the run itself has: its whole grid, and each registered part of it under that part's own name."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from harness.claims.facets import Facets
from harness.claims.quoted import Quoted
from harness.claims.view import RunView
from harness.protocols.grids import denominators, grid_blocks

_EACH = r"(?:\b(?:each|every|per|a|one|in any)\s|每[个条]?\s?)"
_EACH_DOMAIN = re.compile(rf"{_EACH}(?:domain|域)", re.IGNORECASE)
_EACH_CONDITION = re.compile(rf"{_EACH}(?:condition|条件)", re.IGNORECASE)
_EACH_SOURCE = re.compile(rf"{_EACH}(?:source|batch|task|problem|来源|源|批)", re.IGNORECASE)
_EACH_REPLICATE = re.compile(rf"{_EACH}(?:seed|draw|tape|replicate|种子|带)", re.IGNORECASE)
_TIERS = {"smoke": "冒烟", "formal": "正式", "replay": "复跑|重放"}


@dataclass(frozen=True, slots=True)
class OwnCells:
    """`cells` of the run's grid, over `domains` x `conditions`, in `sources` and `replicates`; `named`: other grids and
    blocks of the protocol, each with what names it in a text. `counts`: how many sources and tapes there may be said
    to be: of any grid, of any number of domains.
    """

    cells: int
    domains: int
    conditions: int
    sources: int
    replicates: int
    named: tuple[tuple[re.Pattern[str], int], ...]
    counts: Mapping[str, frozenset[int]]

    def has(self, one: Quoted) -> bool:
        """Whether a number of sources or tapes, or what a share of them is of, is one that there is."""
        return one.form in ("percentage", "decimal") or one.values[-1] in self.counts[one.things]

    def within(self, text: str, said: Facets) -> set[int]:
        """The counts of cells that a text about `said` may give: of the run, and of the parts that it names."""
        domains, conditions = len(said.domain), len(said.condition)
        found = {self.cells} | {cells for pattern, cells in self.named if pattern.search(text)}
        by_domain, by_condition = self.cells // max(self.domains, 1), self.cells // max(self.conditions, 1)
        parts = (
            (domains, by_domain * domains),
            (conditions, by_condition * conditions),
            (domains and conditions, by_domain // max(self.conditions, 1) * domains * conditions),
            (_EACH_DOMAIN.search(text), by_domain),
            (_EACH_CONDITION.search(text), by_condition),
            (_EACH_SOURCE.search(text), self.cells // max(self.sources, 1)),
            (_EACH_REPLICATE.search(text) or said.tape, self.cells // max(self.replicates, 1)),
        )
        return found | {cells for is_named, cells in parts if is_named}


def own_cells(view: RunView) -> OwnCells:
    """The sizes of a run's grid and what names its parts."""
    protocol, sizes = view.loaded.protocol, view.sizes
    return OwnCells(
        cells=sizes.cells,
        domains=len(view.spec.domains),
        conditions=len(protocol.conditions),
        sources=sizes.sources,
        replicates=max(1, sizes.units // max(sizes.sources, 1)),
        named=tuple(_named(view)),
        counts={"sources": frozenset(_sources(view)), "tapes": frozenset(_tapes(view))},
    )


def _sources(view: RunView) -> Iterator[int]:
    """Sources of each grid and block, over one domain or more."""
    protocol = view.loaded.protocol
    for name, grid in protocol.grids.items():
        ranks = {grid.per_domain, *(len(block.indices) for block in grid_blocks(protocol, name))}
        yield from (size * domains for size in ranks for domains in range(1, len(view.loaded.domains) + 1))


def _tapes(view: RunView) -> Iterator[int]:
    """Tapes of each grid and block."""
    protocol = view.loaded.protocol
    for name, grid in protocol.grids.items():
        yield len(grid.replicates)
        yield from (len(block.replicates) for block in grid_blocks(protocol, name))


def _named(view: RunView) -> Iterator[tuple[re.Pattern[str], int]]:
    """The protocol's grids by their names and tiers, and the blocks of the run's own."""
    protocol, domains = view.loaded.protocol, len(view.spec.domains)
    for name in protocol.grids:
        cells = denominators(protocol, name, domains).cells
        words = [rf"\b{re.escape(part)}\b.{{0,12}}\bgrid\b" for part in {name, name.split("_")[0]}]
        for tier, grid in protocol.tier_grids.items():
            words += [rf"\b{tier} (?:grid|run|tier)\b|(?:{_TIERS[tier]}).{{0,2}}(?:网格|运行)"] if grid == name else []
        yield re.compile("|".join(words), re.IGNORECASE), cells
    for block in grid_blocks(protocol, view.spec.grid):
        cells = domains * len(block.indices) * len(block.replicates) * len(protocol.conditions)
        yield re.compile(rf"\b{block.role}\b", re.IGNORECASE), cells
