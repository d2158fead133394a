"""The contract read from inside a running container: not what was asked for, but what a candidate meets."""

import pytest

pytestmark = pytest.mark.docker

READ = """
def first(*paths):
    for path in paths:
        try:
            return open(path).read().strip()
        except OSError:
            pass

def status(name):
    return [line.split()[1:] for line in open('/proc/self/status') if line.startswith(name + ':')][0]

def mounts():
    return [line.split()[1:4] for line in open('/proc/self/mounts')]

def attempt(work):
    try:
        work()
    except Exception as error:
        return type(error).__name__
    return 'done'
"""
LIMITS = {
    "memory": ("first('/sys/fs/cgroup/memory/memory.limit_in_bytes', '/sys/fs/cgroup/memory.max')", [str(256 << 20)]),
    "swap": (
        "first('/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes', '/sys/fs/cgroup/memory.swap.max')",
        [str(256 << 20), "0"],
    ),
    "pids": ("first('/sys/fs/cgroup/pids/pids.max', '/sys/fs/cgroup/pids.max')", ["64"]),
    "cpu quota": ("first('/sys/fs/cgroup/cpu/cpu.cfs_quota_us', '/sys/fs/cgroup/cpu.max')", ["50000", "50000 100000"]),
    "user": ("status('Uid') + status('Gid')", [["65534"] * 8]),
    "groups": ("status('Groups')", [[], ["65534"]]),
    "no capability": (
        "[status(name) for name in ('CapEff', 'CapPrm', 'CapInh', 'CapBnd', 'CapAmb')]",
        [[["0" * 16]] * 5],
    ),
    "no new privileges": ("status('NoNewPrivs')", [["1"]]),
    "system calls filtered": ("status('Seccomp')", [["2"]]),
    "network": ("[line.split(':')[0].strip() for line in open('/proc/net/dev') if ':' in line]", [["lo"]]),
    "root is read-only": ("[m[2].split(',')[0] for m in mounts() if m[0] == '/']", [["ro"]]),
    "tmp": (
        "[sorted({'rw', 'noexec', 'nosuid', 'nodev', 'size=16384k'} & set(m[2].split(','))) + [m[1]] "
        "for m in mounts() if m[0] == '/tmp']",
        [[["nodev", "noexec", "nosuid", "rw", "size=16384k", "tmpfs"]]],
    ),
    "no shared memory": ("[m for m in mounts() if m[0] == '/dev/shm']", [[]]),
    "no file system of the host": (
        "sorted({m[0] for m in mounts() if m[1] not in ('overlay', 'proc', 'tmpfs', 'devpts', 'sysfs', 'cgroup', "
        "'cgroup2', 'mqueue')} - {'/etc/hosts', '/etc/hostname', '/etc/resolv.conf'})",
        [[]],
    ),
    "environment": (
        "sorted(name for name in __import__('os').environ if name not in ('PATH', 'HOME', 'HOSTNAME', 'LANG', "
        "'LC_CTYPE', 'GPG_KEY') and not name.startswith('PYTHON'))",
        [[]],
    ),
    "hash seed": ("__import__('os').environ['PYTHONHASHSEED']", ["0"]),
    "no engine socket": (
        "[p for p in ('/var/run/docker.sock', '/run/docker.sock') if __import__('os').path.exists(p)]",
        [[]],
    ),
    "no core": ("__import__('resource').getrlimit(__import__('resource').RLIMIT_CORE)", [(0, 0)]),
    "checker's memory": ("attempt(lambda: open('/proc/1/mem', 'rb'))", ["PermissionError"]),
    "checker's environment": ("attempt(lambda: open('/proc/1/environ', 'rb').read())", ["PermissionError"]),
    "checker's descriptors": ("attempt(lambda: __import__('os').listdir('/proc/1/fd'))", ["PermissionError"]),
    "checker's maps": ("attempt(lambda: open('/proc/1/maps').read())", ["PermissionError"]),
    "own descriptors": ("sorted(int(n) for n in __import__('os').listdir('/proc/self/fd'))[:5]", [[0, 1, 2, 3, 4]]),
    "nothing runs from tmp": (
        "attempt(lambda: (open('/tmp/x', 'w').write('#!/bin/sh\\n'), __import__('os').chmod('/tmp/x', 0o755), "
        "__import__('os').posix_spawn('/tmp/x', ['x'], {})))",
        ["PermissionError"],
    ),
    "no file written elsewhere": (
        "[d for d in ('/', '/dev', '/etc', '/home', '/proc', '/root', '/run', '/sys', '/usr', '/var', '/var/tmp', "
        "'/sys/fs/cgroup') if attempt(lambda: open(d + '/x', 'w')) == 'done']",
        [[]],
    ),
    "checker's turns": (
        "[attempt(work) for os in [__import__('os')] for work in (lambda: os.setpriority(os.PRIO_PROCESS, 1, 19), "
        "lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0)), "
        "lambda: os.sched_setparam(1, os.sched_param(0)), lambda: os.sched_setaffinity(1, {0}))]",
        [["PermissionError"] * 4],
    ),
    "checker's limits": (
        "attempt(lambda: __import__('resource').prlimit(1, __import__('resource').RLIMIT_NOFILE, (64, 64)))",
        ["PermissionError"],
    ),
    "no socket to a virtual machine's host": (
        "attempt(lambda: __import__('socket').socket(40, __import__('socket').SOCK_STREAM))",
        ["PermissionError"],
    ),
    "no ring": (
        "(lambda c: (c.CDLL(None, use_errno=True).syscall(425, 1, 0), c.get_errno()))(__import__('ctypes'))",
        [(-1, 1)],
    ),
    "itself it may restrain": (
        "[attempt(work) for os in [__import__('os')] for r in [__import__('resource')] for work in ("
        "lambda: os.nice(1), lambda: os.setpriority(os.PRIO_PROCESS, 0, 5), "
        "lambda: r.setrlimit(r.RLIMIT_NOFILE, (64, 64)), lambda: r.prlimit(0, r.RLIMIT_NOFILE, (32, 32)), "
        "lambda: __import__('socket').socketpair(), lambda: __import__('socket').socket())]",
        [["done"] * 6],
    ),
    "its own session": ("__import__('os').getsid(0) == __import__('os').getpid() != 1", [True]),
}


