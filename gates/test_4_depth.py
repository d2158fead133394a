"""A trace is what it says: the right tokens, every stage and gate, hooks that change nothing, sums that close."""

import pytest

from harness.checks.depth import (
    edge_trace,
    embedding_identity,
    forward_contract,
    generation_join,
    hooks_change_nothing,
    scale_identity,
    stages_and_gates,
    target_tokens,
)
from harness.plugin.session import Judged


@pytest.mark.gate("forward_contract", forward_contract)
def test_effective_forward_is_the_contract(judged: Judged) -> None:
    """R05 depth 7.1: prompt only, use_cache=false, no cache came back; kernels and precision as read back."""
    assert not judged.differences, judged.message


@pytest.mark.gate("target_tokens", target_tokens)
def test_target_is_the_sources_own_tokens(judged: Judged) -> None:
    """R05 depth 7.2: tokens wholly inside the source's characters, the same IDs in every cell, the ends counted."""
    assert not judged.differences, judged.message


@pytest.mark.gate("stages_and_gates", stages_and_gates)
def test_cell_has_every_stage_and_gate(judged: Judged) -> None:
    """R05 depth 7.1: layers + 2 stages, a gate a MoE layer, over target and full input without padding."""
    assert not judged.differences, judged.message


@pytest.mark.gate("hooks_change_nothing", hooks_change_nothing)
def test_logits_are_the_same_without_the_hooks(judged: Judged) -> None:
    """R05 depth 7.1: two forwards, one without hooks and one with them: every logit byte-equal."""
    assert not judged.differences, judged.message


@pytest.mark.gate("embedding_identity", embedding_identity)
def test_embedding_rows_are_exact(judged: Judged) -> None:
    """R05 depth 8: a lookup by token ID, so every target row is byte-exact on every edge."""
    assert not judged.differences, judged.message


@pytest.mark.gate("edge_trace", edge_trace)
def test_edge_agrees_with_its_two_cells(judged: Judged) -> None:
    """R05 depth 8 and 9: cosine, relative L2, exact rows; ordered and set-exact routes, total variation."""
    assert not judged.differences, judged.message


@pytest.mark.gate("scale_identity", scale_identity)
def test_route_decisions_are_the_product(judged: Judged) -> None:
    """R05 depth 7.3: target tokens x conditions x gates x top-k."""
    assert not judged.differences, judged.message


@pytest.mark.gate("generation_join", generation_join)
def test_trace_joins_its_generation_run(judged: Judged) -> None:
    """R05 depth: checkpoint, source text, condition and prompt hash are the generation run's."""
    assert not judged.differences, judged.message
