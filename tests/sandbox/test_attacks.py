"""Candidates that try to pass without being right, to blind the checker, to read it, or to leave something behind.

Each gets a container of its own; none passes, none is without a verdict, and nothing of a test comes out.
"""

import hashlib

import msgspec
import pytest

from harness.sandbox import execute

pytestmark = pytest.mark.docker

SENTINEL = "SENTINEL-" + hashlib.sha256(b"what no candidate may see").hexdigest()[:24]
SECRET_TEST = f"""
# {SENTINEL}
def check(candidate):
    secret = '{SENTINEL}'
    assert candidate(2) == [2, 2, 2], secret
    assert candidate(3) == [3, 3, 3], secret
"""
# What an attack finds out about the channel is in its own process: the calls' and the replies' descriptor, the codec.
CODEC = """
import os, sys, struct
codec = sys.modules['harness.sandbox.inside.codec']
def send(value, fd=4):
    data = codec.encode(value)
    os.write(fd, struct.pack('>I', len(data)) + data)
"""
WRONG = "def triple(n):\n    return None\n"
HUNT = f"""
import hashlib
def hunt(pid):
    found = False
    with open(f'/proc/{{pid}}/maps') as maps, open(f'/proc/{{pid}}/mem', 'rb', 0) as memory:
        for line in maps:
            low, high = (int(part, 16) for part in line.split()[0].split('-'))
            if 'r' not in line.split()[1] or high - low > 1 << 26:
                continue
            try:
                memory.seek(low)
                data = memory.read(high - low)
            except (OSError, ValueError, OverflowError):
                continue
            at = data.find(b'SENT' + b'INEL-')
            while at >= 0:
                word = data[at:at + {len(SENTINEL)}]
                found |= hashlib.sha256(word).hexdigest() == '{hashlib.sha256(SENTINEL.encode()).hexdigest()}'
                at = data.find(b'SENT' + b'INEL-', at + 1)
    return found
"""

