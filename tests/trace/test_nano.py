"""The nano model traced: counts, what each stage is, both scopes, edges; and that hooks change nothing."""

import os
import subprocess
import sys

import pytest
import torch

from harness.canon import digest
from harness.errors import DecodeError
from harness.model.load import load_model
from harness.places import places
from harness.protocols.load import load_protocol
from harness.protocols.stages import expected_gates, expected_route_decisions, expected_stages
from harness.trace import forward, work
from harness.trace.forward import plain_forward, positions, trace_batch
from harness.trace.host import as_matrix

from . import slow
from .conftest import EDGES, ROWS, TARGET, make_rows

PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
from tests.trace.test_nano import fresh_digest
print(fresh_digest())
"""
STAGE_OF_STATE = [("embedding", 0), *[(f"layer_{layer:02d}", layer + 1) for layer in range(5)], ("final_norm", 6)]


def fresh_digest():
    """The digest of the batch's trace by a model loaded here: what another process is asked for."""
    loaded = load_protocol("nano-behavior")
    placement = next(one for one in loaded.protocol.placements if one.id == loaded.protocol.placement)
    model = load_model(loaded.profile, loaded.protocol.execution, placement, places().models / "nano" / "checkpoint")
    return digest_of(make_rows(2000).trace(model))


def digest_of(traced):
    """Of every record of a trace."""
    edges = [[one.edge, one.stages, one.gates] for one in traced.edges]
    return digest([traced.hidden, traced.gates, edges, traced.logits_sha256])


@pytest.fixture(scope="module")
def shape():
    """The nano profile's shape."""
    return load_protocol("nano-behavior").profile.shape


@pytest.fixture(scope="module")
def states(nano, rows):
    """The library's own hidden states of the plain forward: 7 tensors [rows, width, columns], the last normalised."""
    mask = torch.tensor(rows.mask)
    with torch.inference_mode():
        return nano.model(
            input_ids=torch.tensor(rows.ids),
            attention_mask=mask,
            position_ids=positions(mask),
            use_cache=False,
            output_hidden_states=True,
        ).hidden_states


@pytest.fixture(scope="module")
def watched(nano, rows):
    """Inputs and outputs of norm and gates, noted by hooks of the test's own in a forward of its own."""
    noted = {}

    def note(name):
        def hook(_module, inputs, output):
            noted[name] = inputs, output

        return hook

    base = nano.model.model
    named = {"norm": base.norm} | {f"layer_{i:02d}": base.layers[i].mlp.gate for i in range(1, 6)}
    handles = [module.register_forward_hook(note(name)) for name, module in named.items()]
    plain_forward(nano, rows.ids, rows.mask)
    for handle in handles:
        handle.remove()
    return noted


def stage(traced, row, name):
    """A stage of a row."""
    return next(one for one in traced.hidden[row] if one.stage == name)


def full_sha256(tensor, rows, row):
    """Digest of a row's unpadded tokens in a tensor [rows, width, columns], by the slow reference."""
    return slow.sha256("float32", tensor[row, rows.padding(row) :].tolist())


def target_sha256(tensor, rows, row):
    """Digest of its target tokens."""
    start = rows.padding(row) + rows.targets[row].start
    return slow.sha256("float32", tensor[row, start : start + TARGET].tolist())


def test_stages_and_gates_are_the_shapes(traced, shape):
    """Layers + 2 stages and a gate a MoE layer, in every cell and on every edge, by name and in order."""
    assert {tuple(one.stage for one in row) for row in traced.hidden} == {expected_stages(shape)}
    assert {tuple(one.gate for one in row) for row in traced.gates} == {expected_gates(shape)}
    assert {tuple(one.stage for one in edge.stages) for edge in traced.edges} == {expected_stages(shape)}
    assert {tuple(one.gate for one in edge.gates) for edge in traced.edges} == {expected_gates(shape)}
    assert [edge.edge for edge in traced.edges] == [edge.edge for edge in EDGES]
    assert len(traced.hidden) == len(traced.gates) == ROWS


def test_route_decisions_add_up(traced, shape):
    """R05 depth 7.3: tokens x cells x gates x top-k, and every load adds up to its own."""
    facts = [one.target for row in traced.gates for one in row]
    assert sum(one.tokens * one.top_k for one in facts) == expected_route_decisions(
        shape, target_tokens=TARGET, cells=ROWS
    )
    assert [sum(one.load) for one in facts] == [one.tokens * one.top_k for one in facts]


