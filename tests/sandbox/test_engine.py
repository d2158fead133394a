"""Opening an engine, losing it in mid-run, and leaving nothing behind, whatever happens."""

import contextlib
import gc
import io
import os
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import time
import uuid
from pathlib import Path

import pytest

from harness.errors import SandboxError
from harness.records.base import Frozen, Unfrozen
from harness.records.sandbox import RecordedImage, RegisteredImage
from harness.sandbox.contract import LABEL
from harness.sandbox.execute import open_engine

RIGHT = "def triple(n):\n    return [n] * 3\n"
SLOW = "import time\ndef triple(n):\n    time.sleep(1.5)\n    return [n] * 3\n"


class Line:
    """A socket in front of the engine's that can be cut: to a client, the engine is gone."""

    def __init__(self, engine: str, folder: Path) -> None:
        self.path = folder / "line.sock"
        self._engine = engine
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen(64)
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Nobody answers any more."""
        self._listener.close()
        self.path.unlink(missing_ok=True)
        for one in tuple(self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect(self._engine)
                self._open += [near, far]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=_pump, args=(one, other), daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


@pytest.fixture
def line(tmp_path, monkeypatch):
    """The engine behind a line that a test may cut."""
    address = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    made = Line(address.removeprefix("unix://"), tmp_path)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{made.path}")
    yield made
    made.cut()


@pytest.fixture
def no_python(api):
    """An image that holds one empty file."""
    data, name = io.BytesIO(), f"pregate-test-{uuid.uuid4().hex[:8]}"
    with tarfile.open(fileobj=data, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("nothing"))
    api.import_image_from_data(data.getvalue(), repository=name)
    yield name
    api.remove_image(name)


@pytest.fixture
def with_volume(api, image):
    """The image with a volume of its own, which would be a place to write."""
    name = f"pregate-test-{uuid.uuid4().hex[:8]}"
    made = api.create_container(image, command=["true"])["Id"]
    api.commit(made, repository=name, changes="VOLUME /data")
    api.remove_container(made)
    yield name
    api.remove_image(name)


def test_no_engine_is_one_clear_error(monkeypatch, tmp_path, contract):
    """It names the address and says what to do."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    with pytest.raises(SandboxError, match=r"nobody\.sock: expected an engine that answers, .*Start dockerd"):
        open_engine(contract, image="any")


@pytest.mark.docker
def test_an_image_is_never_pulled(engine, contract):
    """One that the engine doesn't have is an error."""
    with pytest.raises(
        SandboxError, match=r"sandbox image nowhere/nothing:1: expected an image .*nothing is ever pulled"
    ):
        open_engine(contract, image="nowhere/nothing:1")


@pytest.mark.docker
def test_a_name_that_is_none(engine, contract):
    """The engine refuses it, the error is the same."""
    with pytest.raises(SandboxError, match="sandbox image Not A Name: expected an image that the engine has"):
        open_engine(contract, image="Not A Name")


@pytest.mark.docker
def test_a_recorded_image_must_be_named(engine, contract):
    """There is no default."""
    with pytest.raises(SandboxError, match="expected an image's name or ID, found none"):
        open_engine(contract, image=None)


@pytest.mark.docker
def test_an_image_without_python_is_refused(no_python, contract):
    """By a container that was tried, not by its name."""
    with pytest.raises(SandboxError, match=r"expected a python3 .* found .*python3"):
        open_engine(contract, image=no_python)


@pytest.mark.docker
def test_an_image_with_a_volume_is_refused(with_volume, contract, api):
    """A flag that isn't in force is named, and nothing was started."""
    with pytest.raises(SandboxError, match=r"container flag mounts: expected .* found .*/data"):
        open_engine(contract, image=with_volume)
    assert api.containers(all=True, filters={"ancestor": with_volume}) == []


@pytest.mark.docker
def test_the_image_and_its_python_are_recorded(engine, image, api):
    """As the engine and the probe say."""
    assert engine.image_id == api.inspect_image(image)["Id"]
    assert engine.python.split()[0] in ("CPython", "PyPy")
    assert len(engine.python.split()[1].split(".")) == 3
    assert engine.registered


@pytest.mark.docker
def test_another_image_than_the_registered_one_is_known_as_such(engine, image, contract_with):
    """Whether it is allowed is the caller's decision."""
    policy = RegisteredImage(reference="python:3.11-alpine", digest=Frozen(sha256="0" * 64))
    with open_engine(contract_with(policy), image=image) as other:
        assert not other.registered
        assert other.image_id == engine.image_id


@pytest.mark.docker
@pytest.mark.parametrize(
    ("digest", "message"),
    [
        pytest.param(
            Frozen(sha256="0" * 64), rf"sandbox image python@sha256:{'0' * 64}: expected an image", id="absent"
        ),
        pytest.param(Unfrozen(reason="it waits"), "expected a registered digest, found none yet: it waits", id="owed"),
    ],
)
def test_the_registered_image_is_looked_for_by_digest(engine, contract_with, digest, message):
    """A tag of the same name doesn't serve."""
    policy = RegisteredImage(reference="python:3.11-alpine", digest=digest)
    with pytest.raises(SandboxError, match=message):
        open_engine(contract_with(policy), image=None)


@pytest.mark.docker
def test_order_is_kept(engine, task_of):
    """By key and in order, though the first takes longest; two copies of one job are two executions."""
    jobs = [(1, SLOW, task_of()), (2, RIGHT, task_of()), (3, "x", task_of()), (2, RIGHT, task_of())]
    found = [(key, one.evidence.outcome) for key, one in engine.execute_many(jobs)]
    assert found == [(1, "passed"), (2, "passed"), (3, "runtime_error"), (2, "passed")]


