"""Producing: finished units stay, what went wrong is kept under its unit's name, and a run is one run."""

import json
import subprocess
import sys
import threading
import time

import msgspec
import pytest

from harness.errors import DecodeError, HarnessError, JournalError, SessionError, StorageError
from harness.journal.folder import failures, journals
from harness.ledgers.close import close_run
from harness.run.start import generate_run as produce

NAMES = ("run.json", "ledger.json", "statistics.json")


def decode_error(kind):
    """A unit that didn't return as the contract says."""
    return DecodeError("step 3, row 1", kind=kind, expected="a", found="b", todo="c")


def storage_error():
    """A full disk while a unit is written."""
    return StorageError("/run", expected="a place to write", found="No space left on device", todo="Free disk space.")


@pytest.fixture
def keys(engine):
    """The formal grid's two units."""
    return engine.loaded.units(engine.request.grid, engine.request.domains)


def test_a_run_lands_every_unit(engine, folder, keys):
    """In the grid's order, and it closes to the bytes of the run whose units these are."""
    produce(engine.loaded, engine.request, folder)
    assert engine.made == [key.name for key in keys]
    close_run(folder, engine.loaded)
    for name in NAMES:
        assert folder.file(name).read_bytes() == engine.source.file(name).read_bytes()
    assert engine.closed == 1


def test_a_finished_run_loads_no_model(engine, folder, keys):
    """It is verified and left as it is."""
    produce(engine.loaded, engine.request, folder)
    produce(engine.loaded, engine.request, folder)
    assert (engine.opened, len(engine.made)) == (1, len(keys))


def test_a_finished_run_is_verified(engine, folder, keys):
    """An altered journal of a complete run stops the session, by unit and cell."""
    produce(engine.loaded, engine.request, folder)
    path = folder.journal(keys[1])
    content = json.loads(path.read_bytes())
    cell = content["evidence"]["cells"][2]
    cell["generated_ids"][0] += 1
    path.write_text(json.dumps(content))
    with pytest.raises(JournalError, match=f"{path.name}.*{cell['condition']}: generated_sha256"):
        produce(engine.loaded, engine.request, folder)


@pytest.mark.parametrize(
    "kind", ["out_of_memory", "non_finite", "not_argmax", "not_drawable", "foreign_draw", "exception"]
)
def test_a_failed_unit_is_recorded_by_name(engine, folder, keys, kind):
    """The run stops; the failure has the decoder's word, its unit and its message; the finished unit stays."""
    engine.planned[keys[1].name] = decode_error(kind)
    with pytest.raises(DecodeError, match="step 3, row 1"):
        produce(engine.loaded, engine.request, folder)
    (failure,) = failures(folder)
    assert (failure.kind, failure.source_id, failure.replicate) == (kind, keys[1].source_id, keys[1].replicate)
    assert "step 3, row 1" in failure.message
    assert failure.protocol_digest == engine.loaded.digest
    assert list(journals(folder)) == [folder.journal(keys[0])]
    assert folder.failure(keys[1]).exists()
    assert engine.closed == 1


@pytest.mark.parametrize(
    "error",
    [ValueError("bad \ud800 \u4e2d"), RuntimeError("size mismatch"), KeyError("x"), IndexError()],
    ids=["text", "shape", "key", "index"],
)
def test_whatever_a_library_raises_is_the_units_failure(engine, folder, keys, error):
    """Kind exception, the class's name, an ASCII message; the units after it are not tried."""
    engine.planned[keys[0].name] = error
    with pytest.raises(DecodeError, match=f"unit {keys[0].name}: expected a generation call that returns") as caught:
        produce(engine.loaded, engine.request, folder)
    assert caught.value.kind == "exception"
    assert caught.value.__cause__ is error
    (failure,) = failures(folder)
    assert (failure.kind, failure.source_id) == ("exception", keys[0].source_id)
    assert failure.message.startswith(type(error).__name__)
    assert failure.message.isascii()
    assert engine.made == [keys[0].name]
    assert list(journals(folder)) == []


def test_another_harness_error_is_an_exception_of_its_unit(engine, folder, keys):
    """It keeps its own class and message."""
    engine.planned[keys[0].name] = HarnessError("here", expected="a", found="b", todo="c")
    with pytest.raises(HarnessError, match="here: expected a, found b"):
        produce(engine.loaded, engine.request, folder)
    assert [failure.kind for failure in failures(folder)] == ["exception"]


def test_a_full_disk_is_no_failure_of_its_unit(engine, folder, keys):
    """Nothing is said about the model; the unit is simply not there, and a resumed run makes it."""
    engine.planned[keys[1].name] = storage_error()
    with pytest.raises(StorageError):
        produce(engine.loaded, engine.request, folder)
    assert failures(folder) == ()
    engine.planned.clear()
    produce(engine.loaded, engine.request, folder)
    assert len(list(journals(folder))) == len(keys)


