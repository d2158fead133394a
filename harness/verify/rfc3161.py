"""RFC 3161: the request for a time stamp over some bytes, and whether an authority's answer stamps them.

`rfc3161-client` makes the request, reads the answer, and verifies signature, chain and the certificate's usage. It is
the extra `anchor` and is loaded here alone. Nothing here reaches a network.
"""

import hashlib
import importlib.util
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from harness.errors import SessionError, TimestampError

SHA256 = "2.16.840.1.101.3.4.2.1"
GRANTED = 0
INTEGER, SEQUENCE = 0x02, 0x30
TODO = "Ask the authority again, with the request that lies beside the protocol."
_VERIFY, _REASON = re.compile(r'"Verify error: ([^"]+)"'), re.compile(r'reason: "([^"]+)"')
TRUST = "Name a file with the authority's certificates, its root among them, in PEM."


@dataclass(frozen=True, slots=True)
class Stamp:
    """A verified token. `at`: UTC, ISO 8601; `authority`: the signing certificate's subject; `serial`: its own, hex."""

    at: str
    authority: str
    serial: str


def require_client() -> None:
    """SessionError that names the extra where the package isn't installed."""
    if importlib.util.find_spec("rfc3161_client") is None:
        todo = "Install the extra: pip install -e '.[anchor]'."
        raise SessionError("time stamps", expected="rfc3161-client, which verifies tokens", found="none", todo=todo)


def make_request(message: bytes) -> bytes:
    """A request in DER: SHA-256 of the message, a fresh nonce, the authority's certificate asked for."""
    from rfc3161_client import HashAlgorithm, TimestampRequestBuilder  # noqa: PLC0415  needs the extra `anchor`

    builder = TimestampRequestBuilder().data(message).hash_algorithm(HashAlgorithm.SHA256)
    return bytes(builder.nonce(nonce=True).cert_request(cert_request=True).build().as_bytes())


def stamped(response: bytes, *, request: bytes, message: bytes, certificates: bytes, where: str) -> Stamp:
    """The stamp that a response puts on the message; TimestampError where it puts none, with what doesn't hold.

    The certificates must have been valid when the token says that it was made, not today.
    """
    answer = _parsed(response, where)
    imprint = answer.tst_info.message_imprint
    said = (imprint.hash_algorithm.dotted_string, imprint.message.hex())
    wanted = (SHA256, hashlib.sha256(message).hexdigest())
    if said != wanted:
        raise _no(f"{where}: imprint", f"SHA-256 {wanted[1]}", f"{said[0]} {said[1]}")
    nonce = nonce_of(request, where=where)
    if answer.tst_info.nonce != nonce:
        raise _no(f"{where}: nonce", f"{nonce:x}", _hex(answer.tst_info.nonce))
    _verify(answer, hashlib.sha256(message).digest(), certificates, where)
    at = answer.tst_info.gen_time.strftime("%Y-%m-%dT%H:%M:%SZ")
    return Stamp(at, _authority(answer, where), _hex(answer.tst_info.serial_number))


def _parsed(response: bytes, where: str) -> Any:
    from rfc3161_client import decode_timestamp_response  # noqa: PLC0415

    try:
        answer = decode_timestamp_response(response)
        if answer.status != GRANTED:
            raise _no(f"{where}: status", "granted", f"{answer.status} {' '.join(answer.status_string)}".strip())
        answer.tst_info.gen_time.isoformat()
    except ValueError as error:
        raise _no(where, "an RFC 3161 response with a token", str(error) or "other bytes") from error
    return answer


def _verify(answer: Any, digest: bytes, certificates: bytes, where: str) -> None:
    """Signature, chain to a certificate of the file at the token's time, and the signing certificate's usage."""
    from rfc3161_client import VerificationError, VerifierBuilder  # noqa: PLC0415

    listed = _certificates(certificates, where)
    roots = [one for one in listed if one.issuer == one.subject] or listed
    builder = VerifierBuilder(roots=roots, intermediates=[one for one in listed if one not in roots])
    try:
        builder.build().verify(answer, digest)
    except (VerificationError, ValueError) as error:
        said = _VERIFY.search(str(error)) or _REASON.search(str(error))  # of what OpenSSL says, the cause
        found = said[1] if said else str(error)
        raise _no(f"{where}: token", "a token that the named authority signed", found) from error


def _certificates(pem: bytes, where: str) -> list[Any]:
    from cryptography.x509 import load_pem_x509_certificates  # noqa: PLC0415  needs the extra `anchor`

    try:
        return list(load_pem_x509_certificates(pem))
    except ValueError as error:
        raise TimestampError(f"{where}: certificates", expected="PEM", found=str(error), todo=TRUST) from error


def _authority(answer: Any, where: str) -> str:
    """Subject of the certificate that signed, which is one of the token's own."""
    from cryptography.x509 import load_der_x509_certificate  # noqa: PLC0415

    (signer,) = answer.signed_data.signer_infos
    for one in map(load_der_x509_certificate, answer.signed_data.certificates):
        if (one.issuer, one.serial_number) == (signer.issuer, signer.serial_number):
            return one.subject.rfc4514_string()
    raise _no(f"{where}: token", "the signing certificate in it", "none")


def nonce_of(request: bytes, *, where: str) -> int:
    """The nonce of a request: its second integer, after the version (RFC 3161 2.4.1)."""
    outer = list(_items(request))
    if len(outer) != 1 or outer[0][0] != SEQUENCE:
        raise _no(f"{where}: request", "an RFC 3161 request", "other bytes")
    integers = [value for tag, value in _items(outer[0][1]) if tag == INTEGER]
    if len(integers) != 2:
        raise _no(f"{where}: request", "a request with a nonce", "none")
    return int.from_bytes(integers[1], "big")


def _items(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(tag, content) of each DER value of a row, up to the first that isn't whole."""
    at = 0
    while at + 2 <= len(data):
        tag, size, at = data[at], data[at + 1], at + 2
        if size & 0x80:
            more = size & 0x7F
            size, at = int.from_bytes(data[at : at + more], "big"), at + more
        if at + size > len(data):
            return
        yield tag, data[at : at + size]
        at += size


def _hex(value: int | None) -> str:
    return "none" if value is None else f"{value:x}"


def _no(where: str, expected: str, found: str) -> TimestampError:
    return TimestampError(where, expected=expected, found=found, todo=TODO)