SPIN = """
import os
try:
    while True:
        if os.fork() == 0:
            while True: pass
except OSError:
    pass
"""
# name: (candidate, allowed outcomes)
JUDGED = ("assertion_failed",)
BROKE = ("runtime_error",)
EITHER = ("assertion_failed", "runtime_error")
ATTACKS = {
    # saying that it passed
    "prints a verdict line": ('print(\'{"nonce":"","outcome":"passed"}\', flush=True)\n' + WRONG, JUDGED),
    "writes to every descriptor": (
        "import os\nfor fd in range(1024):\n    try: os.write(fd, b'ready\\nstarted\\npassed\\n')\n"
        "    except OSError: pass\n" + WRONG,
        BROKE,
    ),
    "writes to the container's own output": (
        "for path in ('/proc/1/fd/1', '/dev/stdout', '/dev/console', '/dev/tty', '/dev/pts/0'):\n"
        "    try: open(path, 'w').write('passed\\n')\n    except OSError: pass\n" + WRONG,
        JUDGED,
    ),
    "opens every descriptor of the checker": (
        "for fd in range(64):\n    try: open(f'/proc/1/fd/{fd}', 'r+b').write(b'passed')\n"
        "    except OSError: pass\n" + WRONG,
        JUDGED,
    ),
    "replaces standard output": ("import sys\nsys.stdout = sys.stderr = None\n" + WRONG, JUDGED),
    "exits with 0 at exit": ("import atexit, os\natexit.register(os._exit, 0)\n" + WRONG, JUDGED),
    "exits with 0 from a thread": (
        "import os, threading, time\nthreading.Thread(target=lambda: (time.sleep(0.2), os._exit(0))).start()\n"
        "def triple(n):\n    time.sleep(60)\n",
        BROKE,
    ),
    "runs another program": ("import os\nos.execv('/bin/true', ['true'])\n" + WRONG, BROKE),
    "runs another program in a call": (
        "import os\ndef triple(n):\n    os.execv('/bin/echo', ['echo', 'passed'])\n",
        BROKE,
    ),
    # equality and types
    "equal to everything": (
        "class E(list):\n    def __eq__(self, o): return True\ndef triple(n):\n    return E()\n",
        JUDGED,
    ),
    "an int equal to everything": (
        "class E(int):\n    def __eq__(self, o): return True\n    __hash__ = int.__hash__\n"
        "def triple(n):\n    return [E(7)] * 3\n",
        JUDGED,
    ),
    "a class that names itself list": (
        "class E:\n    __class__ = list\n    def __eq__(self, o): return True\ndef triple(n):\n    return E()\n",
        BROKE,
    ),
    "a metaclass with another line": (
        "class M(type):\n    __mro__ = (list, object)\nclass E(metaclass=M):\n    pass\n"
        "def triple(n):\n    return E()\n",
        BROKE,
    ),
    "patches the builtins": (
        "import builtins\nbuiltins.isinstance = lambda *a: True\nbuiltins.AssertionError = builtins.ValueError\n"
        + WRONG,
        EITHER,
    ),
    "patches its own codec": (
        CODEC + "codec.encode = lambda *a: b'N'\ncodec.decode = lambda *a: (b'', (), {})\n" + WRONG,
        BROKE,
    ),
    "walks objects for the check": (
        "import gc\nfor o in gc.get_objects():\n"
        "    if isinstance(o, dict) and 'check' in o: o['check'] = lambda c: None\n" + WRONG,
        JUDGED,
    ),
    "walks frames for the checker": (
        "import sys\ndef triple(n):\n    f = sys._getframe()\n    while f:\n"
        "        for v in list(f.f_locals.values()) + list(f.f_globals.values()):\n"
        "            try: v.finish('passed', '')\n            except Exception: pass\n        f = f.f_back\n",
        JUDGED,
    ),
    "calls the checker's class": (
        "import sys\nsys.modules['harness.sandbox.inside.checker'].Checker.judge = lambda *a: None\n" + WRONG,
        EITHER,
    ),
    "traces": ("import sys\nsys.settrace(lambda *a: None)\nsys.setprofile(lambda *a: None)\n" + WRONG, JUDGED),
    # the channel
    "a reply before it was asked": (CODEC + "send(('value', b'x' * 8, [2, 2, 2]))\n" + WRONG, BROKE),
    "a second reply": (CODEC + "def triple(n):\n    send(('value', b'x' * 8, [n] * 3))\n    return [n] * 3\n", BROKE),
    "a reply to another call": (
        CODEC + "def triple(n):\n    send(('value', b'x' * 8, [n] * 3))\n    while True: pass\n",
        BROKE,
    ),
    "a reply after the last": (
        CODEC + "import threading, time\ndef late():\n    time.sleep(0.01)\n    while True: send(('value', b'', 1))\n"
        "def triple(n):\n    threading.Thread(target=late).start()\n    time.sleep(0.2)\n    return [n] * 3\n",
        BROKE,
    ),
    "no frame at all": ("import os\ndef triple(n):\n    os.write(4, b'passed' * 9)\n    while True: pass\n", BROKE),
    "a frame longer than allowed": (
        "import os\ndef triple(n):\n    os.write(4, b'\\xff' * 9)\n    while True: pass\n",
        BROKE,
    ),
    "a frame that says passed": (
        CODEC + "def triple(n):\n    send(('passed', b'x' * 8, True))\n    while True: pass\n",
        BROKE,
    ),
    "closes the channel": ("import os\ndef triple(n):\n    os.closerange(3, 64)\n    while True: pass\n", BROKE),
    "closes the calls": ("import os\ndef triple(n):\n    os.close(3)\n    return [n] * 3\n", BROKE),
    "copies the channel and dies": ("import os\nif os.fork():\n    os._exit(0)\nwhile True: pass\n", BROKE),
    "lets a child reply": (
        "import os\nif os.fork():\n    while True: os.wait()\n" + WRONG,
        ("runtime_error", "timeout"),
    ),
    "swaps the channel's ends": ("import os\nos.dup2(3, 4)\n" + WRONG, BROKE),
    "fills the reply pipe": ("import os\nwhile True: os.write(4, b'x' * 65536)\n", BROKE),
    # values made to hurt
    "a cycle": ("def triple(n):\n    x = {}\n    x[1] = [x]\n    return x\n", BROKE),
    "a very deep value": ("def triple(n):\n    x = []\n    for _ in range(100000): x = [x]\n    return x\n", BROKE),
    "a very large value": ("def triple(n):\n    return b'x' * (64 << 20)\n", BROKE),
    "very many values": ("def triple(n):\n    return [None] * (4 << 20)\n", BROKE),
    "an int of megabytes": ("def triple(n):\n    return 1 << (1 << 24)\n", JUDGED),
    "ints of one hash": (
        "def triple(n):\n    return {i * (2**61 - 1) for i in range(1, 3000)}\n",
        ("assertion_failed", "timeout"),
    ),
    "frames of one hash": (
        CODEC
        + "def triple(n):\n    import itertools\n    data = codec.encode([i * (2**61 - 1) for i in range(200000)])\n"
        "    data = b'e' + data[1:]\n    head = b't' + struct.pack('>I', 3) + codec.encode('value')\n"
        "    token = sys._getframe(1).f_locals.get('token') or sys._getframe(2).f_locals['token']\n"
        "    data = head + codec.encode(token) + data\n    os.write(4, struct.pack('>I', len(data)))\n"
        "    view = memoryview(data)\n    while view: view = view[os.write(4, view):]\n    while True: pass\n",
        ("timeout", "runtime_error", "assertion_failed"),
    ),
    # the checker's process
    "reads the checker's memory": ("def triple(n):\n    open('/proc/1/mem', 'rb')\n    return [n] * 3\n", BROKE),
    "reads the checker's environment": (
        "def triple(n):\n    open('/proc/1/environ').read()\n    return [n] * 3\n",
        BROKE,
    ),
    "reads the checker's tasks": ("def triple(n):\n    open('/proc/1/task/1/mem', 'rb')\n    return [n] * 3\n", BROKE),
    "looks for the test in the checker": (HUNT + "def triple(n):\n    return [n] * 3 if hunt(1) else None\n", BROKE),
    "looks for the test in itself": (HUNT + "def triple(n):\n    return [n] * 3 if hunt('self') else None\n", JUDGED),
    "traces the checker": (
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "for request in (16, 0x4206):\n    if libc.ptrace(request, 1, 0, 0) == 0: triple = lambda n: [n] * 3\n"
        "if 'triple' not in globals():\n    triple = lambda n: None\n",
        JUDGED,
    ),
    "reads by process_vm_readv": (
        "import ctypes\nlibc = ctypes.CDLL(None)\nbuf = ctypes.create_string_buffer(8)\n"
        "class V(ctypes.Structure):\n    _fields_ = [('b', ctypes.c_void_p), ('l', ctypes.c_size_t)]\n"
        "here = V(ctypes.cast(buf, ctypes.c_void_p), 8)\nthere = V(0x400000, 8)\n"
        "got = libc.process_vm_readv(1, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)\n"
        "triple = (lambda n: [n] * 3) if got > 0 else (lambda n: None)\n",
        JUDGED,
    ),
    "takes a descriptor of the checker": (
        "import ctypes, os\nlibc = ctypes.CDLL(None)\ngot = -1\n"
        "try:\n    pid = os.pidfd_open(1)\n    got = max(libc.syscall(438, pid, fd, 0) for fd in range(16))\n"
        "except OSError: pass\ntriple = (lambda n: [n] * 3) if got >= 0 else (lambda n: None)\n",
        JUDGED,
    ),
    "starves the checker of descriptors": (
        "import resource\nresource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0))\nprint('x')\n" + WRONG,
        EITHER,
    ),
    "starves the checker of memory": (
        "import resource\nresource.prlimit(1, resource.RLIMIT_AS, (1 << 20, 1 << 20))\n"
        "def triple(n):\n    return 'x' * (4 << 20)\n",
        ("assertion_failed", "runtime_error", "out_of_memory"),
    ),
    "takes the checker's time": (
        "import resource\ntry: resource.prlimit(1, resource.RLIMIT_CPU, (1, 1))\nexcept OSError: pass\n"
        "def triple(n):\n    while True: pass\n",
        ("timeout", "runtime_error"),
    ),
    "every signal to the checker": (
        "import os, signal\ndef triple(n):\n    for s in signal.valid_signals():\n        try: os.kill(1, s)\n"
        "        except OSError: pass\n    return None\n",
        JUDGED,
    ),
    "a storm of alarms": (
        "import os, signal, threading\ndef storm():\n    while True: os.kill(1, signal.SIGALRM)\n"
        "threading.Thread(target=storm, daemon=True).start()\n" + WRONG,
        JUDGED,
    ),
    "a storm of ended children": (
        "import os, signal, threading\ndef storm():\n    while True: os.kill(1, signal.SIGCHLD)\n"
        "threading.Thread(target=storm, daemon=True).start()\n" + WRONG,
        JUDGED,
    ),
    "stops the checker and itself": (
        "import os, signal\ndef triple(n):\n    os.kill(1, signal.SIGSTOP)\n    os.kill(0, signal.SIGSTOP)\n",
        ("timeout",),
    ),
    "kills everything": (
        "import os, signal\nif os.fork() == 0:\n    while True: pass\n"
        "def triple(n):\n    try: os.kill(-1, signal.SIGKILL)\n    except OSError: pass\n    return None\n",
        JUDGED,
    ),
    "leaves the checker no turn": (
        SPIN + "for push in (lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0)),\n"
        "             lambda: os.setpriority(os.PRIO_PROCESS, 1, 19)):\n"
        "    try: push()\n    except OSError: pass\n" + WRONG,
        ("assertion_failed", "runtime_error", "timeout"),
    ),
    "leaves the checker no turn in a call": (
        SPIN + "def triple(n):\n    try: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0))\n"
        "    except OSError: pass\n    while True: pass\n",
        ("timeout",),
    ),
    # resources
    "all descriptors": ("import os\nfds = []\nwhile True: fds.append(os.open('/dev/null', 0))\n" + WRONG, BROKE),
    "all processes": (
        "import os, time\ntry:\n    while os.fork(): pass\n    time.sleep(60)\nexcept OSError: pass\n" + WRONG,
        ("assertion_failed", "runtime_error", "timeout"),
    ),
    "all threads": (
        "import threading, time\ntry:\n    while True: threading.Thread(target=time.sleep, args=(60,)).start()\n"
        "except RuntimeError: pass\n" + WRONG,
        EITHER,
    ),
    "all of tmp": (
        "f = open('/tmp/x', 'wb')\ntry:\n    while True: f.write(b'x' * 65536)\nexcept OSError: pass\n" + WRONG,
        JUDGED,
    ),
    "a module for the checker to find": (
        "import os\nfor n in ('random', 'os', 'hashlib', 'ctypes', 'math'):\n"
        "    open(f'/tmp/{n}.py', 'w').write('import os; os._exit(0)')\nos.chdir('/tmp')\nprint('x')\n" + WRONG,
        JUDGED,
    ),
    "memory in many children": (
        "import os\nfor _ in range(8):\n    if os.fork() == 0:\n        x = bytearray(64 << 20)\n        os._exit(0)\n"
        "x = bytearray(300 << 20)\n" + WRONG,
        ("out_of_memory",),
    ),
    "compiles without end": (
        "x = " + "+".join(["1"] * 200_000),
        ("syntax_error", "runtime_error", "out_of_memory", "timeout"),
    ),
}
HONEST = {
    "many lines printed": "def triple(n):\n    print('x' * 100000)\n    return [n] * 3\n",
    "garbage printed": "import os\nos.write(1, bytes(range(256)))\ndef triple(n):\n    return [n] * 3\n",
    "a child of its own": (
        "import subprocess, sys\ndef triple(n):\n"
        "    out = subprocess.run([sys.executable, '-c', f'print({n})'], capture_output=True, text=True).stdout\n"
        "    return [int(out)] * 3\n"
    ),
    "threads": (
        "from concurrent.futures import ThreadPoolExecutor\ndef triple(n):\n"
        "    return list(ThreadPoolExecutor(3).map(lambda _: n, range(3)))\n"
    ),
    "a file in tmp": (
        "def triple(n):\n    open('/tmp/n', 'w').write(str(n))\n    return [int(open('/tmp/n').read())] * 3\n"
    ),
    "standard modules": (
        "import typing, math, hashlib, itertools, collections, functools, re, string, heapq, decimal, datetime, json\n"
        "import fractions, statistics, random, copy, bisect, operator, unittest, ctypes\n"
        "def triple(n):\n    return [math.gcd(n, n)] * 3\n"
    ),
    "a list of its own class": "class L(list): pass\ndef triple(n):\n    return L([n] * 3)\n",
    "everything changed for itself": (
        "import builtins, sys, os\nos.chdir('/tmp')\nsys.setrecursionlimit(100000)\nsys.path.clear()\n"
        "def triple(n):\n    return [n] * 3\n"
    ),
}