@pytest.mark.parametrize(("name", "place"), STAGE_OF_STATE, ids=[name for name, _ in STAGE_OF_STATE])
@pytest.mark.parametrize("row", [0, 5])
def test_a_stage_is_the_librarys_own_state(traced, states, rows, name, place, row):
    """Both scopes against `output_hidden_states` of the plain forward, where that has the stage."""
    found = stage(traced, row, name)
    assert found.full.sha256 == full_sha256(states[place], rows, row)
    assert found.target.sha256 == target_sha256(states[place], rows, row)
    assert (found.full.shape, found.target.shape) == ((20 + row, 128), (TARGET, 128))


@pytest.mark.parametrize("row", range(ROWS))
def test_the_last_layer_is_before_the_norm(traced, watched, states, rows, row):
    """It is what the norm was given, and no tensor of `output_hidden_states`."""
    found = stage(traced, row, "layer_05")
    assert found.full.sha256 == full_sha256(watched["norm"][0][0], rows, row)
    assert found.full.sha256 not in {full_sha256(state, rows, row) for state in states}


@pytest.mark.parametrize("name", [f"layer_{layer:02d}" for layer in range(1, 6)])
def test_a_gates_routes_are_the_modules_own(traced, watched, rows, name):
    """Digests and loads by the slow reference from what the gate returned."""
    _, (_, weights, experts) = watched[name]
    width, row = len(rows.ids[0]), 3
    cut = slice(row * width + rows.padding(row), (row + 1) * width)
    wanted = [slow.route(*one) for one in zip(weights[cut].tolist(), experts[cut].tolist(), strict=True)]
    found = next(one for one in traced.gates[row] if one.gate == name)
    target = wanted[rows.targets[row].start : rows.targets[row].end]
    for facts, routes in ((found.full, wanted), (found.target, target)):
        assert facts.routes_sha256 == slow.sha256("int16", [[expert for _, expert in one] for one in routes])
        assert facts.weights_sha256 == slow.sha256("float32", [[weight for weight, _ in one] for one in routes])
        assert [list(facts.load), list(facts.weighted_load)] == list(slow.loads(routes, 32))


def test_hooks_change_nothing(nano, rows, traced):
    """Every logit of every token has the same bytes without any hook."""
    assert traced.logits_sha256 == plain_forward(nano, rows.ids, rows.mask).logits_sha256


def hooked(model):
    """Every module's forward hooks: the library leaves some of its own where hidden states were once asked for."""
    return {name: len(module._forward_hooks) for name, module in model.named_modules()}


def test_hooks_are_taken_off(nano, rows, traced):
    """A trace leaves as many as it found."""
    before = hooked(nano.model)
    rows.trace(nano)
    assert hooked(nano.model) == before


def test_the_logits_digest_is_the_references(nano, rows):
    """Each cell's unpadded positions, hashed slowly on a batch cut to two rows."""
    two = [rows.ids[:2], rows.mask[:2]]
    mask = torch.tensor(two[1])
    with torch.inference_mode():
        logits = nano.model(
            input_ids=torch.tensor(two[0]), attention_mask=mask, position_ids=positions(mask), use_cache=False
        ).logits
    wanted = digest([full_sha256(logits, rows, row) for row in range(2)])
    assert plain_forward(nano, *two).logits_sha256 == wanted


def test_one_logit_changes_the_digest(nano, rows, monkeypatch):
    """Any unpadded position counts; the first token of a row here."""
    original, run = plain_forward(nano, rows.ids, rows.mask).logits_sha256, forward._forward

    def altered(*arguments):
        logits, cached = run(*arguments)
        logits = logits.clone()
        logits[2, rows.padding(2), 17] += 1e-3
        return logits, cached

    monkeypatch.setattr(forward, "_forward", altered)
    assert plain_forward(nano, rows.ids, rows.mask).logits_sha256 != original


def test_positions_are_those_of_generate(nano, rows):
    """The library's own rule for a left-padded batch."""
    mask = torch.tensor(rows.mask)
    wanted = nano.model._prepare_position_ids_for_generation(torch.tensor(rows.ids), {"attention_mask": mask})
    assert torch.equal(positions(mask), wanted)


@pytest.mark.parametrize("edge", range(len(EDGES)), ids=[edge.edge for edge in EDGES])
def test_embeddings_of_the_target_are_exact(traced, edge):
    """R05 depth 8: the same token IDs, before any attention; and from layer 00 on none is."""
    exact = [one.exact_rows for one in traced.edges[edge].stages]
    assert exact == [TARGET] + [0] * 7
    first = traced.edges[edge].stages[0]
    assert (first.rows, first.cosine, first.relative_l2) == (TARGET, 1.0, 0.0)