@pytest.mark.docker
def test_a_container_is_never_reused(engine, task_of):
    """What one leaves in /tmp the next doesn't find."""
    program = "import os\nassert not os.path.exists('/tmp/x')\nopen('/tmp/x', 'w')\n" + RIGHT
    found = [one.evidence.outcome for _, one in engine.execute_many((n, program, task_of()) for n in range(6))]
    assert found == ["passed"] * 6


@pytest.mark.docker
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # the SDK leaves a socket unclosed where nobody is there
def test_an_engine_that_goes_away(engine, line, image, contract, task_of, api):
    """What was in it has no verdict, what was finished stays, what follows is one error."""
    done, lost = [], open_engine(contract, image=image, workers=2)
    jobs = [(n, RIGHT if n < 2 else SLOW, task_of()) for n in range(12)]

    def run():
        for key, one in lost.execute_many(jobs):
            done.append((key, one.evidence.outcome, one.evidence.detail))
            if key == 1:
                threading.Timer(1.5, line.cut).start()

    with pytest.raises(SandboxError, match="expected the engine that the run began with"):
        run()
    assert done[:2] == [(0, "passed", ""), (1, "passed", "")]
    assert {one[1:] for one in done[2:]} == {("infrastructure", "engine_lost")}
    assert [one[0] for one in done] == list(range(len(done)))
    assert len(done) < len(jobs)
    with pytest.raises(SandboxError, match="What was finished stays valid"):
        lost.execute(RIGHT, task_of())
    lost.close()  # quiet
    for left in api.containers(all=True, filters={"label": lost.label}):  # the test's own engine is still there
        api.remove_container(left["Id"], force=True)
    gc.collect()


@pytest.mark.docker
def test_a_container_that_goes_away(engine, api, task_of):
    """Removed from outside: no verdict on the candidate, and the engine object goes on."""
    seen = []

    def take():
        while not seen:
            seen.extend(api.containers(filters={"label": engine.label}))
            time.sleep(0.05)
        time.sleep(0.5)
        api.remove_container(seen[0]["Id"], force=True)

    thread = threading.Thread(target=take)
    thread.start()
    evidence = engine.execute(SLOW, task_of()).evidence
    thread.join()
    assert (evidence.outcome, evidence.detail) == ("infrastructure", "container_lost")
    assert engine.execute(RIGHT, task_of()).evidence.outcome == "passed"


@pytest.mark.docker
def test_a_generator_left_alone_leaves_nothing(engine, api, task_of):
    """Running containers end when nobody waits for them any more."""
    jobs = engine.execute_many((n, RIGHT if n == 0 else SLOW, task_of()) for n in range(8))
    next(jobs)
    begun = time.monotonic()
    jobs.close()
    engine._removals.submit(lambda: None).result()
    assert time.monotonic() - begun < 30
    assert api.containers(all=True, filters={"label": engine.label}) == []
    assert engine.execute(RIGHT, task_of()).evidence.outcome == "passed"  # and it serves whoever comes next


PROGRAM = """
import sys
from harness.records.sandbox import SandboxContract, Task
from harness.sandbox.execute import open_engine
import msgspec
contract = msgspec.json.decode(sys.argv[1], type=SandboxContract)
with open_engine(contract, image=sys.argv[2]) as engine:
    print(engine.label, flush=True)
    task = Task(id="t", prompt="", entry_point="triple", test="def check(c):\\n    c(1)\\n")
    for _ in engine.execute_many((n, "while True: pass", task) for n in range(50)):
        pass
"""


@pytest.mark.docker
@pytest.mark.parametrize("number", [signal.SIGINT])
def test_an_interrupt_leaves_no_container(engine, api, image, contract, number):
    """Ctrl-C in the middle of running containers."""
    import msgspec

    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, msgspec.json.encode(contract), image],
        stdout=subprocess.PIPE,
        text=True,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 # ignored in background jobs
    )
    label = child.stdout.readline().strip()
    assert label.startswith(LABEL)
    while not api.containers(filters={"label": label}):
        time.sleep(0.1)
    child.send_signal(number)
    assert child.wait(timeout=60) != 0
    assert api.containers(all=True, filters={"label": label}) == []
    child.stdout.close()


@pytest.mark.docker
def test_a_closed_engine_object_is_misuse(engine, image, contract, task_of):
    """Not an error of the world."""
    with open_engine(contract, image=image) as other:
        pass
    with pytest.raises(RuntimeError, match="closed"):
        other.execute(RIGHT, task_of())


@pytest.mark.docker
def test_a_flag_the_engine_does_not_put_in_force(engine, image, contract_with):
    """An engine that takes another value than was asked for: here memory, which it can't keep below its minimum."""
    with pytest.raises(SandboxError):
        open_engine(contract_with(memory_bytes=1 << 10, memory_swap_bytes=1 << 10), image=image)


@pytest.mark.docker
@pytest.mark.parametrize(
    ("test", "detail"),
    [
        pytest.param("", "bad_task_no_check", id="no tests"),
        pytest.param("def check(:\n", "bad_task_test", id="no Python"),
        pytest.param("def check(candidate):\n    assert '\ud800'\n", "bad_task_test", id="no text"),
    ],
)
def test_a_task_at_fault_judges_nobody(engine, task_of, test, detail):
    """`infrastructure` with its own word; the engine goes on."""
    evidence = engine.execute(RIGHT, task_of(test)).evidence
    assert (evidence.outcome, evidence.detail, evidence.nonce_returned) == ("infrastructure", detail, False)


def test_contracts_of_the_round(contract):
    """The default here is the round's own, so these tests say something of it."""
    assert isinstance(contract.image, RecordedImage)
    assert contract.wall_timeout_ms == 5000
