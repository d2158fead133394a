"""Faults in the trace itself, planted while it runs: exactly which gates are red over the runs that were made so.

Where a fault is in every run alike, only a gate that holds the trace against something else can see it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.errors import ModelError
from harness.run import tracing
from harness.trace import forward

from .damage import Case
from .generation_depth import (
    EVERYWHERE,
    NOT_REPLAYED,
    Change,
    Red,
    Tracer,
    Units,
    cache_back,
    cosines_halved,
    drawn,
    flipped_bit,
    hook_that_returns,
    moved,
    open_tracer,
    other_line,
    other_route_facts,
    padding_counted,
    permuted_experts,
    plant,
    red_gates,
    statistics_by_an_ulp,
    swapped_edges,
    uncrossed,
    with_targets,
)
from .planting import covers, spelled
from .planting_completion import frozen
from .planting_depth import OTHER, in_baseline_files

ALL, UNITS = ("*",), ("{0}", "{1}")
X = ("*:s0_x",)
ON_X, ON_EOS = ("*:system_x", "*:x_s0"), ("*:system_eos", "*:bos_s0", "*:x_s0", "*:period_s0")
# Every edge but the one between two official prompts.
NOT_SYSTEM_EOS = tuple(f"*:{name}" for name in ("system_bos", "system_x", "system_period", "*_s0", "*_s1"))
ROW_OF_X = 4  # in the protocol's order of conditions


def no_logits(patch: pytest.MonkeyPatch) -> None:
    """The digest of the logits is taken over none of them, so it is the same whatever the hooks do."""
    patch.setattr(forward, "_hash_logits", lambda logits, mask: ("0" * 64, (0, logits.shape[-1])))


def unedited_rows(patch: pytest.MonkeyPatch) -> None:
    """Every row of a level is fed the level's official prompt; the records say otherwise."""
    whole = tracing.padded

    def fed(batch: Any, pad_id: int) -> Any:
        ids, mask = whole(batch, pad_id)
        return tuple(ids[row % 2] for row in range(len(ids))), mask

    patch.setattr(tracing, "padded", fed)


@dataclass(frozen=True)
class Bug:
    """A fault of the code: what is patched or given otherwise, in which runs, and the red rows of every red gate."""

    name: str
    red: dict[str, tuple[str, ...]]
    patch: Callable[[pytest.MonkeyPatch], None] = lambda patch: None
    given: Change = lambda batch: batch
    runs: tuple[str, ...] = EVERYWHERE