def test_an_interrupt_is_no_failure_of_its_unit(engine, folder, keys):
    """Ctrl-C goes through, the model is released, finished units stay."""
    engine.planned[keys[1].name] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        produce(engine.loaded, engine.request, folder)
    assert failures(folder) == ()
    assert list(journals(folder)) == [folder.journal(keys[0])]
    assert engine.closed == 1


def test_a_resumed_run_makes_only_what_is_missing(engine, folder, keys):
    """The finished unit's file isn't touched, and the run is the undisturbed one."""
    engine.planned[keys[1].name] = decode_error("out_of_memory")
    with pytest.raises(DecodeError):
        produce(engine.loaded, engine.request, folder)
    before = folder.journal(keys[0]).stat()
    engine.planned.clear()
    engine.made.clear()
    produce(engine.loaded, engine.request, folder)
    after = folder.journal(keys[0]).stat()
    assert engine.made == [keys[1].name]
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    close_run(folder, engine.loaded)
    assert folder.file("run.json").read_bytes() == engine.source.file("run.json").read_bytes()


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("environment", {"threads": 99}, "threads=99, found threads="),
        ("placement", {"parameter_bytes": {"cpu": 1}}, "parameter_bytes"),
    ],
)
def test_a_run_is_not_resumed_in_another_world(engine, folder, keys, name, change, message):
    """Another environment or placement than the first units': refused by field, and no unit is added."""
    engine.planned[keys[1].name] = decode_error("out_of_memory")
    with pytest.raises(DecodeError):
        produce(engine.loaded, engine.request, folder)
    engine.planned.clear()
    setattr(engine, name, msgspec.structs.replace(getattr(engine, name), **change))
    with pytest.raises(JournalError, match=rf"{name}\.json: expected the {name} of this run: .*{message}"):
        produce(engine.loaded, engine.request, folder)
    assert list(journals(folder)) == [folder.journal(keys[0])]
    assert engine.closed == 2


def test_a_run_of_another_protocol_is_refused(engine, folder):
    """A complete folder of another revision is not this protocol's run."""
    produce(engine.loaded, engine.request, folder)
    path = folder.file("spec.json")
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"protocol_digest": "0" * 64}))
    with pytest.raises(JournalError, match=f"protocol_digest: expected {engine.loaded.digest}, found 0000"):
        produce(engine.loaded, engine.request, folder)


@pytest.fixture
def dying_worker(folder, keys):
    """Another process that claimed the first unit and is killed, without landing it, once the second one has landed."""
    folder.create()
    path = folder.lock(keys[0].name).lock_file
    program = (
        "import time, filelock\n"
        f"lock = filelock.FileLock({path!r})\n"
        "lock.acquire()\n"
        "print(flush=True)\n"
        "time.sleep(120)\n"
    )
    worker = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    worker.stdout.readline()

    def kill():
        while worker.poll() is None and not folder.journal(keys[1]).exists():
            time.sleep(0.02)
        worker.kill()

    thread = threading.Thread(target=kill)
    thread.start()
    yield worker
    worker.kill()
    thread.join()
    worker.wait()
    worker.stdout.close()


@pytest.mark.usefixtures("dying_worker")
def test_a_unit_of_a_dead_worker_is_made_where_the_protocol_resumes(engine, folder, keys):
    """The lock goes with its process; the unit isn't lost."""
    produce(engine.loaded, engine.request, folder)
    assert engine.made == [keys[1].name, keys[0].name]


@pytest.mark.usefixtures("dying_worker")
def test_a_unit_of_a_dead_worker_ends_a_run_that_does_not_resume(engine, folder, keys):
    """The whole run is to be started again; what was landed stays as evidence."""
    protocol = msgspec.structs.replace(engine.loaded.protocol, resume=False)
    loaded = type(engine.loaded)(
        protocol, engine.loaded.manifest, engine.loaded.profile, engine.loaded.digest, engine.loaded.folder
    )
    with pytest.raises(SessionError, match=f"unit {keys[0].name}: .*found none: the worker died"):
        produce(loaded, engine.request, folder)
    assert list(journals(folder)) == [folder.journal(keys[1])]


def test_the_worker_says_when_it_is_ready(engine, folder):
    """Once, with the load's identity, after the records are written and before the first unit."""
    seen = []

    def note(load):
        seen.append((load, folder.file("spec.json").exists(), list(engine.made)))

    produce(engine.loaded, engine.request, folder, ready=note)
    assert seen == [("stand-in", True, [])]


def test_the_progress_line_counts_units(engine, folder, keys):
    """From the first to the last unit, and erased at the end."""
    lines = []
    produce(engine.loaded, engine.request, folder, sink=lines.append)
    assert f"unit 1/{len(keys)} {keys[0].source_id}" in lines[0]
    assert any(f"unit {len(keys)}/{len(keys)}" in line for line in lines)
    assert lines[-1] == ""
