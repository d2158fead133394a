"""Loading: exactly the checkpoint's weights, where they were registered to be; else a refusal, never a filling."""

from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
import torch
from safetensors.torch import load_file, save_file

from harness.decode.greedy import adopt_contract, decode_greedy
from harness.errors import DecodeError, ModelError, PlacementError
from harness.model import environment as environment_module
from harness.model import load as load_module
from harness.model.load import load_model, require_map
from harness.model.placement import memory_observation, placement_facts

WEIGHT = "model.layers.3.self_attn.kv_a_layernorm.weight"
AWAY = ["model.layers.4", "model.layers.5", "model.norm", "lm_head"]
EXPERT = "model.layers.3.mlp.experts.7.down_proj.weight"


def ignore(step):
    """A tick that nobody watches."""


def changed_weights(checkpoint, change):
    """The bytes of the weights file after a change of its tensors."""
    tensors = load_file(checkpoint / "model.safetensors")
    change(tensors)
    return tensors


def load(loaded, folder, placement="nano-resident", **execution):
    """Load a folder under a registered placement."""
    chosen = next(one for one in loaded.protocol.placements if one.id == placement)
    return load_model(loaded.profile, msgspec.structs.replace(loaded.protocol.execution, **execution), chosen, folder)


def facts(loaded, model):
    """The placement facts of a loaded model."""
    return placement_facts(model.model, model.placement.id, loaded.profile, model.device)


def placement_of(loaded, placement_id):
    """The registered placement."""
    return next(one for one in loaded.protocol.placements if one.id == placement_id)


@pytest.fixture
def with_weights(files, checkpoint):
    """`with_weights(change)`: a checkpoint folder whose tensors were changed."""

    def make(change):
        folder = files("model.safetensors", None)
        save_file(changed_weights(checkpoint, change), folder / "model.safetensors", metadata={"format": "pt"})
        return folder

    return make


@pytest.mark.parametrize("placement", ["nano-resident", "nano-disk"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(lambda t: t.pop(WEIGHT), f"1 missing_keys, first {WEIGHT}", id="removed"),
        pytest.param(lambda t: t.update(other=t.pop(WEIGHT)), f"missing_keys, first {WEIGHT}", id="renamed"),
        pytest.param(lambda t: t.update(extra=torch.zeros(3)), "1 unexpected_keys, first extra", id="extra"),
        pytest.param(lambda t: t.update({WEIGHT: t[WEIGHT][:-1].clone()}), "found RuntimeError", id="shape"),
        pytest.param(lambda t: t.pop(EXPERT), "found RuntimeError", id="expert"),
    ],
)
def test_weights_that_are_not_the_models_are_refused(loaded, with_weights, placement, change, message):
    """The library only warns and draws random numbers for a missing weight: here it's an error, also offloaded."""
    with pytest.raises(ModelError, match=message):
        load(loaded, with_weights(change), placement)


@pytest.mark.parametrize(
    "data", [b"", b"\x08" + b"\x00" * 7 + b"{}", b"PK\x03\x04" * 100], ids=["empty", "torn", "zip"]
)
def test_a_weights_file_that_cannot_be_read_is_refused(loaded, files, data):
    """As a ModelError, with the checkpoint's path."""
    with pytest.raises(ModelError, match="checkpoint: expected a loadable nano"):
        load(loaded, files("model.safetensors", data))


def test_a_pickle_is_not_loaded(loaded, files, checkpoint):
    """Without safetensors there are no weights, whatever else lies there."""
    folder = files("model.safetensors", None)
    torch.save(load_file(checkpoint / "model.safetensors"), folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match="expected a loadable nano"):
        load(loaded, folder)


