"""Planted faults in the trace: each changes just what it should, or stops the trace with its reason."""

import dataclasses
from contextlib import contextmanager

import pytest
import torch

from harness.errors import DecodeError, ModelError
from harness.records.depth import TargetTokens
from harness.trace import capture
from harness.trace.forward import plain_forward, trace_batch

from .conftest import ROWS


@contextmanager
def hook(module, change):
    """A hook that replaces a module's output: what a trace's own must never do."""
    handle = module.register_forward_hook(lambda _module, _inputs, output: change(output))
    try:
        yield
    finally:
        handle.remove()


def hooked(model):
    """How many forward hooks each module has."""
    return {name: len(module._forward_hooks) for name, module in model.named_modules()}


def changed_stages(one, other):
    """Names of stages whose full digest differs in any row."""
    pairs = [pair for rows in zip(one.hidden, other.hidden, strict=True) for pair in zip(*rows, strict=True)]
    return {a.stage for a, b in pairs if a.full.sha256 != b.full.sha256}


def changed_gates(one, other):
    """Names of gates whose routes differ in any row."""
    pairs = [pair for rows in zip(one.gates, other.gates, strict=True) for pair in zip(*rows, strict=True)]
    return {a.gate for a, b in pairs if a.full.routes_sha256 != b.full.routes_sha256}


def test_a_hook_that_returns_its_output_is_seen(nano, rows, traced, monkeypatch):
    """Doubling a layer on its way through: the logits' digests differ, which is what the comparison is for."""
    honest = capture.Capture.stage_hook

    def doubling(self, place):
        inner = honest(self, place)

        def hooked(module, inputs, output):
            inner(module, inputs, output)
            return output * 2 if place.name == "layer_04" else None

        return hooked

    monkeypatch.setattr(capture.Capture, "stage_hook", doubling)
    assert rows.trace(nano).logits_sha256 != plain_forward(nano, rows.ids, rows.mask).logits_sha256


def test_a_permuted_expert_changes_the_routes(nano, rows, traced):
    """Two experts' rows swapped in one gate: the same weights under other names, there and nowhere before."""
    weight = nano.model.model.layers[3].mlp.gate.weight
    used = traced.gates[0][2].full.load
    heavy = sorted(range(32), key=lambda expert: used[expert])[-2:]
    kept = weight.detach().clone()
    with torch.no_grad():
        weight[heavy] = kept[heavy[::-1]]
    try:
        found = rows.trace(nano)
    finally:
        with torch.no_grad():
            weight.copy_(kept)
    assert changed_gates(traced, found) >= {"layer_03"}
    assert changed_gates(traced, found) & {"layer_01", "layer_02"} == set()
    assert [one[2].full.weight_statistics.mean for one in found.gates] == pytest.approx(
        [one[2].full.weight_statistics.mean for one in traced.gates], rel=1e-6
    )


def test_one_flipped_bit_changes_one_stage(nano, rows, traced, monkeypatch):
    """Of one number of one token, in what the trace reads: that stage in that cell, and no other digest."""
    honest = capture._hidden

    def flipped(fetched, name):
        matrix = honest(fetched, name)
        if name == "layer_02":
            matrix = dataclasses.replace(matrix, stored=matrix.stored.copy())
            matrix.stored.view("u4")[rows.targets[0].start, 5] ^= 1
        return matrix

    monkeypatch.setattr(capture, "_hidden", flipped)
    found = rows.trace(nano)
    assert changed_stages(traced, found) == {"layer_02"}
    assert [a == b for a, b in zip(found.hidden, traced.hidden, strict=True)] == [False] + [True] * (ROWS - 1)
    assert found.hidden[0][3].target.sha256 != traced.hidden[0][3].target.sha256
    assert (found.gates, found.logits_sha256) == (traced.gates, traced.logits_sha256)


