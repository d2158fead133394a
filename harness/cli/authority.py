"""Asking a time-stamp authority that a user names, over HTTP (RFC 3161 3.4). The one place that reaches it."""

from harness.errors import TimestampError

TIMEOUT_S = 30.0
LARGEST = 1 << 20  # bytes of an answer; a token with its certificates has a few thousand
QUERY, REPLY = "application/timestamp-query", "application/timestamp-reply"
TODO = "Name another authority, or take the request there by other means and bring its answer: --response FILE."


def ask(url: str, request: bytes) -> bytes:
    """The authority's answer, whatever it says; TimestampError where there is none."""
    if not url.startswith(("https://", "http://")):
        raise _no(url, "an http or https address", "another")
    import urllib.request  # noqa: PLC0415 - brings sockets, which a verb that only reads never has

    query = urllib.request.Request(url, data=request, headers={"Content-Type": QUERY, "Accept": REPLY})  # noqa: S310
    try:
        with urllib.request.urlopen(query, timeout=TIMEOUT_S) as answer:  # noqa: S310  the scheme was looked at
            kind, data = answer.headers.get_content_type(), answer.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        raise _no(url, "an answer", str(error)) from error
    if kind != REPLY or len(data) > LARGEST:
        raise _no(url, f"{REPLY} of at most {LARGEST} bytes", f"{kind}, {len(data)} bytes or more")
    return bytes(data)


def _no(url: str, expected: str, found: str) -> TimestampError:
    return TimestampError(url, expected=expected, found=found, todo=TODO)
