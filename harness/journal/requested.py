"""How much memory an allocator was asked for, as far as its own message says it. Knows messages and no allocator.

torch and NumPy round to two decimals of a unit from 1 KiB on: such words are kept as they are, and no number of bytes
is made of them.
"""

import re

from harness.records.attempts import ExactRequest, Requested, RoundedRequest, UnsaidRequest

_ASKED = re.compile(r"(?:[Tt]ried to allocate|Unable to allocate) ((\d+(?:\.\d+)?) ?(bytes|[KMGTPE]iB))\b")


def requested_of(message: str) -> Requested:
    """What the message of a failed allocation says of its size."""
    found = _ASKED.search(message)
    if found is None:
        return UnsaidRequest()
    words, number, unit = found.groups()
    return ExactRequest(bytes=int(number), words=words) if _exact(number, unit) else RoundedRequest(words=words)


def first_line(message: str) -> str:
    """The first line of a message as ASCII, so that a record and a terminal can hold it."""
    line = message.strip().split("\n")[0]
    return line.encode("ascii", "backslashreplace").decode("ascii")


def _exact(number: str, unit: str) -> bool:
    return unit == "bytes" and number.isdigit()
