"""Between the fork and the first secret: what the checker does to itself before it reads what no candidate may see.

It hides its memory, takes its output for itself, and reads the payload. It judges nothing.
"""

from __future__ import annotations

import os

try:
    import ctypes
except ImportError:
    ctypes = None  # type: ignore[assignment]


def hide() -> str:
    """Make this process's memory, descriptors and environment unreadable to its own user; else say why not."""
    if ctypes is None:
        return "no_ctypes"
    prctl = ctypes.CDLL(None).prctl
    set_dumpable, get_dumpable = 4, 3
    if prctl(set_dumpable, 0, 0, 0, 0) != 0 or prctl(get_dumpable, 0, 0, 0, 0) != 0:
        return "dumpable"
    return ""


def own_output() -> int:
    """The container's standard output on a descriptor of its own; what a test prints goes nowhere."""
    say = os.dup(1)
    nothing = os.open("/dev/null", os.O_RDWR)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    return say


def read_payload() -> bytes:
    """Length and bytes; empty where nobody is there any more."""
    return _read_input(int.from_bytes(_read_input(8), "big"))


def _read_input(size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = os.read(0, min(size - len(data), 1 << 20))
        if not part:
            return b""
        data += part
    return bytes(data)
