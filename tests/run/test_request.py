"""What a run is asked for: a registered placement or a refusal, all domains or a port that says which it leaves out."""

import os
from pathlib import Path

import pytest

from harness.errors import InputError, PlacementError, ProtocolError
from harness.inputs.find import find_inputs
from harness.protocols.grids import denominators
from harness.protocols.load import load_protocol
from harness.run.request import (
    available_domains,
    checkpoint_folder,
    choose_placement,
    make_request,
    named_baseline,
    sandbox_deviations,
    spec_of,
)

PINNED = "python:3.11-alpine@sha256:25976e9d34a0fab1f278cae931f34c8303d97bf0c0d7f85b6b4dcf641d7702a4"


@pytest.fixture(scope="session")
def completion():
    """The nano completion protocol: its baseline is frozen, its image only recorded."""
    return load_protocol("nano-completion")


@pytest.fixture(scope="session")
def registered():
    """The DeepSeek completion protocol: its baseline is owed, its image registered."""
    return load_protocol("deepseek-completion")


def test_without_budgets_it_is_the_registered_placement(deepseek, options):
    """The protocol's own, with no deviation."""
    placement, deviations = choose_placement(deepseek, options())
    assert placement.id == deepseek.protocol.placement
    assert deviations == ()


@pytest.mark.parametrize(("gpu", "name"), [("29GiB", "gpu29"), ("28GiB", "gpu28")])
@pytest.mark.parametrize("cpu", ["80GiB", None])
def test_registered_budgets_choose_their_placement(deepseek, options, gpu, cpu, name):
    """Both budgets, or one with the protocol's own other."""
    placement, deviations = choose_placement(deepseek, options(gpu_memory=gpu, cpu_memory=cpu))
    assert (placement.id, deviations) == (name, ())


@pytest.mark.parametrize(
    ("gpu", "cpu"),
    [("27GiB", None), ("29 GiB", None), ("29GB", None), (None, "64GiB"), ("30GiB", "80GiB"), ("none", None)],
)
def test_other_budgets_are_refused(deepseek, options, gpu, cpu):
    """Not rounded and not taken for a near one: the registered budgets are listed."""
    with pytest.raises(PlacementError, match=r"expected one of \['28GiB/80GiB', '29GiB/80GiB'\], found"):
        choose_placement(deepseek, options(gpu_memory=gpu, cpu_memory=cpu))


def test_a_port_says_its_budgets(deepseek, options):
    """Other budgets under --port: a placement named port, with its deviation."""
    placement, deviations = choose_placement(deepseek, options(gpu_memory="70GiB", port=True))
    assert (placement.id, placement.gpu_memory, placement.cpu_memory) == ("port", "70GiB", "80GiB")
    assert (placement.resident, placement.offloaded) == ((), ())
    (deviation,) = deviations
    assert (deviation.field, deviation.registered) == ("placement", deepseek.protocol.placement)
    assert "70GiB/80GiB" in deviation.actual


@pytest.mark.parametrize(
    ("gpu", "cpu", "device_map", "offload"),
    [
        ("139GiB", "none", "single", "none"),
        ("20GiB,20GiB", "none", "auto", "none"),
        ("8GiB,8GiB", "80GiB", "auto", "cpu"),
    ],
)
def test_a_port_is_whole_split_or_offloaded(deepseek, options, gpu, cpu, device_map, offload):
    """One GPU holds it all; several budgets split it over as many GPUs; what a CPU budget is for may be offloaded."""
    placement, (deviation,) = choose_placement(deepseek, options(gpu_memory=gpu, cpu_memory=cpu, port=True))
    assert (placement.device_map, placement.offload_device) == (device_map, offload)
    assert deviation.actual == f"{device_map} {gpu}/{cpu}"


def test_a_port_with_a_registered_budget_keeps_its_placement(deepseek, options):
    """--port alone changes nothing that is as registered."""
    placement, deviations = choose_placement(deepseek, options(gpu_memory="28GiB", cpu_memory="80GiB", port=True))
    assert (placement.id, deviations) == ("gpu28", ())


def test_a_cpu_budget_without_a_gpu_offloads_to_disk(nano, options):
    """Where the CPU computes, what doesn't fit can only be on disk."""
    placement, _ = choose_placement(nano, options(cpu_memory="5MB", port=True))
    assert (placement.device_map, placement.offload_device) == ("auto", "disk")


def test_all_registered_domains_run(nano, options):
    """Embedded inputs are found without any folder."""
    domains, deviations = available_domains(nano, find_inputs(nano.protocol, ()), port=False)
    assert (domains, deviations) == (nano.domains, ())


