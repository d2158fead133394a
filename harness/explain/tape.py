"""The uniform number of a step on both sides, from each side's own tape: a function of identity."""

from harness.canon import hex64
from harness.difference.side import Side, SideUnit
from harness.explain.aspects import Cell
from harness.records.explanation import NoTape, NotHeld, TapeSide, TapeStep
from harness.records.protocol import TapedProtocol
from harness.tapes.tape import Tape, uniform

NO_TAPE = "drawn under no tape"
NO_STEP = "the tokens part in no step"
NO_PROTOCOL = "its protocol isn't here under the side's digest"
NO_ACCOUNT = "frozen results hold no distance: it is the machine's own"


def tape_step(cell: Cell) -> TapeStep:
    """Z and u of the step on both sides."""
    one, other = (
        _side(side, unit, cell.condition, cell.step) for side, unit in zip((cell.a, cell.b), cell.units, strict=True)
    )
    return TapeStep(a=one, b=other)


def tape_of(side: Side, unit: SideUnit) -> Tape | None:
    """The tape that a side's unit is drawn under; None where it isn't, or where its protocol isn't at hand."""
    kind = side.registered.kind
    if not isinstance(kind, TapedProtocol) or side.registered.loaded is None:
        return None
    return Tape(kind.registered_id, unit.key.replicate)


def _side(side: Side, unit: SideUnit, condition: str, step: int | None) -> TapeSide | NoTape:
    if not isinstance(side.registered.kind, TapedProtocol):
        return NoTape(reason=NO_TAPE)
    tape = tape_of(side, unit)
    if tape is None or step is None:
        return NoTape(reason=NO_STEP if tape is not None else NO_PROTOCOL)
    z, account = tape.z(unit.key.source_id, step), unit.tapes.get(condition)
    return TapeSide(
        tape=f"{tape.registered_id} {tape.label}",
        z=hex64(z),
        u=uniform(z).hex(),
        u_decimal=uniform(z),
        nearest=NotHeld(reason=NO_ACCOUNT) if account is None else account.nearest_edge,
    )
