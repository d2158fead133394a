"""A study under tapes must agree with itself: its tapes are its own, and every grid says which of them it has."""

from collections.abc import Sequence

from harness.protocols.check_runs import check_same_process
from harness.protocols.check_taped import check_loop, check_sampler, check_tapes
from harness.protocols.require import require
from harness.records.protocol import TapedStudyProtocol

AT_LEAST = 2  # one tape shows nothing of what the numbers that were drawn had to do with a result
RULE = "icdf-v1"
COOLEST, HOTTEST = 0.01, 100.0  # beyond them float32 leaves one ID, or none that the logits have a say in
# R08 5.1: token by token, text, stop state; and that both were drawn under the same tape.
SAME_PROCESS = ("tape", "prompt_sha256", "uniforms_sha256", "generated_ids", "text", "eos", "truncated")
# R08 5.3, in the document's order.
CROSS_PROCESS = ("protocol", "model_revision", "generation_contract", *SAME_PROCESS, "rng_before")


def check_taped_study(protocol: TapedStudyProtocol, where: str) -> None:
    """Tapes follow from the study's ID; the formal grid has all, the others the first of them; one is drawn again."""
    expected = tapes_named_by(protocol.id)
    require(
        protocol.registered_id == expected, f"{where}: registered_id", expected=expected, found=protocol.registered_id
    )
    check_tapes(protocol, where)
    check_sampler(protocol, where)
    check_loop(protocol, where)
    _check_contract(protocol, where)
    labels = tuple(tape.label for tape in protocol.decode.register.tapes)
    for name, grid in protocol.grids.items():
        found = grid.replicates
        wanted = labels if name == protocol.tier_grids["formal"] else labels[: max(1, len(found))]
        require(found == wanted, f"{where}: grids.{name}.replicates", expected=wanted, found=found)
    _check_required(protocol, where)
    _check_smoke(protocol, where)
    for name in ("same_process_replay", "placement_equivalence", "independent_replay"):
        needed = CROSS_PROCESS if name == "independent_replay" else SAME_PROCESS
        check_fields(getattr(protocol, name).fields, needed, CROSS_PROCESS, f"{where}: {name}.fields")
    check_same_process(protocol, where)


def tapes_named_by(protocol_id: str) -> str:
    """The registered ID that a study's tapes follow from: its own ID, and no word that its author tries out."""
    return f"{protocol_id}-v1"


def check_fields(found: Sequence[str], needed: Sequence[str], readable: Sequence[str], where: str) -> None:
    """ProtocolError where a rule of a study compares less than it must, or something that no cell has."""
    strange = [field for field in found if field not in readable]
    require(not strange, where, expected=f"of {', '.join(readable)}", found=strange)
    lacking = [field for field in needed if field not in found]
    require(not lacking, where, expected=f"{', '.join(needed)} among them", found=f"no {', '.join(lacking)}")


def _check_contract(protocol: TapedStudyProtocol, where: str) -> None:
    """The rule that draws no filtered ID, tapes that are the author's, numbers that are some."""
    contract = protocol.decode
    pairs: tuple[tuple[str, object, object], ...] = (
        ("decode.sampler.rule", RULE, contract.sampler.rule),
        ("decode.register.origin", "ours", contract.register.origin),
    )
    for name, expected, found in pairs:
        require(expected == found, f"{where}: {name}", expected=expected, found=found)
    heat, bounds = contract.sampler.temperature, f"from {COOLEST} to {HOTTEST}"
    require(COOLEST <= heat <= HOTTEST, f"{where}: decode.sampler.temperature", expected=bounds, found=heat)


def _check_required(protocol: TapedStudyProtocol, where: str) -> None:
    """R08 4: in float32 the loop's argmax is `generate`'s, so no study there may leave it at a record."""
    exact, found = protocol.execution.dtype == "float32", protocol.loop_equivalence
    require(found == "required" or not exact, f"{where}: loop_equivalence", expected="required", found=found)


def _check_smoke(protocol: TapedStudyProtocol, where: str) -> None:
    """Smoke has tapes enough to see whether they part, and a fresh process draws under all of them."""
    name, apart = protocol.tier_grids["smoke"], protocol.independent_replay.grid
    tapes, again = protocol.grids[name].replicates, protocol.grids[apart].replicates
    count = len(tapes)
    require(count >= AT_LEAST, f"{where}: grids.{name}.replicates", expected=f"{AT_LEAST} tapes or more", found=count)
    least = f"{count} tapes or more, as in smoke"
    require(len(again) >= count, f"{where}: grids.{apart}.replicates", expected=least, found=len(again))