@pytest.mark.parametrize("place", [1, 4, 7])
def test_an_edge_is_the_references(traced, states, watched, rows, place):
    """Cosine and relative L2 of a stage, from the library's own states, by fsum."""
    edge = EDGES[5]
    tensor = {1: states[1], 4: states[4], 7: states[6]}[place]
    sides = []
    for row in (edge.left, edge.right):
        start = rows.padding(row) + rows.targets[row].start
        sides.append(tensor[row, start : start + TARGET].tolist())
    found = traced.edges[5].stages[place]
    cosines = [slow.cosine(*pair) for pair in zip(*sides, strict=True)]
    assert found.cosine == pytest.approx(sum(cosines) / TARGET, rel=1e-12)
    assert found.relative_l2 == pytest.approx(slow.relative_l2(*sides), rel=1e-12)


def test_gates_differ_on_edges(traced):
    """Set-exact is never below ordered-exact, and some route did change."""
    gates = [one for edge in traced.edges for one in edge.gates]
    assert [one for one in gates if not one.ordered_exact <= one.set_exact <= one.tokens == TARGET] == []
    assert any(one.ordered_exact < TARGET and one.load_total_variation > 0 for one in gates)


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_threads_change_no_record(nano, rows, traced, monkeypatch, threads):
    """The pool's size is nobody's evidence."""
    monkeypatch.setattr(work, "thread_count", lambda: threads)
    assert digest_of(rows.trace(nano)) == digest_of(traced)


def test_the_order_of_rows_changes_no_cell(nano, rows, traced):
    """The batch backwards gives each row's records (float32 on the CPU)."""
    turned = trace_batch(nano, rows.ids[::-1], rows.mask[::-1], targets=rows.targets[::-1], edges=())
    assert (turned.hidden, turned.gates) == (traced.hidden[::-1], traced.gates[::-1])


def test_offloaded_layers_are_traced(rows, traced):
    """The last two layers, norm and head come from disk, through accelerate's own hooks, which the trace leaves alone.

    Resident stages keep their bytes. The others' are this placement's own: where weights lie in memory can change the
    last bit of a product, with or without a trace. So they are held to the plain forward under the same placement.
    """
    loaded = load_protocol("nano-behavior")
    placement = next(one for one in loaded.protocol.placements if one.id == "nano-disk")
    model = load_model(loaded.profile, loaded.protocol.execution, placement, places().models / "nano" / "checkpoint")
    try:
        found, again = rows.trace(model), rows.trace(model)
        plain = plain_forward(model, rows.ids, rows.mask).logits_sha256
    finally:
        model.close()
    assert [row[:5] for row in found.hidden] == [row[:5] for row in traced.hidden]
    assert (digest_of(again), found.logits_sha256) == (digest_of(found), plain)


def test_another_process_gives_the_same_bytes(traced, pytestconfig):
    """A fresh interpreter, another PYTHONHASHSEED, its own model load: every record, identity and statistic."""
    environment = os.environ | {"PYTHONHASHSEED": "4711"}
    program = PROGRAM.format(folder=str(pytestconfig.rootpath))
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == [digest_of(traced)], done.stderr


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("CUDA out of memory. Tried 2 GiB\nmore"), MemoryError()], ids=["device", "host"]
)
@pytest.mark.parametrize("where", ["forward", "worker"])
def test_memory_that_runs_out_has_one_word(nano, rows, monkeypatch, error, where):
    """In the forward or beside it, with the first line of what the allocator said."""

    def refuse(*_, **__):
        raise error

    monkeypatch.setattr(forward, "_forward" if where == "forward" else "_row_sha256", refuse)
    with pytest.raises(DecodeError, match="trace: expected memory for the whole batch") as caught:
        rows.trace(nano)
    assert caught.value.kind == "out_of_memory"
    assert caught.value.__cause__ is error


def test_another_error_stays_itself(nano, rows, monkeypatch):
    """It isn't called memory."""
    monkeypatch.setattr(forward, "_forward", lambda *_: torch.zeros(2) @ torch.zeros(3))
    with pytest.raises(RuntimeError, match="size"):
        rows.trace(nano)


def test_a_closed_model_is_misuse(nano, rows):
    """Both verbs."""
    import dataclasses

    closed = dataclasses.replace(nano, model=None)
    with pytest.raises(RuntimeError, match="closed"):
        rows.trace(closed)
    with pytest.raises(RuntimeError, match="closed"):
        plain_forward(closed, rows.ids, rows.mask)


def test_a_half_precision_tensor_is_read_bit_by_bit():
    """bfloat16 reaches the digest as its own two bytes."""
    tensor = torch.tensor([[1.0, -2.5], [0.15625, 3.0]], dtype=torch.bfloat16)
    assert as_matrix(tensor, "here").stored.tolist() == [[0x3F80, 0xC020], [0x3E20, 0x4040]]