BUGS = (
    Bug(
        "a hook that returns its output doubled",
        {"hooks_change_nothing": UNITS},
        lambda patch: hook_that_returns(patch, lambda output: output * 2),
    ),
    Bug(
        "a hook of the embedding that returns zeros",
        {"hooks_change_nothing": UNITS},
        lambda patch: hook_that_returns(patch, lambda output: output * 0, place="embedding"),
    ),
    Bug(
        "a hook of a gate that returns half the weights",
        {"hooks_change_nothing": UNITS},
        lambda patch: hook_that_returns(patch, lambda out: (out[0], out[1] / 2, out[2]), kind="gate_hook"),
    ),
    Bug("no token's logits are hashed", {"hooks_change_nothing": UNITS}, no_logits),
    Bug(
        "a boundary that no edit reaches",
        {"embedding_identity": NOT_SYSTEM_EOS},
        unedited_rows,
    ),
    Bug(
        "a hook that returns its output as it is",
        {},
        lambda patch: hook_that_returns(patch, lambda output: output),
    ),
    Bug(
        "a flipped bit of the embedding",
        {"embedding_identity": ON_EOS},
        lambda patch: flipped_bit(patch, "embedding", 50),
    ),
    Bug(
        "a flipped bit of the embedding, not in the replay",
        {
            "embedding_identity": ON_EOS,
            "replay_sources": UNITS,
            "replay_hidden": ("embedding.full:*:s0_eos", "embedding.target:*:s0_eos"),
        },
        lambda patch: flipped_bit(patch, "embedding", 50),
        runs=NOT_REPLAYED,
    ),
    Bug(
        "a flipped bit of a layer, not in the replay",
        {"replay_sources": UNITS, "replay_hidden": ("layer_02.full:*:s0_eos", "layer_02.target:*:s0_eos")},
        lambda patch: flipped_bit(patch, "layer_02", 50),
        runs=NOT_REPLAYED,
    ),
    Bug(
        "padding counted in, the target after it",
        {"stages_and_gates": X, "target_tokens": X, "embedding_identity": ON_X, "hooks_change_nothing": UNITS},
        lambda patch: padding_counted(patch, ROW_OF_X),
        with_targets(moved(1), (ROW_OF_X,)),
    ),
    Bug(
        "padding counted in, the target where it was",
        {"stages_and_gates": X, "embedding_identity": ON_X, "hooks_change_nothing": UNITS},
        lambda patch: padding_counted(patch, ROW_OF_X),
    ),
    Bug("every target one token on", {"target_tokens": ALL}, given=with_targets(moved(1))),
    Bug(
        "one target one token on",
        {"target_tokens": X, "embedding_identity": ON_X},
        given=with_targets(moved(1), (ROW_OF_X,)),
    ),
    Bug("crossing tokens not counted", {"target_tokens": ALL}, given=with_targets(uncrossed)),
    Bug(
        "a stage that isn't looked at",
        {"stages_and_gates": ALL, "edge_trace": ALL, "replay_hidden": ("layer_00.*",)},
        lambda patch: other_line(patch, "stages", lambda stages: (stages[0], *stages[2:])),
    ),
    Bug(
        "a gate that isn't looked at",
        {
            "stages_and_gates": ALL,
            "edge_trace": ALL,
            "scale_identity": UNITS,
            "replay_routes": ("layer_02.*",),
            "replay_weights": ("layer_02.*",),
        },
        lambda patch: other_line(patch, "gates", lambda gates: (gates[0], *gates[2:])),
    ),
    Bug("cosines that are no mean", {"edge_trace": ALL}, cosines_halved),
    Bug("edges computed from right to left", {"edge_trace": ALL}, swapped_edges),
    Bug(
        "edges computed from right to left, not in the replay",
        {"edge_trace": ALL, "replay_sources": UNITS},
        swapped_edges,
        runs=NOT_REPLAYED,
    ),
    Bug("a cache that came back", {"forward_contract": ("whole",)}, cache_back),
    Bug("a draw", {"rng_untouched": UNITS}, drawn),
    Bug(
        "statistics by one ulp, not in the replay",
        {"replay_sources": UNITS},
        statistics_by_an_ulp,
        runs=NOT_REPLAYED,
    ),
    Bug(
        "every token counted twice",
        {"stages_and_gates": ALL, "scale_identity": UNITS},
        lambda patch: other_route_facts(patch, lambda facts: {"load": tuple(2 * one for one in facts.load)}),
    ),
    *(
        Bug(
            f"another {field}, not in the replay",
            {"replay_sources": UNITS, gate: ALL},
            lambda patch, field=field: other_route_facts(patch, lambda facts: {field: getattr(facts, field)[::-1]}),
            runs=NOT_REPLAYED,
        )
        for gate, field in (("replay_routes", "routes_sha256"), ("replay_weights", "weights_sha256"))
    ),
)


@pytest.fixture(scope="module")
def tracer(depth_run: Path) -> Iterator[Tracer]:
    """The nano model in this process. Who alters its weights puts them back."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_ROOT", str(depth_run.parents[2]))
        made = open_tracer(depth_run)
    yield made
    made.engine.close()


def exactly(case: Case, red: Red, expected: dict[str, tuple[str, ...]]) -> None:
    """Red are these gates and no other, on these rows and no other."""
    assert set(red) == set(expected), red
    named = {str(at): case.source(at) for at in (0, 1)}
    for gate, rows in expected.items():
        patterns = [spelled(row, named) for row in rows]
        assert [name for name in red[gate] if not any(covers(row, name) for row in patterns)] == []
        assert [row for row in patterns if not any(covers(row, name) for name in red[gate])] == []


def test_an_honest_trace_is_the_runs_own(depth_case: Case, tracer: Tracer) -> None:
    """Made in this process without a fault, it is the run's, so that what a control finds is its fault."""
    plant(depth_case, tracer.units(), NOT_REPLAYED)
    assert red_gates(depth_case) == {}


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_of_the_trace(depth_case: Case, tracer: Tracer, bug: Bug) -> None:
    """Planted in the named runs with all digests renewed."""
    with pytest.MonkeyPatch.context() as patch:
        bug.patch(patch)
        units = tracer.units(bug.given)
    plant(depth_case, units, bug.runs)
    exactly(depth_case, red_gates(depth_case), bug.red)


