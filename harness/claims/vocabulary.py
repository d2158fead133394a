"""The closed vocabulary of each kind of protocol: sources of figures, and words that a template may take from it.

A kind is one entry of `KINDS` and a module with its SOURCES; a study's follow from its conditions and domains.
"""

from collections.abc import Mapping

from harness.claims import behavior, completion, depth, sampling, study, task
from harness.claims.source import Source, common_sources
from harness.protocols.load import LoadedProtocol
from harness.records.protocol import (
    BaselinedProtocol,
    BehaviorProtocol,
    CompletionProtocol,
    DepthProtocol,
    GraphTaskProtocol,
    LoopTaskProtocol,
    Protocol,
    SamplingProtocol,
    StudyProtocol,
    TaskCrnProtocol,
    Tier,
)

KINDS: Mapping[type[Protocol], Mapping[str, Source]] = {
    BehaviorProtocol: behavior.SOURCES,
    CompletionProtocol: completion.SOURCES,
    SamplingProtocol: sampling.SOURCES,
    DepthProtocol: depth.SOURCES,
    LoopTaskProtocol: task.SOURCES,
    GraphTaskProtocol: task.SOURCES,
}


def sources_of(loaded: LoadedProtocol) -> dict[str, Source]:
    """Every source by name that a figure of this protocol may be fed from."""
    if isinstance(loaded.protocol, StudyProtocol):
        return common_sources(loaded) | study.study_sources(loaded.protocol)
    return common_sources(loaded) | dict(KINDS.get(type(loaded.protocol), {}))


def bands_of(loaded: LoadedProtocol) -> tuple[str, ...]:
    """The names under which the protocol lets an interval be printed."""
    return (loaded.protocol.bootstrap.name,) if isinstance(loaded.protocol, TaskCrnProtocol) else ()


def words_of(loaded: LoadedProtocol, tier: Tier, domains: tuple[str, ...], result_name: str) -> dict[str, str]:
    """What a template may name without a figure: the result, and what the protocol says of its grids.

    `result_name` is the run's, which for a port goes on with "(port)".
    """
    protocol = loaded.protocol
    grid, replay = protocol.grids[protocol.tier_grids[tier]], protocol.grids[protocol.independent_replay.grid]
    words = {
        "result_name": result_name,
        "budget": str(grid.max_new_tokens),
        "sources": str(grid.per_domain * len(domains)),
        "conditions": str(len(protocol.conditions)),
        "edges": str(len(protocol.edges)),
        "replicates": str(len(grid.replicates)),
        "replay_replicates": ", ".join(replay.replicates),
        "domains": ", ".join(domains),
    }
    if isinstance(protocol, TaskCrnProtocol):
        words["band_name"] = protocol.bootstrap.name
    if isinstance(protocol, BaselinedProtocol):
        words["baseline"] = protocol.baseline.protocol
    return words
