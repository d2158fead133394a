"""The candidate's filter of system calls, as instructions: what it answers to a call, on both machines."""

import struct

import pytest

from harness.sandbox.inside import restraint
from harness.sandbox.inside.restraint import ALLOW, KILL, MACHINES, REFUSE, filter_for

ARCH = {name: arch for name, (arch, _) in MACHINES.items()}


def answer(machine: str, call: int, *arguments: int, arch: int | None = None) -> int:
    """What the filter says to one call, by the kernel's rules for these four instructions."""
    filter_ = filter_for(machine)
    lines = list(struct.iter_unpack("=HBBI", filter_))
    data = struct.pack("=IIQ6Q", call, ARCH[machine] if arch is None else arch, 0, *(*arguments, *(0,) * 6)[:6])
    at = held = 0
    while True:
        code, then, otherwise, value = lines[at]
        at += 1
        if code == restraint.RETURN:
            return value
        if code == restraint.LOAD:
            held = struct.unpack_from("=I", data, value)[0]
        else:
            true = held == value if code == restraint.EQUAL else held >= value
            at += then if true else otherwise


CALLS = [
    *[pytest.param(name, (0, 0), REFUSE, id=name) for name in restraint.DENIED],
    pytest.param("prlimit64", (0, 7), ALLOW, id="own limits"),
    pytest.param("prlimit64", (1, 7), REFUSE, id="another's limits"),
    pytest.param("setpriority", (0, 0, 19), ALLOW, id="own priority"),
    pytest.param("setpriority", (0, 1, 19), REFUSE, id="another's priority"),
    pytest.param("setpriority", (1, 0, 19), REFUSE, id="a group's priority"),
    pytest.param("setpriority", (2, 0, 19), REFUSE, id="a user's priority"),
    pytest.param("ioprio_set", (1, 0, 0), ALLOW, id="own turn at the disk"),
    pytest.param("ioprio_set", (1, 1, 0), REFUSE, id="another's turn"),
    pytest.param("ioprio_set", (3, 0, 0), REFUSE, id="a user's turn"),
    pytest.param("prlimit64", (1 << 32, 7), ALLOW, id="a high half that the kernel drops"),
    pytest.param("prlimit64", (1 << 32 | 1, 7), REFUSE, id="a high half that hides nothing"),
    pytest.param("socket", (1, 1, 0), ALLOW, id="a socket"),
    pytest.param("socket", (40, 1, 0), REFUSE, id="a socket to the host"),
    pytest.param("socket", (1 << 32 | 40, 1, 0), REFUSE, id="such a socket in disguise"),
]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("name", "arguments", "expected"), CALLS)
def test_what_is_asked_of_the_kernel(machine, name, arguments, expected):
    """On others it is refused, on itself allowed."""
    assert answer(machine, MACHINES[machine][1][name], *arguments) == expected


@pytest.mark.parametrize("machine", MACHINES)
def test_another_machines_calls_end_the_process(machine):
    """Their numbers mean other calls."""
    assert answer(machine, 0, arch=0x40000003) == KILL


def test_x32_ends_the_process():
    """x86_64's second numbers would pass by every comparison."""
    assert answer("x86_64", 0x40000000 | 41, 40) == KILL
    assert answer("x86_64", 0) == ALLOW


def test_an_unknown_machine_has_none():
    """No guess: the numbers differ from machine to machine."""
    assert filter_for("riscv64") == b""
