"""A traced unit: prompts, targets and generator states as they were, two forwards, edges joined by their ID."""

import dataclasses

import msgspec
import pytest

from harness.canon import digest, ids_sha256
from harness.model.rng import rng_states, seed_generators
from harness.protocols.load import load_protocol
from harness.protocols.stages import expected_gates, expected_route_decisions, expected_stages
from harness.records.depth import TraceEvidence
from harness.run.engine import open_engine
from harness.run.prepare import prepare
from harness.run.progress import Progress, quiet
from harness.run.request import make_request
from harness.run.tracing import trace_source

replace = msgspec.structs.replace


@pytest.fixture(scope="module")
def depth():
    """The nano depth protocol."""
    return load_protocol("nano-depth")


@pytest.fixture(scope="module")
def opened(depth, options):
    """An engine over its smoke grid, with tokenizer and batches."""
    request = make_request(depth, "smoke", "x", options())
    tokenizer, batches = prepare(depth, request)
    engine = open_engine(depth, request)
    yield engine, tokenizer, batches
    engine.close()


def make(opened, key):
    """One unit."""
    engine, tokenizer, batches = opened
    return engine.make_unit(key, batches[key.source_id], tokenizer, Progress(quiet, "x", 1, 8, 0))


@pytest.fixture(scope="module")
def key(depth):
    """The mathematics source, whose first token is cut."""
    return next(one for one in depth.units("smoke", depth.domains) if one.domain == "math")


@pytest.fixture(scope="module")
def unit(opened, key):
    """Its trace."""
    return make(opened, key)[0]


def test_a_unit_is_what_was_read_back(unit, opened, key, depth):
    """Identity from the key, digests from the records, prompts from the batch."""
    engine, _, batches = opened
    assert isinstance(unit, TraceEvidence)
    assert (unit.domain, unit.index, unit.source_id, unit.replicate) == ("math", 0, key.source_id, "forward")
    assert (unit.protocol_digest, unit.grid) == (depth.digest, "smoke")
    assert unit.environment_sha256 == digest(engine.environment)
    assert unit.placement_sha256 == digest(engine.placement)
    prompts = batches[key.source_id].prompts
    assert unit.source_text_sha256 == prompts.text_sha256
    for cell, prompt, padding in zip(unit.cells, prompts.cells, prompts.padding, strict=True):
        assert (cell.condition, cell.prompt_ids, cell.prompt_sha256) == (prompt.condition, prompt.ids, prompt.sha256)
        assert (cell.edits, cell.left_padding) == (prompt.edits, padding)


def test_its_target_is_the_sources(unit, opened, key):
    """R05 depth 7.2: the same token IDs in every cell; one token cut in each of eight."""
    targets = opened[2][key.source_id].targets
    assert tuple(cell.target for cell in unit.cells) == targets.cells
    contents = {cell.prompt_ids[cell.target.start : cell.target.end] for cell in unit.cells}
    (content,) = contents
    assert unit.content_token_ids_sha256 == ids_sha256(content)
    assert (unit.target_tokens, unit.crossing_tokens, unit.crossing_cells) == (len(content), 8, 8)


def test_its_lines_are_the_models(unit, depth):
    """Every stage and gate of every cell, over target and full input; edges over the target."""
    shape = depth.profile.shape
    for cell in unit.cells:
        assert tuple(one.stage for one in cell.hidden) == expected_stages(shape)
        assert tuple(one.gate for one in cell.gates) == expected_gates(shape)
        assert {one.full.shape for one in cell.hidden} == {(len(cell.prompt_ids), shape.hidden_size)}
        assert {one.target.shape for one in cell.hidden} == {(unit.target_tokens, shape.hidden_size)}
    assert [(one.edge, one.left, one.right) for one in unit.edges] == [
        (one.id, one.left, one.right) for one in depth.protocol.edges
    ]
    counted = sum(sum(gate.target.load) for cell in unit.cells for gate in cell.gates)
    assert counted == expected_route_decisions(shape, target_tokens=unit.target_tokens, cells=8)


def test_both_forwards_give_the_same_logits_and_no_cache(unit, depth):
    """R05 depth 7.1: without hooks and with them."""
    assert unit.hooks.logits_sha256_without == unit.hooks.logits_sha256_with
    tokens = sum(len(cell.prompt_ids) for cell in unit.cells)
    assert unit.hooks.logits_without == unit.hooks.logits_with == (tokens, depth.profile.shape.vocabulary_columns)
    assert not unit.cache_returned


def test_the_generators_are_seeded_and_left_alone(unit, depth):
    """The registered seed's states, before and after."""
    seed_generators(depth.protocol.forward.generator_seed)
    assert unit.rng_before == unit.rng_after == rng_states()


def test_a_trace_made_again_is_the_same(unit, opened, key, depth):
    """Whatever was traced between: every field of the evidence."""
    make(opened, depth.units("smoke", depth.domains)[1])
    again, observation = make(opened, key)
    assert again == unit
    assert observation.tokens == sum(len(cell.prompt_ids) for cell in unit.cells)


def test_edges_are_joined_by_their_cells(unit, opened, key, depth):
    """With the protocol's edges in another order, and one turned round: each is between its own two cells."""
    engine, _, batches = opened
    batch = batches[key.source_id]
    edges = depth.protocol.edges[::-1]
    turned = (*edges[:-1], replace(edges[-1], left=edges[-1].right, right=edges[-1].left))
    traced = trace_source(
        replace(depth.protocol, edges=turned),
        engine.model,
        batch.prompts,
        batch.targets,
        pad_id=engine.loaded.profile.special_ids.pad,
    )
    known = {one.edge: one for one in unit.edges}
    assert [one.edge for one in traced.edges] == [edge.id for edge in turned]
    assert [one for one in traced.edges if one != known[one.edge]] == [traced.edges[-1]]
    last = traced.edges[-1]
    assert (last.left, last.right) == (known[last.edge].right, known[last.edge].left)
    assert [one.exact_rows for one in last.stages] == [one.exact_rows for one in known[last.edge].stages]
    assert [one.left_squared for one in last.stages] != [one.left_squared for one in known[last.edge].stages]


def test_a_trace_without_targets_is_misuse(opened, key):
    """Batches of a protocol that traces nothing have none."""
    engine, tokenizer, batches = opened
    bare = dataclasses.replace(batches[key.source_id], targets=None)
    with pytest.raises(RuntimeError, match="a trace needs its target tokens"):
        engine.make_unit(key, bare, tokenizer, Progress(quiet, "x", 1, 8, 0))


def test_the_forwards_settings_are_read_back(opened):
    """No cache, no other outputs, not in training; nothing of a generation's config."""
    assert opened[0].environment.generation_config == {
        "output_attentions": "false", "output_hidden_states": "false", "training": "false", "use_cache": "false"
    }  # fmt: skip