@pytest.fixture(scope="module")
def found(run_all, task_of):
    """One container for each limit: its test compares the value, and so nothing but the outcome comes out."""
    return run_all(
        (name, f"{READ}\ndef triple(n):\n    return {expression}\n", task_of(TEST.format(values=values)))
        for name, (expression, values) in LIMITS.items()
    )


TEST = "def check(candidate):\n    assert candidate(0) in {values}\n"


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_holds_inside(found, name):
    """As the contract says."""
    evidence = found[name].evidence
    assert evidence.outcome == "passed", evidence.detail


def test_the_record_holds_the_limits_in_force(found, contract):
    """Read back from the engine for that very container."""
    limits = found["memory"].limits
    assert (limits.memory_bytes, limits.memory_swap_bytes) == (contract.memory_bytes, contract.memory_swap_bytes)
    assert (limits.network, limits.read_only, limits.user, limits.pids) == ("none", True, "65534:65534", 64)
    assert (limits.cap_drop, limits.mounts, limits.privileged) == (("ALL",), (), False)


def test_the_look_from_inside_can_fail(run_all, task_of):
    """The control: another expected value, and the same test fails."""
    program = f"{READ}\ndef triple(n):\n    return {LIMITS['pids'][0]}\n"
    test = TEST.format(values=["63"])
    assert run_all([("pids", program, task_of(test))])["pids"].evidence.outcome == "assertion_failed"
