"""Whether a public key made an SSH signature: Ed25519, RSA with SHA-2, and ECDSA, by the `cryptography` package.

The package is the extra `attest` and is loaded here alone, when a signature is to be verified.
"""

import base64
import importlib.util
from typing import Any

from harness.errors import AttestationError, SessionError
from harness.verify.sshsig import SshSignature, read_strings

ED25519, RSA = b"ssh-ed25519", b"ssh-rsa"
ECDSA = {b"ecdsa-sha2-nistp256": 256, b"ecdsa-sha2-nistp384": 384, b"ecdsa-sha2-nistp521": 512}
RSA_SIGNATURES = {b"rsa-sha2-256": 256, b"rsa-sha2-512": 512}
RSA_BITS = 2048
TYPES = (ED25519, RSA, *ECDSA)


def require_cryptography() -> None:
    """SessionError that names the extra where the package isn't installed."""
    if importlib.util.find_spec("cryptography") is None:
        todo = "Install the extra: pip install -e '.[attest]'."
        raise SessionError("--signers", expected="cryptography, which verifies signatures", found="none", todo=todo)


def key_type(key: bytes) -> bytes:
    """The type that a public key's blob begins with; empty where it begins with none."""
    size = int.from_bytes(key[:4], "big")
    return key[4 : 4 + size] if 0 < size <= len(key) - 4 else b""


def made_by(found: SshSignature, message: bytes, *, where: str) -> bool:
    """Whether the signature's own key made it over this message; AttestationError where key or signature isn't one."""
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415  needs the extra `attest`

    kind = key_type(found.key)
    algorithm, value = read_strings(found.signature, 2, where=where)
    if algorithm not in (RSA_SIGNATURES if kind == RSA else (kind,)):
        expected = " or ".join(one.decode("ascii", "replace") for one in (RSA_SIGNATURES if kind == RSA else (kind,)))
        raise AttestationError(where, expected=expected, found=repr(algorithm[:40]), todo="Sign it again.")
    try:
        _verify(_loaded(found.key, kind, where), kind, algorithm, value, found.signed_over(message))
    except InvalidSignature:
        return False
    return True


def _loaded(key: bytes, kind: bytes, where: str) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import load_ssh_public_key  # noqa: PLC0415

    if kind not in TYPES:
        raise RuntimeError(f"made_by takes a key of {TYPES}, got {kind!r}")
    try:
        loaded: Any = load_ssh_public_key(kind + b" " + base64.b64encode(key))
    except (ValueError, NotImplementedError, UnsupportedAlgorithm) as error:
        raise AttestationError(
            where, expected=f"a {kind.decode()} key", found=str(error), todo="Sign it again."
        ) from error
    if kind == RSA and loaded.key_size < RSA_BITS:
        expected, found = f"an RSA key of {RSA_BITS} bits or more", f"{loaded.key_size}"
        raise AttestationError(where, expected=expected, found=found, todo="Sign it with another key.")
    return loaded


def _verify(key: Any, kind: bytes, algorithm: bytes, value: bytes, data: bytes) -> None:
    """InvalidSignature where the key didn't sign these bytes."""
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec, padding, utils  # noqa: PLC0415

    digests = {256: hashes.SHA256(), 384: hashes.SHA384(), 512: hashes.SHA512()}
    if kind == ED25519:
        key.verify(value, data)
    elif kind == RSA:
        key.verify(value, data, padding.PKCS1v15(), digests[RSA_SIGNATURES[algorithm]])
    else:
        one, other = (int.from_bytes(part, "big", signed=True) for part in read_strings(value, 2, where="signature"))
        if one <= 0 or other <= 0:
            raise InvalidSignature
        key.verify(utils.encode_dss_signature(one, other), data, ec.ECDSA(digests[ECDSA[kind]]))