def test_nan_weights_are_found_by_the_first_step(loaded, with_weights, batch):
    """R04 6.5: they load without a word; the first step's logits give them away."""
    model = load(loaded, with_weights(lambda t: t["model.norm.weight"].fill_(float("nan"))))
    adopt_contract(model, loaded.protocol.decode, loaded.profile.special_ids, 2)
    with pytest.raises(DecodeError, match="step 0, row 0: expected finite logits") as caught:
        decode_greedy(model, *batch, eos=loaded.profile.special_ids.eos, tick=ignore)
    assert caught.value.kind == "non_finite"
    model.close()


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("CUDA out of memory. Tried 2 GiB"), MemoryError()], ids=["torch", "python"]
)
def test_memory_that_runs_out_while_loading_is_a_placements(loaded, checkpoint, monkeypatch, error):
    """The next lower registered placement is the answer, not another checkpoint."""

    def refuse(*_, **__):
        raise error

    monkeypatch.setattr(load_module.transformers.AutoModelForCausalLM, "from_pretrained", refuse)
    with pytest.raises(PlacementError, match=r"expected memory for nano, found .*next lower registered placement"):
        load(loaded, checkpoint)


def test_a_device_that_is_not_there_is_refused(loaded, checkpoint, monkeypatch):
    """No CUDA, no silent CPU."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ModelError, match="expected a CUDA device, found none"):
        load(loaded, checkpoint, device="cuda")


def test_a_dense_model_has_no_experts_to_pin_and_says_so(loaded, resident):
    """Transformers names an implementation in a dense config too: what is recorded comes from the modules."""
    execution = msgspec.structs.replace(loaded.protocol.execution, experts="none")
    load_module._pin_experts(object(), execution)
    config = SimpleNamespace(_experts_implementation="eager")
    dense = SimpleNamespace(config=config, named_modules=lambda: [("", None), ("model.layers.0.mlp.gate_proj", None)])
    assert environment_module._experts(SimpleNamespace(model=dense, execution=execution)) == "none"
    assert environment_module._experts(resident) == "grouped_mm"


def test_experts_that_cannot_be_pinned_are_refused(loaded, resident, monkeypatch):
    """A library without the pin would choose for itself."""
    with pytest.raises(ModelError, match="expected experts implementation 'grouped_mm'"):
        load_module._pin_experts(object(), loaded.protocol.execution)


def test_a_resident_model_lies_on_one_device(loaded, resident):
    """All parameter bytes on the CPU, nothing dispatched, nothing offloaded."""
    found = facts(loaded, resident)
    assert found.parameter_bytes == {"cpu": sum(p.numel() * p.element_size() for p in resident.model.parameters())}
    assert (found.dispatched, found.device_map) == (False, {"": "cpu"})
    assert (found.offloaded, found.offloaded_moe_layers) == ((), ())


def test_the_bytes_of_a_split_model_add_up(loaded, resident, on_disk):
    """Resident and offloaded bytes together are the model's, whatever is on the meta device between forwards."""
    found = facts(loaded, on_disk).parameter_bytes
    assert set(found) == {"cpu", "offloaded:disk"}
    assert min(found.values()) > 0
    assert sum(found.values()) == sum(facts(loaded, resident).parameter_bytes.values())


def test_a_split_model_offloads_what_was_registered(loaded, on_disk):
    """The two lists of the placement, read back, and the MoE layers among them."""
    placement, found = placement_of(loaded, "nano-disk"), facts(loaded, on_disk)
    assert found.dispatched
    assert set(found.offloaded) == set(placement.offloaded)
    assert {name for name, where in found.device_map.items() if where == "cpu"} == set(placement.resident)
    layers = {int(name.rsplit(".", 1)[1]) for name in placement.offloaded if ".layers." in name}
    assert set(found.offloaded_moe_layers) == {layer for layer in layers if layer >= loaded.profile.shape.dense_layers}
    assert found.offloaded_moe_layers


def test_both_placements_give_nearly_the_same_logits(resident, on_disk, batch):
    """Offloaded experts lie in a file's memory map, whose alignment rounds the grouped product otherwise: about 1e-6.

    So tokens are what placements must share, and their near equality isn't taken for exactness.
    """
    with torch.inference_mode():
        ids, mask = torch.tensor(batch[0]), torch.tensor(batch[1])
        one, other = (model.model(ids, attention_mask=mask).logits for model in (resident, on_disk))
    torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-4)