@pytest.fixture(scope="module")
def said():
    """Every byte that came out of a container in this module."""
    patch, collected = pytest.MonkeyPatch(), []
    original = execute.record

    def keep(engine, program, task, ran):
        collected.append(ran.ending.said)
        return original(engine, program, task, ran)

    patch.setattr(execute, "record", keep)
    yield collected
    patch.undo()


@pytest.fixture(scope="module")
def attacked(run_all, task_of, said):
    """All attacks' executions by name."""
    return run_all((name, program, task_of(SECRET_TEST)) for name, (program, _) in ATTACKS.items())


@pytest.fixture(scope="module")
def honest(run_all, task_of, said):
    """All honest programs' executions by name."""
    return run_all((name, program, task_of(SECRET_TEST)) for name, program in HONEST.items())


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_does_not_pass(attacked, name):
    """It gets one of its outcomes, never a pass and never `infrastructure`."""
    evidence = attacked[name].evidence
    assert evidence.outcome in ATTACKS[name][1], evidence.detail


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_program_passes(honest, name):
    """What a right program may do is not taken for an attack."""
    assert honest[name].evidence.outcome == "passed", honest[name].evidence.detail


def test_nothing_of_a_test_comes_out(attacked, honest, said):
    """Neither in a record nor in any byte that a container said."""
    records = b"".join(msgspec.json.encode(one) for one in (*attacked.values(), *honest.values()))
    assert len(said) == len(ATTACKS) + len(HONEST)
    assert SENTINEL.encode() not in records + b"".join(said)
    assert all(len(one) < 1024 for one in said)