def test_a_missing_domain_is_refused(nano, tree):
    """Domain, input and what to do."""
    (tree.embedded_inputs / "math.jsonl").unlink()
    with pytest.raises(ProtocolError, match=r"domain math: .*no file with SHA-256 .*--inputs DIR.*--port"):
        available_domains(nano, find_inputs(nano.protocol, ()), port=False)


def test_a_port_leaves_a_missing_domain_out(nano, tree):
    """It says which and why, and every denominator follows."""
    (tree.embedded_inputs / "math.jsonl").unlink()
    domains, deviations = available_domains(nano, find_inputs(nano.protocol, ()), port=True)
    assert domains == tuple(name for name in nano.domains if name != "math")
    assert [(one.field, one.registered) for one in deviations] == [("domains.math", "present")]
    assert "left out (no file with SHA-256" in deviations[0].actual
    for grid in nano.protocol.grids:
        counts = denominators(nano.protocol, grid, len(domains))
        units = nano.units(grid, domains)
        assert len(units) == counts.units
        assert {unit.domain for unit in units} == set(domains)
        assert counts.cells == counts.units * len(nano.protocol.conditions)
        assert counts.cells * len(nano.domains) == nano.manifest.denominators[grid].cells * len(domains)


def test_a_port_without_any_domain_is_refused(nano, tree):
    """Nothing isn't a smaller denominator."""
    for path in tree.embedded_inputs.iterdir():
        path.unlink()
    with pytest.raises(ProtocolError, match="expected at least one domain's input, found none"):
        available_domains(nano, find_inputs(nano.protocol, ()), port=True)


@pytest.mark.parametrize("port", [False, True], ids=["registered", "port"])
def test_an_altered_input_is_an_error(nano, tree, port):
    """A file under the registered name with other bytes is never left out as missing."""
    with (tree.embedded_inputs / "math.jsonl").open("ab") as stream:
        stream.write(b"\n")
    with pytest.raises(InputError, match=r"input nano-math: .*math\.jsonl: expected SHA-256"):
        available_domains(nano, find_inputs(nano.protocol, ()), port=port)


def test_owed_sources_stop_a_formal_run(deepseek):
    """The first domain that can't run, and the manifest's own reason."""
    owed = deepseek.unfrozen[0]
    with pytest.raises(ProtocolError) as caught:
        available_domains(deepseek, find_inputs(deepseek.protocol, ()), port=False)
    words = f"domain {owed.domain}: expected the registered input, frozen, found unfrozen: {owed.reason}"
    assert words in str(caught.value)


@pytest.mark.inputs
def test_owed_sources_stop_a_formal_run_beside_every_input(deepseek):
    """With all other inputs there it is refused for the owed ones."""
    found = find_inputs(deepseek.protocol, (Path(os.environ["HARNESS_INPUTS"]),))
    with pytest.raises(ProtocolError, match=f"domain {deepseek.unfrozen[0].domain}: .*found unfrozen: "):
        available_domains(deepseek, found, port=False)


@pytest.mark.inputs
def test_a_port_runs_the_domains_that_are_there(deepseek):
    """Three of four; the Chinese stand-in isn't taken for the registered file."""
    found = find_inputs(deepseek.protocol, (Path(os.environ["HARNESS_INPUTS"]),))
    domains, deviations = available_domains(deepseek, found, port=True)
    owed = {source.domain for source in deepseek.unfrozen}
    assert domains == tuple(name for name in deepseek.domains if name not in owed)
    assert {one.field for one in deviations} == {f"domains.{name}" for name in owed}
    assert denominators(deepseek.protocol, "formal", len(domains)).cells == 96


def test_a_domain_without_input_is_left_out_for_its_own_reason(deepseek):
    """Owed domains for the manifest's reason, the others for their missing file: none twice."""
    with pytest.raises(ProtocolError, match="expected at least one domain's input"):
        available_domains(deepseek, find_inputs(deepseek.protocol, ()), port=True)


def test_the_embedded_checkpoint_is_the_default(nano, embedded_checkpoint):
    """Of a profile that has one."""
    assert checkpoint_folder(nano, None) == embedded_checkpoint.resolve()


@pytest.mark.parametrize("given", [None, Path("/no/such/folder")], ids=["none", "wrong"])
def test_no_checkpoint_is_refused(deepseek, given):
    """Which model, and how to name it."""
    message = f"expected a folder with {deepseek.profile.repository}, found no folder .*--checkpoint DIR"
    with pytest.raises(ProtocolError, match=message):
        checkpoint_folder(deepseek, given)