def test_a_padding_token_counted_in_changes_the_full_scope(nano, rows, traced):
    """A mask that calls the last padding a token: other shape, digests and routes of that cell."""
    mask = [list(row) for row in rows.mask]
    mask[0][rows.padding(0) - 1] = 1
    shifted = TargetTokens(start=rows.targets[0].start + 1, end=rows.targets[0].end + 1, crossing=0)
    found = trace_batch(nano, rows.ids, mask, targets=[shifted, *rows.targets[1:]], edges=())
    for one, other in zip(found.hidden[0], traced.hidden[0], strict=True):
        assert one.full.shape == (other.full.shape[0] + 1, other.full.shape[1])
        assert one.full.sha256 != other.full.sha256
    assert found.hidden[0][0].target == traced.hidden[0][0].target
    assert [a.full.tokens - b.full.tokens for a, b in zip(found.gates[0], traced.gates[0], strict=True)] == [1] * 5


def test_what_stands_in_the_padding_changes_nothing(nano, rows, traced):
    """Other IDs under the mask: no record differs, so nothing of the padding is in any."""
    ids = [
        [77 if not flag else one for one, flag in zip(*pair, strict=True)]
        for pair in zip(rows.ids, rows.mask, strict=True)
    ]
    found = trace_batch(nano, ids, rows.mask, targets=rows.targets, edges=())
    assert (found.hidden, found.gates, found.logits_sha256) == (traced.hidden, traced.gates, traced.logits_sha256)


def test_a_router_that_is_already_softmaxed_is_refused(nano, rows):
    """By the gate's name, and the model is left without hooks."""
    gate = nano.model.model.layers[2].mlp.gate
    message = r"model\.layers\.2\.mlp\.gate: unknown gate contract: .*a softmax and no raw logits"
    before = hooked(nano.model)
    with hook(gate, lambda out: (out[0].softmax(-1), *out[1:])), pytest.raises(ModelError, match=message):
        rows.trace(nano)
    assert hooked(nano.model) == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(lambda out: out[0].long(), "returning .integer.", id="no floats"),
        pytest.param(lambda out: (*out, None), "float, float, integer, nothing", id="four"),
        pytest.param(lambda out: (out[2], out[1], None), "integer, float, nothing", id="choice of another class"),
        pytest.param(lambda out: (out[0], out[1] * 2, out[2]), "weights aren't what the rule makes", id="weights"),
        pytest.param(lambda out: (out[0], out[1], (out[2] + 1) % 32), "aren't the top-k of", id="choice"),
    ],
)
def test_a_gate_of_no_known_form_is_refused(nano, rows, change, message):
    """With the module's path, its class, and what it returned."""
    gate = nano.model.model.layers[1].mlp.gate

    class Deaf(torch.nn.Module):
        """Takes what a layer's experts would: the layer must not fail before the trace does."""

        def forward(self, hidden, *_):
            return torch.zeros_like(hidden)

    layer = nano.model.model.layers[1].mlp
    experts, layer.experts = layer.experts, Deaf()
    try:
        with hook(gate, change), pytest.raises(ModelError, match=rf"layers\.1\.mlp\.gate: unknown gate .*{message}"):
            rows.trace(nano)
    finally:
        layer.experts = experts


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_is_not_finite_stops_the_trace(nano, rows, value):
    """Named by the first stage that has it."""

    def spoil(output):
        spoiled = output.clone()
        spoiled[4, -1, 3] = value
        return spoiled

    with (
        hook(nano.model.model.layers[2], spoil),
        pytest.raises(DecodeError, match="layer_02: expected finite") as caught,
    ):
        rows.trace(nano)
    assert caught.value.kind == "non_finite"


def test_a_stage_that_does_not_come_is_missed(nano, rows, monkeypatch):
    """The model must call each module once, in the layers' order."""
    honest = capture.Capture.stage_hook

    def deaf(self, place):
        return (lambda *_: None) if place.name == "layer_03" else honest(self, place)

    monkeypatch.setattr(capture.Capture, "stage_hook", deaf)
    with pytest.raises(
        ModelError, match=r"trace: expected one output of each of 13 stages and gates.*found 12 outputs"
    ):
        rows.trace(nano)


def test_an_output_over_other_tokens_is_refused(nano, rows):
    """A layer that drops a token isn't a stage of this batch."""
    with (
        hook(nano.model.model.norm, lambda out: out[:, 1:]),
        pytest.raises(ModelError, match=r"model\.norm: expected a"),
    ):
        rows.trace(nano)
