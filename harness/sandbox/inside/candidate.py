"""The candidate's process: loads one program and answers calls, and holds nothing that a candidate may not see.

It is forked before the checker has read anything, so neither nonce nor tests were ever in its memory. Everything in
it belongs to the candidate, who may alter all of it: what it sends are claims, and the checker treats them so.
"""

# ruff: noqa: BLE001, S102, S112, PTH123, PTH208 - it runs code that may raise anything, and every start pays for imports

from __future__ import annotations

import os
import random
import resource
import sys
import types

from harness.sandbox.inside import codec, restraint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

CALLS, REPLIES = 3, 4  # descriptors of the two pipes
EXCEPTIONS = frozenset(
    one for one in vars(sys.modules["builtins"]).values() if isinstance(one, type) and issubclass(one, BaseException)
)


def live(calls: int, replies: int, output: int) -> NoReturn:
    """The life of the process, from the fork to its end. Takes the ends of its pipes."""
    try:
        _settle(calls, replies, output)
        _serve(os.getpid())
    finally:
        os._exit(1)


def _settle(calls: int, replies: int, output: int) -> None:
    """Leave the checker's session and keep five descriptors: /dev/null, output twice, calls, replies.

    Takes on the restraint before anything of a candidate is there.
    """
    os.setsid()
    nothing = os.open("/dev/null", os.O_RDONLY)
    # All sources lie above the five places: a place is never overwritten before it was read.
    high = [os.dup2(fd, 64 + place) for place, fd in enumerate((nothing, output, output, calls, replies))]
    for place, fd in enumerate(high):
        os.dup2(fd, place, inheritable=place < CALLS)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > REPLIES:
            _close(int(name))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    restraint.restrain()
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("1000")  # memory runs out here, not in the checker
    except OSError:
        return


def _close(fd: int) -> None:
    try:
        os.close(fd)
    except OSError:  # the listing's own descriptor
        return


def _serve(own: int) -> None:
    token, program, entry_point = codec.decode(_read_frame())
    module = types.ModuleType("candidate")
    sys.modules["candidate"] = module
    try:
        code = compile(program, "<candidate>", "exec", dont_inherit=True)
    except BaseException as error:  # whatever compile says, the program isn't one
        _send(own, ("syntax", token, _name(error)))
        return
    random.seed(0)
    reply = _answer(token, lambda: exec(code, module.__dict__))
    if reply[0] == "value" and not callable(module.__dict__.get(entry_point)):
        reply = ("missing", token, "entry_point_missing")
    _send(own, reply)
    while True:
        token, arguments, keywords = codec.decode(_read_frame())
        _send(own, _answer(token, lambda: module.__dict__[entry_point](*arguments, **keywords)))  # noqa: B023


def _answer(token: bytes, work: Callable[[], Any]) -> tuple[Any, ...]:
    try:
        value = work()
    except BaseException as error:  # SystemExit too: the checker says what it means
        return ("raised", token, _name(error))
    return ("value", token, value)


def _send(own: int, reply: tuple[Any, ...]) -> None:
    """One frame, from the process that was asked: a forked child that falls through to here ends."""
    if os.getpid() != own:
        os._exit(0)
    try:
        data = codec.encode(reply)
    except codec.UnsendableError as error:
        data = codec.encode(("unsendable", reply[1], str(error)))
    except BaseException as error:  # no memory, no stack: the call has no value
        data = codec.encode(("raised", reply[1], _name(error)))
    _flush()
    _write(codec.frame(data))


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:  # the candidate may have put anything there
            continue


def _name(error: BaseException) -> str:
    base = codec.base_of(type(error), EXCEPTIONS)
    return "BaseException" if base is None else base.__name__


def _read_frame() -> bytes:
    return _read(int.from_bytes(_read(4), "big"))


def _read(size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = os.read(CALLS, min(size - len(data), 1 << 20))
        if not part:
            os._exit(0)  # the checker is gone
        data += part
    return bytes(data)


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(REPLIES, view) :]