@pytest.mark.parametrize("tier", ["smoke", "formal", "replay"])
def test_a_request_is_as_registered(nano, options, tier):
    """Grid, placement, execution and domains are the protocol's; nothing deviates."""
    request = make_request(nano, tier, "run-1", options())
    protocol = nano.protocol
    assert request.grid == protocol.tier_grids[tier]
    assert (request.placement.id, request.execution) == (protocol.placement, protocol.execution)
    assert (request.domains, request.port, request.deviations) == (nano.domains, False, ())


def test_the_spec_carries_every_deviation(nano, options, tree):
    """A port's run says in its own record what isn't registered; run ID and digest are there."""
    (tree.embedded_inputs / "math.jsonl").unlink()
    request = make_request(nano, "smoke", "run-1", options(port=True, cpu_memory="5MB"), tree)
    spec = spec_of(request, nano, request.deviations)
    assert [one.field for one in spec.deviations] == ["placement", "domains.math"]
    assert (spec.port, spec.run_id, spec.protocol_digest, spec.placement) == (True, "run-1", nano.digest, "port")
    assert spec.domains == request.domains


@pytest.mark.parametrize("image", [None, PINNED])
def test_the_registered_image_is_no_deviation(registered, options, image):
    """Not named, or named as registered, to the last digit of its digest."""
    assert sandbox_deviations(registered.protocol, options(sandbox_image=image)) == ()


@pytest.mark.parametrize("image", ["local", "python:3.11-alpine", PINNED.upper(), PINNED[:-1], f"{PINNED} "])
def test_another_image_is_refused(registered, options, image):
    """A tag alone, another digest, a local image: what is registered, what was named, and what to do."""
    with pytest.raises(ProtocolError) as caught:
        sandbox_deviations(registered.protocol, options(sandbox_image=image))
    assert (caught.value.expected, caught.value.found) == (PINNED, image)
    assert "HARNESS_SANDBOX_IMAGE" in caught.value.todo
    assert "--port" in caught.value.todo


def test_a_port_says_its_image(registered, options):
    """Another image under --port is one of its deviations."""
    (found,) = sandbox_deviations(registered.protocol, options(sandbox_image="local", port=True))
    assert (found.field, found.registered, found.actual) == ("sandbox.image", PINNED, "local")


def test_a_recorded_image_may_be_any(completion, nano, options):
    """Where the image is only recorded no image deviates, and a protocol without a sandbox has none."""
    assert sandbox_deviations(completion.protocol, options(sandbox_image="local")) == ()
    assert sandbox_deviations(nano.protocol, options(sandbox_image="local")) == ()


def test_the_registered_run_names_no_baseline(completion, options):
    """Its baseline is the frozen one."""
    assert named_baseline(completion, options()) is None
    with pytest.raises(ProtocolError, match=r"nano-completion: baseline: .* found --baseline other without --port"):
        named_baseline(completion, options(baseline=Path("other")))


def test_a_port_names_its_own_baseline(registered, options, tmp_path):
    """And can't do without: which protocol it must be a port of is said."""
    assert named_baseline(registered, options(port=True, baseline=tmp_path)) == str(tmp_path.resolve())
    with pytest.raises(ProtocolError, match=r"found no --baseline under --port. .* port of deepseek-behavior with"):
        named_baseline(registered, options(port=True))


@pytest.mark.parametrize("port", [False, True])
def test_a_protocol_without_a_baseline_takes_none(nano, options, port):
    """Several protocols share a session's options."""
    assert named_baseline(nano, options(baseline=Path("other"), port=port)) is None


def test_a_completion_request_carries_image_and_baseline(completion, nano, options, tmp_path):
    """A child is told both; a behaviour request has neither."""
    given = options(sandbox_image="local")
    assert make_request(completion, "formal", "run-1", given).sandbox_image == "local"
    assert make_request(completion, "formal", "run-1", given).baseline is None
    port = make_request(completion, "smoke", "run-1", options(port=True, baseline=tmp_path))
    assert (port.baseline, port.port) == (str(tmp_path.resolve()), True)
    assert make_request(nano, "formal", "run-1", given).sandbox_image is None


@pytest.mark.parametrize("tier", ["smoke", "formal", "replay"])
def test_every_tier_has_one_budget(completion, options, tier):
    """R05 2: nothing is continued selectively; each tier's grid is cut at the same 512 tokens."""
    request = make_request(completion, tier, "run-1", options())
    assert completion.protocol.grids[request.grid].max_new_tokens == 512
