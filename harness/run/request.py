"""What a run is asked for, resolved before torch is loaded: placement, domains, deviations of a port, refusals.

Refuse, never fall back: without `--port` everything that isn't as registered is an error.
"""

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from harness.checks.sandbox import registered_reference
from harness.errors import PlacementError, ProtocolError
from harness.inputs.find import FoundInputs, Missing, find_inputs, require_present
from harness.places import Places, places
from harness.protocols.folders import beside
from harness.protocols.load import LoadedProtocol, load_protocol
from harness.protocols.loops import part_protocol
from harness.protocols.maps import gpu_budgets
from harness.records.base import Record
from harness.records.protocol import (
    AnyProtocol,
    BaselinedProtocol,
    DrawingProgram,
    Execution,
    GraphTaskProtocol,
    JudgedProtocol,
    LoopProgram,
    Placement,
)
from harness.records.run import Deviation, RunSpec
from harness.records.sandbox import RegisteredImage


class Request(Record):
    """Everything that a process needs to make one run; written to request.json for a child. Never evidence."""

    protocol: str
    tier: str
    grid: str
    run_id: str
    placement: Placement
    domains: tuple[str, ...]
    checkpoint: str
    inputs: tuple[str, ...]
    port: bool
    deviations: tuple[Deviation, ...]
    execution: Execution
    baseline: str | None
    sandbox_image: str | None
    decoding: Literal["registered"] | LoopProgram | DrawingProgram


@dataclass(frozen=True, slots=True)
class Options:
    """The command line's words: where things are, and what may deviate."""

    checkpoint: Path | None
    inputs: tuple[Path, ...]
    gpu_memory: str | None
    cpu_memory: str | None
    port: bool
    baseline: Path | None = None
    sandbox_image: str | None = None


def make_request(
    loaded: LoadedProtocol, tier: str, run_id: str, options: Options, tree: Places | None = None
) -> Request:
    """The request for a tier's grid under the chosen placement; ProtocolError, InputError or PlacementError refuse."""
    protocol = loaded.protocol
    placement, placement_deviations = choose_placement(loaded, options)
    device = protocol.execution.device if placement.gpu_memory == "none" else "cuda"
    _require_step(protocol, placement, device)
    domains, domain_deviations = available_domains(loaded, find_inputs(protocol, options.inputs), port=options.port)
    image_deviations = sandbox_deviations(protocol, options)
    return Request(
        protocol=protocol.id,
        tier=tier,
        grid=protocol.tier_grids[tier],  # type: ignore[index]
        run_id=run_id,
        placement=placement,
        domains=domains,
        checkpoint=str(checkpoint_folder(loaded, options.checkpoint, tree)),
        inputs=tuple(str(path.resolve()) for path in options.inputs),
        port=options.port,
        deviations=(*placement_deviations, *domain_deviations, *image_deviations),
        execution=msgspec.structs.replace(protocol.execution, device=device),
        baseline=named_baseline(loaded, options),
        sandbox_image=options.sandbox_image if isinstance(protocol, JudgedProtocol) else None,
        decoding="registered",
    )


def _require_step(protocol: AnyProtocol, placement: Placement, device: str) -> None:
    """A step that the sampler is part of is executed on the sampler's device, and a captured one on the whole model."""
    if not isinstance(protocol, GraphTaskProtocol):
        return
    registered = protocol.decode.sampler.device
    if device != registered or (device == "cuda" and placement.device_map != "single"):
        raise PlacementError(
            f"placement of {protocol.id}",
            expected=f"the sampler's device, {registered}"
            + (", and the whole model on it" if device == "cuda" else ""),
            found=f"{device}, {placement.device_map} {placement.gpu_memory}/{placement.cpu_memory}",
            todo="Draws on another device are another contract: register a protocol whose sampler is there.",
        )


def new_run_id(tier: str, *, port: bool) -> str:
    """`formal-20300102T030405-a1b2c3`, with `-port` behind it under --port."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    return f"{tier}-{stamp}-{secrets.token_hex(3)}" + ("-port" if port else "")


def checkpoint_folder(loaded: LoadedProtocol, given: Path | None, tree: Places | None = None) -> Path:
    """The checkpoint that was given, the one beside the protocol, or the profile's own; ProtocolError: none."""
    own = next(iter(beside(loaded.folder, "checkpoint")), None)
    folder = given or own or (tree or places()).models / loaded.profile.id / "checkpoint"
    if not folder.is_dir():
        raise ProtocolError(
            f"checkpoint of {loaded.protocol.id}",
            expected=f"a folder with {loaded.profile.repository}",
            found=f"no folder {folder}",
            todo="Name it with --checkpoint DIR.",
        )
    return folder.resolve()


