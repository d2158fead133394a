"""What `ssh-keygen -Y sign` writes, read strictly (OpenSSH, PROTOCOL.sshsig). Knows bytes; knows no key and no run.

An armoured file is base64 of: `SSHSIG`, version 1, and five strings (key, namespace, reserved, hash, signature), each
after its length in four bytes. One file has one reading: no other text, no other base64 and no byte after the last.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness.errors import AttestationError

MAGIC, VERSION = b"SSHSIG", 1
HASHES = {b"sha256": hashlib.sha256, b"sha512": hashlib.sha512}
TODO = "Sign attestation.json again with `ssh-keygen -Y sign`."
_ARMOUR = re.compile(rb"-----BEGIN SSH SIGNATURE-----\n((?:[A-Za-z0-9+/=]+\n)+)-----END SSH SIGNATURE-----\n?")


@dataclass(frozen=True, slots=True)
class SshSignature:
    """An SSH signature's parts. `key` is the public key's blob, `signature` the blob that begins with its algorithm."""

    key: bytes
    namespace: bytes
    hash_name: bytes
    signature: bytes

    def signed_over(self, message: bytes) -> bytes:
        """The bytes that the key signed, if it signed this message."""
        parts = (self.namespace, b"", self.hash_name, HASHES[self.hash_name](message).digest())
        return MAGIC + b"".join(string(one) for one in parts)


def read_signature(armoured: bytes, *, where: str) -> SshSignature:
    """The signature in an armoured file; AttestationError for anything that ssh-keygen doesn't write."""
    match = _ARMOUR.fullmatch(armoured)
    if match is None:
        raise _not_one(where, "an armoured SSH signature", f"{len(armoured)} other bytes")
    raw = _decoded(match[1].replace(b"\n", b""), where)
    version = VERSION.to_bytes(4, "big")
    if not raw.startswith(MAGIC + version):
        raise _not_one(where, f"SSHSIG version {VERSION}", raw[:10].hex())
    key, namespace, reserved, hash_name, signature = read_strings(raw[len(MAGIC) + 4 :], 5, where=where)
    if reserved:
        raise _not_one(where, "an empty reserved field", f"{len(reserved)} bytes")
    if hash_name not in HASHES:
        raise _not_one(where, " or ".join(one.decode() for one in HASHES), repr(hash_name[:20]))
    return SshSignature(key, namespace, hash_name, signature)


def read_strings(data: bytes, count: int, *, where: str) -> Sequence[bytes]:
    """`count` strings, each after its length, and nothing more."""
    found: list[bytes] = []
    for _ in range(count):
        size, data = int.from_bytes(data[:4], "big") if len(data) >= 4 else -1, data[4:]
        if not 0 <= size <= len(data):
            raise _not_one(where, f"{count} strings", f"{len(found)} and a part")
        found.append(data[:size])
        data = data[size:]
    if data:
        raise _not_one(where, f"{count} strings", f"{len(data)} bytes after them")
    return found


def string(data: bytes) -> bytes:
    """Bytes after their length, as SSH writes them."""
    return len(data).to_bytes(4, "big") + data


def fingerprint(key: bytes) -> str:
    """A public key's blob as ssh-keygen names it: SHA256 and unpadded base64."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(key).digest()).decode().rstrip("=")


def _decoded(text: bytes, where: str) -> bytes:
    try:
        raw = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise _not_one(where, "base64", str(error)) from error
    if base64.b64encode(raw) != text:
        raise _not_one(where, "base64 in its one form", "another")
    return raw


def _not_one(where: str, expected: str, found: str) -> AttestationError:
    return AttestationError(where, expected=expected, found=found, todo=TODO)
