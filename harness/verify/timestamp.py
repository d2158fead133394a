"""The anchor in time of a protocol's digest: making the request, keeping an answer, and verifying what lies there.

What is stamped are the bytes of PROTOCOL.sha256. Without a token the timestamp is owed, which is said and is no
failure; a token that doesn't hold is one. Nothing here reaches a network.
"""

from pathlib import Path

from harness.canon import canonical_bytes, sha256_hex
from harness.errors import HarnessError, SessionError, TimestampError
from harness.files import read_bytes, write_atomic
from harness.protocols.anchor import (
    ANCHOR,
    CERTIFICATES,
    RECORD,
    REQUEST,
    RESPONSE,
    anchor_of,
    anchor_words,
)
from harness.protocols.load import PROTOCOL, LoadedProtocol, named_digest
from harness.records.revision import Anchor
from harness.records.verification import VerifiedLine
from harness.verify.ground import Ground, Lines, fails, holds, nothing, uncheckable
from harness.verify.rfc3161 import TODO, Stamp, make_request, require_client, stamped

STEP = "timestamp"
NO_TRUST = "against certificates.pem, which lies beside it: name the authority's own with --authority"


def request_for(loaded: LoadedProtocol) -> bytes:
    """The request over the protocol's digest: the one that lies there, or a new one, written with PROTOCOL.sha256.

    TimestampError where the digest is anchored already.
    """
    require_client()
    if (anchor := anchor_of(loaded)) is not None:
        todo = "It stays; a revision of the protocol has a digest of its own."
        where = str(loaded.folder / ANCHOR)
        raise TimestampError(where, expected="no anchor yet", found=f"one of {anchor.at}", todo=todo)
    path = loaded.folder / ANCHOR / REQUEST
    if not path.exists():
        write_atomic(loaded.folder / PROTOCOL, _message(loaded))
        write_atomic(path, make_request(_message(loaded)))
    return read_bytes(path, what="request for a time stamp")


def keep(loaded: LoadedProtocol, response: bytes, certificates: bytes) -> Anchor:
    """Verify an answer to the request that lies there, and put it beside the digest; TimestampError keeps nothing."""
    request = request_for(loaded)
    folder = loaded.folder / ANCHOR
    stamp = stamped(
        response, request=request, message=_message(loaded), certificates=certificates, where=str(folder / RESPONSE)
    )
    anchor = Anchor(
        schema=1,
        protocol_digest=loaded.digest,
        request_sha256=sha256_hex(request),
        response_sha256=sha256_hex(response),
        certificates_sha256=sha256_hex(certificates),
        authority=stamp.authority,
        serial=stamp.serial,
        at=stamp.at,
    )
    for name, data in ((CERTIFICATES, certificates), (RESPONSE, response), (RECORD, canonical_bytes(anchor))):
        write_atomic(folder / name, data)
    return anchor


def timestamp_holds(ground: Ground) -> Lines:
    """One line, always: stamped when and by whom, owed, not checkable here, or what doesn't hold."""
    yield timestamp_line(ground.loaded, ground.authority)


def timestamp_line(loaded: LoadedProtocol, authority: bytes | None = None) -> VerifiedLine:
    """The state of a protocol digest in time. `authority`: certificates (PEM) that somebody trusts, in the place of
    those beside the token.
    """
    where = f"protocol {loaded.protocol.id}: {ANCHOR}"
    try:
        anchor = anchor_of(loaded)
        if anchor is None:
            return nothing(STEP, where, "a token over the protocol digest", anchor_words(loaded))
        require_client()
        stamp = _verified(loaded, authority)
    except SessionError as error:
        return uncheckable(STEP, where, error.expected, error.found, error.todo)
    except HarnessError as error:
        return fails(STEP, error.where, error.expected, error.found, error.todo)
    if (stamp.at, stamp.authority, stamp.serial) != (anchor.at, anchor.authority, anchor.serial):
        found = f"{anchor.at}, {anchor.authority}, {anchor.serial}"
        return fails(STEP, f"{where}/{RECORD}", f"{stamp.at}, {stamp.authority}, {stamp.serial}", found, TODO)
    said = f"digest {loaded.digest} stamped at {stamp.at} by {stamp.authority}"
    return holds(STEP, where, said, said if authority is not None else f"{said}, {NO_TRUST}")


def _verified(loaded: LoadedProtocol, authority: bytes | None) -> Stamp:
    folder = loaded.folder / ANCHOR
    read = {name: read_bytes(folder / name, what="file of an anchor") for name in (REQUEST, RESPONSE, CERTIFICATES)}
    return stamped(
        read[RESPONSE],
        request=read[REQUEST],
        message=_message(loaded),
        certificates=read[CERTIFICATES] if authority is None else authority,
        where=_name(folder),
    )


def _name(folder: Path) -> str:
    return f"{ANCHOR}/{RESPONSE} of {folder.parent.name}"


def _message(loaded: LoadedProtocol) -> bytes:
    return named_digest(loaded.digest).encode("ascii")