def test_the_hunt_can_find(run_all, task_of):
    """The control: a program whose own memory holds the words finds them."""
    program = f"KEPT = {SENTINEL!r}\n{HUNT}def triple(n):\n    return [n] * 3 if hunt('self') else None\n"
    assert run_all([("control", program, task_of())])["control"].evidence.outcome == "passed"


def test_nothing_is_left_of_an_attack(attacked, engine, api, processes_left):
    """No container and no process."""
    engine._removals.submit(lambda: None).result()
    assert api.containers(all=True, filters={"label": engine.label}) == []
    assert processes_left() == []


@pytest.mark.parametrize(
    ("program", "outcomes"),
    [
        pytest.param(
            "# " + "x" * (10 << 20) + "\ndef triple(n):\n    return [n] * 3\n", ("passed",), id="10 MB of comment"
        ),
        pytest.param("x = 1\n" * (10 << 18), ("out_of_memory", "timeout", "runtime_error"), id="15 MB of code"),
        pytest.param("def triple(n):\n    return [n] * 3\n\0", ("syntax_error",), id="NUL"),
        pytest.param("def triple(n):\n    return [n] * 3\n# \ud800\udc00\udcff", ("syntax_error",), id="no UTF-8"),
        pytest.param("", ("runtime_error",), id="empty"),
    ],
)
def test_bad_input_has_an_outcome(engine, task_of, program, outcomes):
    """A named one, whatever the program's bytes are."""
    evidence = engine.execute(program, task_of()).evidence
    assert evidence.outcome in outcomes, evidence.detail