def choose_placement(loaded: LoadedProtocol, options: Options) -> tuple[Placement, tuple[Deviation, ...]]:
    """The registered placement with these budgets (default: the protocol's); any other budget is a port's."""
    protocol = loaded.protocol
    registered = {placement.id: placement for placement in protocol.placements}
    default = registered[protocol.placement]
    if options.gpu_memory is None and options.cpu_memory is None:
        return default, ()
    gpu, cpu = options.gpu_memory or default.gpu_memory, options.cpu_memory or default.cpu_memory
    for placement in protocol.placements:
        if (placement.gpu_memory, placement.cpu_memory) == (gpu, cpu) and placement.device_map != "explicit":
            return placement, ()
    if not options.port:
        budgets = sorted(f"{one.gpu_memory}/{one.cpu_memory}" for one in protocol.placements)
        raise PlacementError(
            f"placement of {protocol.id}",
            expected=f"one of {budgets}",
            found=f"{gpu}/{cpu}",
            todo="Choose a registered placement, or run the protocol's shape under --port.",
        )
    split = len(gpu_budgets(gpu)) > 1
    whole = cpu == "none"  # no second place to put a module: the model lives on the execution device, or on several
    actual = msgspec.structs.replace(
        default,
        id="port",
        device_map="single" if whole and not split else "auto",
        gpu_memory=gpu,
        cpu_memory=cpu,
        offload_device="none" if whole else ("disk" if gpu == "none" else "cpu"),
        resident=(),
        offloaded=(),
    )
    return actual, (Deviation(field="placement", registered=default.id, actual=f"{actual.device_map} {gpu}/{cpu}"),)


def sandbox_deviations(protocol: AnyProtocol, options: Options) -> tuple[Deviation, ...]:
    """An image other than a registered one is a port's; a protocol that only records its image takes any."""
    if not isinstance(protocol, JudgedProtocol) or options.sandbox_image is None:
        return ()
    registered = protocol.sandbox.image
    if not isinstance(registered, RegisteredImage) or options.sandbox_image == registered_reference(registered):
        return ()
    if not options.port:
        raise ProtocolError(
            f"{protocol.id}: sandbox image",
            expected=registered_reference(registered),
            found=options.sandbox_image,
            todo="Give no --sandbox-image and no HARNESS_SANDBOX_IMAGE, or run the protocol's shape under --port.",
        )
    return (
        Deviation(field="sandbox.image", registered=registered_reference(registered), actual=options.sandbox_image),
    )


def named_baseline(loaded: LoadedProtocol, options: Options) -> str | None:
    """A port's own baseline; the registered run has the frozen one and no other."""
    if not isinstance(loaded.protocol, BaselinedProtocol):
        return None
    if (options.baseline is not None) == options.port:
        return str(options.baseline.resolve()) if options.baseline else None
    found = "no --baseline" if options.port else f"--baseline {options.baseline}"
    raise ProtocolError(
        f"{loaded.protocol.id}: baseline",
        expected="a port's own, or for the registered run the frozen one",
        found=f"{found} {'under' if options.port else 'without'} --port",
        todo=f"A port names a passed formal port of {loaded.protocol.baseline.protocol} with --baseline RUN.",
    )


def available_domains(
    loaded: LoadedProtocol, found: FoundInputs, *, port: bool
) -> tuple[tuple[str, ...], tuple[Deviation, ...]]:
    """All domains; a port runs the ones whose input is there and frozen, all denominators following."""
    problems: dict[str, str] = {source.domain: f"unfrozen: {source.reason}" for source in loaded.unfrozen}
    states = {state.name: state for state in found.states}
    for domain in loaded.protocol.domains:
        state = states[domain.input]
        if isinstance(state, Missing):
            problems.setdefault(domain.name, state.why)
        else:
            require_present(found, domain.input)  # an altered file is an error, also in a port
    if problems and not port:
        name, why = next(iter(problems.items()))
        raise ProtocolError(
            f"{loaded.protocol.id}: domain {name}",
            expected="the registered input, frozen",
            found=why,
            todo="A missing file: name its folder with --inputs DIR. An unfrozen domain: freeze it with its registered "
            "file. Either can only be left out under --port.",
        )
    kept = tuple(name for name in loaded.domains if name not in problems)
    if not kept:
        raise ProtocolError(
            f"inputs of {loaded.protocol.id}",
            expected="at least one domain's input",
            found="none",
            todo="Give the folder that holds them with --inputs DIR.",
        )
    return kept, tuple(
        Deviation(field=f"domains.{name}", registered="present", actual=f"left out ({why})")
        for name, why in problems.items()
    )


def spec_of(request: Request, loaded: LoadedProtocol, deviations: tuple[Deviation, ...]) -> RunSpec:
    """The run's own statement of what was asked for, with all deviations of a port."""
    return RunSpec(
        schema=1,
        run_id=request.run_id,
        protocol=request.protocol,
        registered_id=loaded.protocol.registered_id,
        protocol_digest=loaded.digest,
        tier=request.tier,
        grid=request.grid,
        placement=request.placement.id,
        domains=request.domains,
        port=request.port,
        deviations=deviations,
        threads=request.execution.threads,
    )


def loaded_for(request: Request) -> LoadedProtocol:
    """The request's protocol, from the tree in use; for a part that another program makes, what is derived from it.

    A process that replays may open no earlier run (decision 0004): the session that started it looked at them.
    """
    loaded = load_protocol(request.protocol, looks=False)
    return loaded if request.decoding == "registered" else part_protocol(loaded, request.decoding)
