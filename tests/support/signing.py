"""Keys and SSH signatures as ssh-keygen makes them, by the `cryptography` package: written here from OpenSSH's
PROTOCOL.sshsig, not with the reader under test.
"""

import base64
import hashlib
import struct
from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

NAMESPACE = "attestation@pregate"


def packed(*parts: bytes) -> bytes:
    """Strings, each after its length."""
    return b"".join(struct.pack(">I", len(one)) + one for one in parts)


def armoured(raw: bytes) -> bytes:
    """70 columns of base64 between the two lines."""
    text = base64.b64encode(raw)
    rows = [text[at : at + 70] for at in range(0, len(text), 70)]
    return b"\n".join([b"-----BEGIN SSH SIGNATURE-----", *rows, b"-----END SSH SIGNATURE-----", b""])


@dataclass(frozen=True)
class Key:
    """A private key and what it signs."""

    private: Any

    @property
    def public(self) -> str:
        """`type base64`"""
        return self.private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()

    @property
    def blob(self) -> bytes:
        """The public key's bytes."""
        return base64.b64decode(self.public.split()[1])

    @property
    def fingerprint(self) -> str:
        """As ssh-keygen -l names it."""
        return "SHA256:" + base64.b64encode(hashlib.sha256(self.blob).digest()).decode().rstrip("=")

    def line(self, who: str = "alice@example.org", options: str = "") -> str:
        """A line of a file of signers."""
        return f"{who} {options + ' ' if options else ''}{self.public}\n"

    def sign(self, message: bytes, **changed: Any) -> bytes:
        """The armoured signature; `changed` are parts of it that are otherwise than ssh-keygen makes them."""
        hash_name = changed.get("hash_name", "sha512")
        hashed = changed.get("hashed") or hashlib.new(hash_name, message).digest()
        names = (changed.get("namespace", NAMESPACE).encode(), changed.get("reserved", b""), hash_name.encode())
        algorithm, value = self._made(b"SSHSIG" + packed(*names, hashed))
        inner = packed(changed.get("algorithm", algorithm), value)
        raw = b"SSHSIG" + struct.pack(">I", changed.get("version", 1))
        raw += packed(changed.get("public", self.blob), *names, inner) + changed.get("after", b"")
        return armoured(raw)

    def _made(self, data: bytes) -> tuple[bytes, bytes]:
        if isinstance(self.private, ed25519.Ed25519PrivateKey):
            return b"ssh-ed25519", self.private.sign(data)
        if isinstance(self.private, rsa.RSAPrivateKey):
            return b"rsa-sha2-512", self.private.sign(data, padding.PKCS1v15(), hashes.SHA512())
        one, other = utils.decode_dss_signature(self.private.sign(data, ec.ECDSA(hashes.SHA256())))
        return b"ecdsa-sha2-nistp256", packed(*(n.to_bytes(n.bit_length() // 8 + 1, "big") for n in (one, other)))


def ed25519_key() -> Key:
    """A new Ed25519 key."""
    return Key(ed25519.Ed25519PrivateKey.generate())


def rsa_key(bits: int = 2048) -> Key:
    """A new RSA key."""
    return Key(rsa.generate_private_key(65537, bits))


def ecdsa_key() -> Key:
    """A new ECDSA key on P-256."""
    return Key(ec.generate_private_key(ec.SECP256R1()))
