"""The files of an anchor in time beside a protocol, and what they say in words. Verifies no token.

anchor/ holds request.tsq (the RFC 3161 request over the bytes of PROTOCOL.sha256), response.tsr (the answer),
certificates.pem (what it was verified against) and anchor.json. A request without an answer is a timestamp owed.
"""

from harness.canon import canonical_bytes, sha256_hex
from harness.errors import ProtocolError
from harness.files import read_bytes
from harness.protocols.load import LoadedProtocol
from harness.records.base import decode_json
from harness.records.revision import Anchor

ANCHOR = "anchor"
REQUEST, RESPONSE, CERTIFICATES, RECORD = "request.tsq", "response.tsr", "certificates.pem", "anchor.json"
OWED = "timestamp owed: no authority has stamped this protocol digest"
ASKED = "timestamp owed: a request lies beside the protocol, and no answer to it"
TODO = "An anchor is evidence and isn't edited: take the folder back from version control."


def anchor_of(loaded: LoadedProtocol) -> Anchor | None:
    """The anchor of a protocol's digest, its files under their digests; None where the timestamp is owed.

    ProtocolError where one of the files was altered, is missing, or is of another protocol digest.
    """
    folder = loaded.folder / ANCHOR
    if not any((folder / name).exists() for name in (RECORD, RESPONSE)):
        return None
    path = folder / RECORD
    data = read_bytes(path, what="record of an anchor")
    anchor = decode_json(data, Anchor, where=path, error=ProtocolError, todo=TODO)
    pairs = [
        (f"{path}: canonical JSON", sha256_hex(canonical_bytes(anchor)), sha256_hex(data)),
        (f"{path}: protocol_digest", loaded.digest, anchor.protocol_digest),
    ]
    files = {REQUEST: anchor.request_sha256, RESPONSE: anchor.response_sha256, CERTIFICATES: anchor.certificates_sha256}
    for name, expected in files.items():
        pairs.append((str(folder / name), expected, sha256_hex(read_bytes(folder / name, what="file of an anchor"))))
    for where, expected, found in pairs:
        if expected != found:
            raise ProtocolError(where, expected=expected, found=found, todo=TODO)
    return anchor


def anchor_words(loaded: LoadedProtocol) -> str:
    """Whether the digest is anchored, as a page says it that verifies no token."""
    anchor = anchor_of(loaded)
    if anchor is None:
        return ASKED if (loaded.folder / ANCHOR / REQUEST).is_file() else OWED
    said = f"anchored at {anchor.at} by {anchor.authority}, serial {anchor.serial}, as {RECORD} says"
    return f"{said}; the token is verified by `verify` alone"
