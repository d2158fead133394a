"""What a row consumed of a tape: noted value by value where they are used, and made again from identity to compare."""

import hashlib
from dataclasses import dataclass, field
from typing import Any

from harness.canon import hex64
from harness.records.tapes import ConsumedValues
from harness.tapes.tape import Tape, uniform

FIRST = 8  # R08 4.3: the first eight values of each output


@dataclass(slots=True)
class Consumption:
    """Running account of the z that one row really consumed, in the order in which it did."""

    _count: int = 0
    _first: list[int] = field(default_factory=list)
    _hash: Any = field(default_factory=hashlib.sha256)

    def take(self, z: int) -> None:
        """Note one consumed value, 0 <= z < 2**64."""
        self._hash.update(z.to_bytes(8, "big"))
        self._count += 1
        if len(self._first) < FIRST:
            self._first.append(z)

    def record(self) -> ConsumedValues:
        """The account so far."""
        return ConsumedValues(
            count=self._count,
            first_z=tuple(hex64(z) for z in self._first),
            first_u=tuple(uniform(z).hex() for z in self._first),
            sha256=self._hash.hexdigest(),
        )


def registered_consumption(tape: Tape, source_id: str, count: int) -> ConsumedValues:
    """What a row of `count` tokens must have consumed: steps 0 to count - 1 of its tape and source."""
    consumption = Consumption()
    for step in range(count):
        consumption.take(tape.z(source_id, step))
    return consumption.record()


def consumption_differences(found: ConsumedValues, tape: Tape, source_id: str, count: int) -> tuple[str, ...]:
    """Every field of a row's account that isn't what tape, source and length say; empty where all are."""
    expected = registered_consumption(tape, source_id, count)
    return tuple(
        f"{name}: expected {getattr(expected, name)}, found {getattr(found, name)}"
        for name in ConsumedValues.__struct_fields__
        if getattr(expected, name) != getattr(found, name)
    )
