"""Opening an engine: everything that can be refused is refused before the checkpoint is loaded, and read back after."""

import json
from pathlib import Path

import msgspec
import pytest

from harness.errors import ModelError, PlacementError
from harness.gold import registered_gold
from harness.records.protocol import Software
from harness.run import engine as engine_module
from harness.run.engine import open_engine
from harness.run.prepare import prepare
from harness.run.progress import Progress, quiet
from harness.run.registration import protocol_identities, registration_evidence
from harness.run.request import make_request


@pytest.fixture
def not_loaded(monkeypatch):
    """Loading is a failure of the test."""

    def refuse(*_, **__):
        raise AssertionError("the checkpoint was loaded")

    monkeypatch.setattr(engine_module, "load_model", refuse)


@pytest.fixture
def altered(embedded_checkpoint, tmp_path):
    """`altered(name, fields)`: a checkpoint of links with some fields of a JSON file changed."""

    def make(name, fields):
        folder = tmp_path / "altered"
        folder.mkdir()
        for path in embedded_checkpoint.iterdir():
            if path.name != name:
                (folder / path.name).symlink_to(path)
        (folder / name).write_text(json.dumps(json.loads((embedded_checkpoint / name).read_bytes()) | fields))
        return folder

    return make


def with_software(loaded, packages):
    """The protocol with software pins."""
    protocol = msgspec.structs.replace(loaded.protocol, software=Software(policy="exact", packages=packages))
    return type(loaded)(protocol, loaded.manifest, loaded.profile, loaded.digest, loaded.folder)


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        pytest.param("config.json", {"num_hidden_layers": 5}, "num_hidden_layers: expected 6, found 5", id="layers"),
        pytest.param("config.json", {"quantization_config": {}}, "expected no quantisation", id="quantised"),
        pytest.param("generation_config.json", {"eos_token_id": 5}, "eos_token_id: expected", id="eos"),
        pytest.param("generation_config.json", {"temperature": 0.2}, r"file generation_config\.json", id="digest"),
    ],
)
@pytest.mark.usefixtures("not_loaded")
def test_a_wrong_checkpoint_is_refused_before_it_is_loaded(nano, options, altered, name, fields, message):
    """By shape, special IDs or digest."""
    request = make_request(nano, "smoke", "x", options(checkpoint=altered(name, fields)))
    with pytest.raises(ModelError, match=message):
        open_engine(nano, request)


@pytest.mark.usefixtures("not_loaded")
def test_wrong_software_is_refused_before_the_checkpoint_is_loaded(nano, options):
    """Where the protocol pins it."""
    with pytest.raises(ModelError, match=r"software torch: expected 0\.0\.1"):
        open_engine(with_software(nano, {"torch": "0.0.1"}), make_request(nano, "smoke", "x", options()))


def test_a_port_lists_everything_that_is_not_registered(nano, options, altered):
    """File, software and placement, each with registered and actual."""
    folder = altered("generation_config.json", {"temperature": 0.2})
    request = make_request(nano, "smoke", "x", options(checkpoint=folder, cpu_memory="9MB", port=True))
    engine = open_engine(with_software(nano, {"torch": "0.0.1"}), request)
    found = [deviation.field for deviation in engine.deviations]
    offloaded = engine.placement.offloaded
    engine.close()
    assert found == ["placement", "checkpoint.generation_config.json", "software.torch"]
    assert offloaded


def test_another_map_than_the_registered_is_refused(nano, options, monkeypatch):
    """The map is read back from the model, not from the request."""
    request = make_request(nano, "smoke", "x", options())
    disk = next(one for one in nano.protocol.placements if one.id == "nano-disk")
    monkeypatch.setattr(engine_module, "placement_facts", lambda *_: type("Facts", (), {"device_map": {"": "cpu"}})())
    with pytest.raises(PlacementError, match="placement nano-disk: expected offloaded"):
        open_engine(nano, msgspec.structs.replace(request, placement=disk))


def test_a_unit_is_what_was_read_back(nano, options):
    """Identity from the key, prompts from the batch, digests from the records, generators untouched, texts decoded."""
    request = make_request(nano, "smoke", "x", options())
    tokenizer, batches = prepare(nano, request)
    engine = open_engine(nano, request)
    key = nano.units(request.grid, request.domains)[0]
    evidence, observation = engine.make_unit(key, batches[key.source_id], tokenizer, Progress(quiet, "x", 1, 8, 32))
    engine.close()
    batch = batches[key.source_id].prompts
    assert (evidence.domain, evidence.index, evidence.source_id) == (key.domain, key.index, key.source_id)
    assert [cell.prompt_ids for cell in evidence.cells] == [cell.ids for cell in batch.cells]
    assert evidence.rng_before == evidence.rng_after
    assert observation.tokens == sum(cell.length for cell in evidence.cells) == evidence.checks.rows_checked
    assert all(cell.eos != cell.truncated for cell in evidence.cells)
    with pytest.raises(RuntimeError, match="the model was closed"):
        engine.make_unit(key, batches[key.source_id], tokenizer, Progress(quiet, "x", 1, 8, 32))


def test_prompts_are_prepared_for_every_unit(nano, options):
    """By source ID; no batch holds a gold field."""
    request = make_request(nano, "formal", "x", options())
    _, batches = prepare(nano, request)
    assert set(batches) == {key.source_id for key in nano.units("formal", nano.domains)}
    fields = set(next(iter(batches.values())).prompts.__struct_fields__)
    assert not {"answer", "gold", "canonical_solution", "test"} & fields


def test_gold_is_read_for_domains_with_an_answer(nano):
    """Numbers of mathematics for the grid's sources, and nothing for the others."""
    gold = registered_gold(nano, (), nano.units("formal", nano.domains))
    domains = {domain.name for domain in nano.protocol.domains if "answer" in domain.gold}
    assert set(gold) == {key.source_id for key in nano.units("formal", nano.domains) if key.domain in domains}
    assert all(float(value.replace(",", "")) is not None for value in gold.values())


def test_registered_identities_are_found(nano, options):
    """Every row of the registration gate, with registered equal to found."""
    evidence = registration_evidence(nano, make_request(nano, "smoke", "x", options()))
    assert {name for name, (registered, found) in evidence.identities.items() if registered != found} == set()
    assert set(evidence.identities) >= {file.name for file in nano.profile.files} | {"special_ids", "model_profile"}
    assert evidence.deviations == ()


@pytest.mark.parametrize("name", ["protocol.toml", "manifest.json"])
def test_a_file_that_changes_after_loading_is_found(tree, name):
    """Identities are read from disk again."""
    from harness.protocols.load import load_protocol

    loaded = load_protocol("nano-behavior", tree)
    with (Path(loaded.folder) / name).open("ab") as stream:
        stream.write(b"\n")
    registered, found = protocol_identities(loaded)[name]
    assert registered != found
