"""Tapes and their uniform numbers (R08 4.2): pure functions of tape, source and step, in any order.

The registered ID feeds tapes, the folder name of a protocol does not. NUL separates the parts of an identity, so no
part may hold one: two identities never give the same bytes.
"""

import hashlib
import re
from dataclasses import dataclass

from harness.canon import text_sha256
from harness.errors import ProtocolError

_LABEL = re.compile(r"T(0|[1-9][0-9]*)")


@dataclass(frozen=True, slots=True, order=True)
class Tape:
    """A tape of a registered protocol; `label` is `T0`, `T1`, ... ProtocolError for another label or a NUL."""

    registered_id: str
    label: str

    def __post_init__(self) -> None:
        _require_plain("registered_id", self.registered_id)
        if _LABEL.fullmatch(self.label) is None:
            raise ProtocolError(
                "tape", expected="T0, T1, ...", found=repr(self.label), todo="Name the tape as the protocol does."
            )

    @property
    def sha256(self) -> str:
        """SHA-256 of `{registered_id}/tape/{index}`: the published digest of the tape."""
        return text_sha256(f"{self.registered_id}/tape/{self.label[1:]}")

    @property
    def display_seed(self) -> int:
        """First 4 bytes of the digest, big-endian. For display alone: no value is made from it."""
        return int(self.sha256[:8], 16)

    def z(self, source_id: str, step: int) -> int:
        """z_t: first 8 bytes, big-endian, of SHA-256 of the identity; steps count from 0."""
        if step < 0:
            raise RuntimeError(f"steps count from 0, got {step}")
        _require_plain("source_id", source_id)
        identity = f"{self.registered_id}\0uniform\0{self.label}\0{source_id}\0{step}"
        return int.from_bytes(hashlib.sha256(identity.encode("utf-8")).digest()[:8], "big")

    def u(self, source_id: str, step: int) -> float:
        """u_t, binary64."""
        return uniform(self.z(source_id, step))


def uniform(z: int) -> float:
    """(z + 0.5) / 2**64 in binary64, z rounded to binary64 first: from 2**-65 to exactly 1.0 for the largest z.

    The open interval of clause 4.2 comes with the cast to float32 and the clamp of clause 4.3.
    """
    if not 0 <= z < 2**64:
        raise RuntimeError(f"z is a 64-bit unsigned integer, got {z}")
    return (float(z) + 0.5) / 2.0**64


def _require_plain(name: str, text: str) -> None:
    if "\0" in text:
        raise ProtocolError(
            name, expected="no NUL character", found=repr(text), todo="NUL separates the parts of an identity."
        )
