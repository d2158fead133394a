"""The container's first process: judges one candidate against one task's tests and says so in one line.

Order is its safety. It forks the candidate's process before it has read anything; makes itself unreadable to its own
user; and only then reads nonce, program, prompt and tests. It runs prompt and test before it hands the program over:
what is the task's own fault has shown by then, and later only a first question that can't be put is. What comes from
the candidate is plain values (see codec); what leaves the container is three lines: `ready`, `started`, and a JSON
object of fixed words, a nonce and numbers. No text of a test, message or traceback is in it. PID 1 can't be killed from
inside its own PID namespace.
"""

# ruff: noqa: BLE001, S102, S112, PTH123, PLC0415 - it runs code that may raise anything, and every start pays for imports

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # `signal` brings `enum`: a third of all that is imported here
import os
import random
import resource
import sys
import time

from harness.sandbox.inside import candidate, channel, codec, door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType
    from typing import Any, NoReturn

PASSED, NOT_PASSED, UNFIT = 0, 1, 2  # exit codes
BUILTIN = {one.__name__: one for one in candidate.EXCEPTIONS}
OOM_COUNTS = ("/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory.events")  # v1, v2
UNSENDABLE = ("too_large", "too_deep", "not_plain")
ENDS_A_LOOP = (StopIteration, StopAsyncIteration)  # raised into a test, they would end its loop without a word


def main(_modules: object) -> NoReturn:
    """Fork, hide, read, judge. Ends the process."""
    os.chdir("/")
    sys.path[:] = [path for path in sys.path if path]  # nothing is ever imported from a place that can be written
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))  # all inside alike: nobody can be pushed back further
    calls, replies, output = os.pipe(), os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        candidate.live(calls[0], replies[1], output[1])
    for fd in (calls[0], replies[1], output[1]):
        os.close(fd)
    say = door.own_output()
    unfit = door.hide()
    os.write(say, f"unfit {unfit}\n".encode("ascii") if unfit else b"ready\n")
    payload = b"" if unfit else door.read_payload()
    os.dup2(1, 0)
    if not payload:
        os._exit(UNFIT)
    Checker(codec.decode(payload), channel.Channel(pid, calls[1], replies[0], output[0]), say).run()


def describe(modules: tuple[tuple[str, str], ...]) -> None:
    """The probe: hide as the checker does, say which Python this is, and give the judging program as its code."""
    import binascii
    import marshal

    unfit = door.hide()
    version = ".".join(str(part) for part in sys.version_info[:3])
    name = {"cpython": "CPython", "pypy": "PyPy"}.get(sys.implementation.name, sys.implementation.name)
    sys.stdout.write(f"unfit {unfit}\n" if unfit else f"fit {name} {version}\n")
    compiled = tuple((name, compile(source, name, "exec", dont_inherit=True)) for name, source in modules)
    sys.stdout.write(binascii.hexlify(marshal.dumps(("main", compiled))).decode("ascii") + "\n")


