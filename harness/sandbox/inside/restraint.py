"""What a candidate's processes may ask of the kernel: a filter of system calls beside the engine's own.

It keeps a candidate from the scheduling and the limits of the process that judges it, and from sockets that lead out of
a network namespace. The filter stays with all that the candidate starts. It knows two machines; on another one, or
where the kernel takes no filter, there is none, and the contract holds without it.
"""

from __future__ import annotations

import os
import struct
import sys

try:
    import ctypes
except ImportError:  # then the checker is unfit and nothing of a candidate runs
    ctypes = None  # type: ignore[assignment]

DENIED = ("sched_setparam", "sched_setscheduler", "sched_setaffinity", "sched_setattr", "io_uring_setup")
# Of these, only calls whose first arguments are as given: on the caller itself. And of sockets, all but one family.
OWN = {"prlimit64": (0,), "setpriority": (0, 0), "ioprio_set": (1, 0)}
AF_VSOCK = 40  # the host of a virtual machine, past every network namespace
MACHINES = {
    "x86_64": (
        0xC000003E,
        {
            "sched_setparam": 142,
            "sched_setscheduler": 144,
            "sched_setaffinity": 203,
            "sched_setattr": 314,
            "io_uring_setup": 425,
            "prlimit64": 302,
            "setpriority": 141,
            "ioprio_set": 251,
            "socket": 41,
        },
    ),
    "aarch64": (
        0xC00000B7,
        {
            "sched_setparam": 118,
            "sched_setscheduler": 119,
            "sched_setaffinity": 122,
            "sched_setattr": 274,
            "io_uring_setup": 425,
            "prlimit64": 261,
            "setpriority": 140,
            "ioprio_set": 30,
            "socket": 198,
        },
    ),
}
X32 = 0x40000000  # x86_64's calls by other numbers
LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06  # the kernel's classic BPF
ALLOW, REFUSE, KILL = 0x7FFF0000, 0x00050000 | 1, 0x80000000  # 1: EPERM
NUMBER_AT, MACHINE_AT, ARGUMENTS_AT = 0, 4, 16


def restrain() -> bool:
    """Put the filter in force for this process and all that come of it; whether it is."""
    data = filter_for(os.uname().machine)
    if not data or ctypes is None:
        return False
    kept = ctypes.create_string_buffer(data, len(data))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(data) // 8, ctypes.addressof(kept)))
    prctl = ctypes.CDLL(None).prctl
    prctl.argtypes = (ctypes.c_int, *(ctypes.c_ulong,) * 4)
    no_new_privileges, set_seccomp, by_filter = 38, 22, 2
    if prctl(no_new_privileges, 1, 0, 0, 0) != 0:
        return False
    return bool(prctl(set_seccomp, by_filter, ctypes.addressof(program), 0, 0) == 0)


def filter_for(machine: str) -> bytes:
    """The filter's instructions, 8 bytes each; empty for a machine whose numbers aren't known here."""
    if machine not in MACHINES or sys.maxsize < 1 << 32 or sys.byteorder != "little":
        return b""
    arch, numbers = MACHINES[machine]
    lines = [_line(LOAD, MACHINE_AT), _line(EQUAL, arch, 1, 0), _line(RETURN, KILL), _line(LOAD, NUMBER_AT)]
    if machine == "x86_64":
        lines += [_line(AT_LEAST, X32, 0, 1), _line(RETURN, KILL)]
    for name in DENIED:
        lines += [_line(EQUAL, numbers[name], 0, 1), _line(RETURN, REFUSE)]
    for name, arguments in OWN.items():
        lines += _only(numbers[name], arguments)
    lines += [_line(EQUAL, numbers["socket"], 0, 4), _line(LOAD, ARGUMENTS_AT)]
    lines += [_line(EQUAL, AF_VSOCK, 0, 1), _line(RETURN, REFUSE), _line(RETURN, ALLOW)]
    return b"".join([*lines, _line(RETURN, ALLOW)])


def _only(number: int, arguments: tuple[int, ...]) -> list[bytes]:
    """Of one call, those with these first arguments. They are C ints: the kernel reads no more than the low half."""
    lines = []
    for place, value in enumerate(arguments):
        lines += [_line(LOAD, ARGUMENTS_AT + 8 * place), _line(EQUAL, value, 1, 0), _line(RETURN, REFUSE)]
    lines.append(_line(RETURN, ALLOW))
    return [_line(EQUAL, number, 0, len(lines)), *lines]


def _line(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("=HBBI", code, then, otherwise, value)