def test_both_placements_give_the_same_tokens(loaded, resident, on_disk, batch):
    """R04 8 on a short batch."""
    eos = loaded.profile.special_ids.eos
    one = decode_greedy(resident, *batch, eos=eos, tick=ignore)
    assert decode_greedy(on_disk, *batch, eos=eos, tick=ignore) == one


def test_the_registered_map_is_accepted(loaded, on_disk):
    """The map that was dispatched is the one that was registered."""
    require_map(placement_of(loaded, "nano-disk"), facts(loaded, on_disk).device_map)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"model.layers.3": "disk"}, id="one-more-offloaded"),
        pytest.param({"model.layers.4": "cpu"}, id="one-less-offloaded"),
        pytest.param({"lm_head": None}, id="one-missing"),
        pytest.param({"model.layers.6": "cpu"}, id="one-unknown"),
        pytest.param(dict.fromkeys(AWAY, "cpu"), id="all-resident"),
    ],
)
def test_another_map_is_refused(loaded, on_disk, change):
    """Both lists are shown, expected and found."""
    changed = facts(loaded, on_disk).device_map | change
    device_map = {name: where for name, where in changed.items() if where is not None}
    with pytest.raises(PlacementError, match=r"expected offloaded \[.*\], resident \[.*\], found offloaded"):
        require_map(placement_of(loaded, "nano-disk"), device_map)


@pytest.mark.parametrize("extra", [True, False], ids=["extra-offload", "as-registered"])
def test_an_extra_offload_to_the_cpu_is_refused(loaded, extra):
    """Under device_map=auto on a GPU: one layer more on the CPU isn't the registered map."""
    placement = msgspec.structs.replace(
        placement_of(loaded, "nano-disk"),
        device_map="auto",
        offload_device="cpu",
        resident=("a", "b"),
        offloaded=("c",),
    )
    if extra:
        with pytest.raises(PlacementError):
            require_map(placement, {"a": "cuda:0", "b": "cpu", "c": "cpu"})
    else:
        require_map(placement, {"a": "cuda:0", "b": "cuda:0", "c": "cpu"})


def test_a_single_placement_is_on_one_device(loaded):
    """Two devices aren't single."""
    require_map(placement_of(loaded, "nano-resident"), {"": "cpu"})
    with pytest.raises(PlacementError, match="the whole model on one device"):
        require_map(placement_of(loaded, "nano-resident"), {"model": "cpu", "lm_head": "disk"})


def test_a_closed_model_cannot_be_used(loaded, checkpoint, batch):
    """Closing releases weights and the offload folder; using it afterwards is misuse."""
    model = load(loaded, checkpoint, "nano-disk")
    folder = Path(model._offload.name)
    assert list(folder.iterdir())
    model.close()
    with pytest.raises(RuntimeError, match="the model was closed"):
        decode_greedy(model, *batch, eos=loaded.profile.special_ids.eos, tick=ignore)
    assert not folder.exists()


def test_two_loads_are_two(resident, on_disk):
    """One process, two loads: their identity tells them apart."""
    assert resident.process.pid == on_disk.process.pid
    assert resident.process.model_load_id != on_disk.process.model_load_id


def test_memory_is_an_observation_in_bytes(resident):
    """The process holds more than the model's parameters."""
    assert memory_observation()["rss"] > sum(p.numel() * p.element_size() for p in resident.model.parameters())


@pytest.mark.parametrize(
    ("gpu", "cpu", "budgets"),
    [
        ("29GiB", "80GiB", {0: "29GiB", "cpu": "80GiB"}),
        ("20GiB, 18GiB", "none", {0: "20GiB", 1: "18GiB"}),
        ("none", "5MB", {"cpu": "5MB"}),
    ],
)
def test_budgets_are_given_by_device(loaded, gpu, cpu, budgets):
    """One for each GPU in their order, and none for a place that has none."""
    placement = msgspec.structs.replace(
        loaded.protocol.placements[0], device_map="auto", gpu_memory=gpu, cpu_memory=cpu, offload_device="none"
    )
    arguments = load_module._placement_arguments(placement, torch.device("cpu"), None)
    assert arguments == {"device_map": "auto", "max_memory": budgets}