FROM_LAYER_3 = ("layer_03.*", "layer_04.*", "layer_05.*")


@pytest.mark.parametrize("whole", [False, True], ids=["in the gate alone", "whole"])
def test_a_permuted_expert(depth_case: Case, tracer: Tracer, whole: bool) -> None:
    """The replay, made with the registered weights, names every digest from that layer on."""
    with permuted_experts(tracer.model, weights_too=whole):
        units = tracer.units()
    plant(depth_case, units, NOT_REPLAYED)
    red = red_gates(depth_case)
    assert set(red) == {"replay_sources", "replay_hidden", "replay_routes", "replay_weights"}
    assert {name.split(":")[0].split(".")[0] for gate in red for name in red[gate] if "." in name} <= {
        "layer_03",
        "layer_04",
        "layer_05",
        "final_norm",
    }
    assert len([name for name in red["replay_routes"] if name.startswith("layer_03")]) == 32


def test_a_permuted_expert_of_every_run(depth_case: Case, tracer: Tracer) -> None:
    """Nothing of the run contradicts it; the frozen tensor digests do, and they alone."""
    frozen(lambda case: None)(depth_case)
    with permuted_experts(tracer.model, weights_too=False):
        units = tracer.units()
    plant(depth_case, units)
    exactly(depth_case, red_gates(depth_case, frozen=True), {"frozen_tensors": UNITS})


def test_a_permuted_expert_of_every_run_before_any_was_frozen(depth_case: Case, tracer: Tracer) -> None:
    """Known limit: a model that is another one in memory, in every process alike, is found only by frozen digests."""
    with permuted_experts(tracer.model, weights_too=False):
        units = tracer.units()
    plant(depth_case, units)
    assert red_gates(depth_case) == {}


def last_content(units: Units, at: int) -> Units:
    """The published audit's own defect: one source's content digest stands for all."""
    named = units[at].content_token_ids_sha256
    return [msgspec.structs.replace(one, content_token_ids_sha256=named) for one in units]


def test_the_content_of_the_last_source(depth_case: Case, tracer: Tracer) -> None:
    """In the run's order the last source is mathematics; in the replay's, by its other hash seed, it is code."""
    units = tracer.units()
    plant(depth_case, last_content(units, 1), NOT_REPLAYED)
    plant(depth_case, last_content(units, 0), ("replay",))
    exactly(depth_case, red_gates(depth_case), {"target_tokens": ("{0}:*",), "replay_sources": UNITS})


def test_the_content_of_the_last_source_in_one_order(depth_case: Case, tracer: Tracer) -> None:
    """Where both processes went through the sources in one order, their own tokens still tell."""
    plant(depth_case, last_content(tracer.units(), 1))
    exactly(depth_case, red_gates(depth_case), {"target_tokens": ("{0}:*",)})


def test_another_baseline_of_every_run(depth_case: Case, tracer: Tracer) -> None:
    """Smoke, run and replay alike are joined to a run that the protocol doesn't name."""
    in_baseline_files(depth_case, lambda baseline: baseline.update(run_sha256=OTHER))
    plant(depth_case, tracer.units())
    exactly(depth_case, red_gates(depth_case), {"generation_join": ALL})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda stages: (*stages[:3], *stages[4:]), "one output of each of 11 stages and gates"),
        (lambda stages: (*stages[:4], *stages[3:]), "one output of each of 15 stages and gates"),
    ],
    ids=["a stage of an MoE layer less", "a stage twice"],
)
def test_a_line_that_the_forward_does_not_follow(tracer: Tracer, change: Any, words: str) -> None:
    """A stage that is looked at twice, or a gate without its layer's stage, stops the trace."""
    with pytest.MonkeyPatch.context() as patch:
        other_line(patch, "stages", change)
        with pytest.raises(ModelError, match=words):
            tracer.units()