class Checker:
    """One candidate's judge: its clock, its test, and the way out."""

    def __init__(self, payload: dict[str, Any], link: channel.Channel, say: int) -> None:
        self.payload = payload
        self.link = link
        self.say = say
        self.stage = "task"
        self.asked = 0
        self.raised: list[BaseException] = []
        self.started_ns = 0
        self.deadline = 0.0
        self.done = False

    def run(self) -> NoReturn:
        """From the task to the verdict."""
        self.link.watch()
        _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
        _signal.signal(_signal.SIGALRM, self.on_alarm)
        self.arm()
        namespace, test = self.prepare()
        namespace[self.payload["entry_point"]] = self.proxy()
        self.judge(self.check_of(namespace, test), namespace)
        try:
            self.link.require_silence()
        except channel.BrokenError as broken:
            self.finish("runtime_error", str(broken))
        self.finish("passed", "")

    def arm(self) -> None:
        """Start the clock."""
        seconds = self.payload["deadline_ms"] / 1000
        self.deadline = time.monotonic() + seconds
        _signal.setitimer(_signal.ITIMER_REAL, seconds, 0.05)

    def on_alarm(self, _number: int, _frame: FrameType | None) -> None:
        """Past the deadline the verdict is out at once; before it, the signal was somebody's."""
        if self.done or time.monotonic() < self.deadline:
            return
        if self.stage == "task":
            self.finish("infrastructure", "bad_task_timeout")
        self.link.reap()
        if self.link.status is not None:
            self.finish("runtime_error", self.link.end())
        self.finish("timeout", self.stage)

    def prepare(self) -> tuple[dict[str, Any], CodeType]:
        """The prompt's names and the compiled test: a task that can't be used is no verdict on a candidate."""
        prompt = self.compiled("prompt")
        test = self.compiled("test")
        if "check" not in test.co_names:
            self.finish("infrastructure", "bad_task_no_check")
        namespace: dict[str, Any] = {"__name__": "task"}
        try:
            exec(prompt, namespace)
        except BaseException:  # whatever it is, the candidate hasn't run yet
            self.finish("infrastructure", "bad_task_prompt")
        return namespace, test

    def compiled(self, field: str) -> CodeType:
        """A task's text as code; a prompt that stops before its body gets an empty one."""
        text = self.payload[field]
        for source in (text, text.rstrip() + "\n    pass\n") if field == "prompt" else (text,):
            try:
                return compile(source, "<task>", "exec", dont_inherit=True)
            except BaseException:  # every way not to compile is the same
                continue
        return self.finish("infrastructure", "bad_task_" + field)

    def load(self) -> None:
        """Hand the program over. The clock starts here."""
        program = self.payload["program"].decode("utf-8", "surrogatepass")  # that it doesn't compile isn't said here
        os.write(self.say, b"started\n")
        self.stage = "load"
        self.arm()
        self.started_ns = time.monotonic_ns()
        self.ask((program, self.payload["entry_point"]), ("syntax", "missing"), limit=1 << 31)
        self.stage = "call"

    def check_of(self, namespace: dict[str, Any], test: CodeType) -> Callable[..., Any]:
        """Run the test's own statements. If they call the candidate, what fails from there on may be its doing."""
        random.seed(0)
        try:
            exec(test, namespace)
        except BaseException as error:  # by the test's code, or by a value of the candidate's
            if not self.started_ns:
                self.finish("infrastructure", "bad_task_test")
            self.finish(*self.meaning(error))
        check = namespace.get("check")
        if callable(check):
            return check  # type: ignore[no-any-return]
        if self.started_ns:
            self.finish("runtime_error", "test_no_check")
        return self.finish("infrastructure", "bad_task_no_check")

    def judge(self, check: Callable[..., Any], namespace: dict[str, Any]) -> None:
        """Run the official check. Returns if everything in it held."""
        entry_point = namespace[self.payload["entry_point"]]
        if not self.started_ns:
            self.load()
        try:
            check(entry_point)
        except BaseException as error:  # the verdict is what it means
            self.finish(*self.meaning(error))

    def meaning(self, error: BaseException) -> tuple[str, str]:
        """What an exception that left the test says. An assertion is the test's own unless the candidate raised it."""
        base = codec.base_of(type(error), candidate.EXCEPTIONS)
        name = "BaseException" if base is None else base.__name__
        if any(error is one for one in self.raised):
            return "runtime_error", name
        if isinstance(error, AssertionError):
            return "assertion_failed", "AssertionError"
        if isinstance(error, MemoryError):
            return "out_of_memory", "test_MemoryError"
        return "runtime_error", "test_" + name

    def proxy(self) -> Callable[..., Any]:
        """What the test calls as the candidate."""

        def call(*arguments: Any, **keywords: Any) -> Any:
            if not self.started_ns:
                self.load()
            self.asked += 1
            return self.ask((arguments, keywords), (), limit=codec.FRAME_LIMIT)

        call.__name__ = call.__qualname__ = self.payload["entry_point"]
        return call

    def ask(self, question: tuple[Any, ...], kinds: tuple[str, ...], limit: int) -> Any:
        """One exchange: the candidate's value, or its exception raised again by class. Anything else is the end."""
        token = os.urandom(8)
        try:
            data = codec.encode((token, *question), limit)
        except codec.UnsendableError as error:
            self.finish(*self.fault_of_argument(str(error)))
        try:
            reply = codec.decode(self.link.ask(data))
        except channel.BrokenError as broken:
            self.finish("runtime_error", str(broken))
        except codec.MalformedError:
            self.finish("runtime_error", "malformed_frame")
        if type(reply) is not tuple or len(reply) != 3 or reply[1] != token:
            self.finish("runtime_error", "malformed_frame")
        return self.content_of(reply[0], reply[2], kinds)

    def fault_of_argument(self, word: str) -> tuple[str, str]:
        """Whose fault an argument without a form is: only before the first answer was the test alone in making it."""
        if self.asked == 1:
            return "infrastructure", "bad_task_argument"
        return "runtime_error", "argument_" + word

    def content_of(self, kind: Any, content: Any, kinds: tuple[str, ...]) -> Any:
        """What a reply says; `kinds` are the answers that only a load may give."""
        if kind == "value":
            return content
        if type(content) is str:
            if kind == "raised" and content in BUILTIN:
                self.raise_again(content)
            if kind == "unsendable" and content in UNSENDABLE:
                self.finish("runtime_error", "value_" + content)
            if kind == "missing" and kind in kinds:
                self.finish("runtime_error", "entry_point_missing")
            if kind == "syntax" and kind in kinds and content in BUILTIN:
                self.finish("syntax_error", content)
        return self.finish("runtime_error", "malformed_frame")

    def raise_again(self, name: str) -> NoReturn:
        """The candidate's exception, by its nearest builtin class and without its message."""
        kind = BUILTIN[name]
        if issubclass(kind, MemoryError):
            self.finish("out_of_memory", name)
        if not issubclass(kind, Exception) or issubclass(kind, ENDS_A_LOOP) or self.stage == "load":
            self.finish("runtime_error", name)
        try:
            error = kind.__new__(kind)
        except TypeError:  # a group of exceptions doesn't come empty
            error = Exception()
        self.raised.append(error)
        raise error

    def finish(self, outcome: str, detail: str) -> NoReturn:
        """Say the verdict once and end the process, and with it everything in the container."""
        self.done = True
        if outcome == "runtime_error" and _oom_kills():
            outcome, detail = "out_of_memory", "oom_kill"
        os.write(self.say, self.line(outcome, detail))
        if os.getpid() == 1:
            os.kill(-1, _signal.SIGKILL)  # everything else here: whatever runs on would share the time to end in
        elif self.link.status is None:
            os.kill(self.link.pid, _signal.SIGKILL)
        os._exit(PASSED if outcome == "passed" else NOT_PASSED)

    def line(self, outcome: str, detail: str) -> bytes:
        """The verdict's JSON: words of this file and builtin class names, digits and the nonce; nothing to escape."""
        wall_ns = time.monotonic_ns() - self.started_ns if self.started_ns else 0
        fields = {
            "nonce": f'"{self.payload["nonce"]}"',
            "outcome": f'"{outcome}"',
            "detail": f'"{detail[:64]}"',
            "wall_ns": wall_ns,
            "cpu_ns": self.link.cpu_ns() if wall_ns else 0,
            "output_bytes": self.link.seen,
            "output_sha256": f'"{self.link.output_sha256()}"',
            "output_cut": "true" if self.link.seen > channel.OUTPUT_KEPT else "false",
        }
        return ("{" + ",".join(f'"{name}":{value}' for name, value in fields.items()) + "}\n").encode("ascii")


def _oom_kills() -> int:
    """How many processes of this container the kernel has killed for memory; 0 where it doesn't say."""
    for path in OOM_COUNTS:
        try:
            with open(path, encoding="ascii") as file:
                counts = dict(line.split(None, 1) for line in file if " " in line)
        except OSError:
            continue
        return int(counts.get("oom_kill", "0"))
    return 0
