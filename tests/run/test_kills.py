"""A run that is killed again and again is, in the end, the run that nobody killed: of each family that resumes.

HARNESS_KILLS kills (default 3) at moments drawn from the test's own seed. Up to 3 kills use the smoke grid, more the
formal one, whose run is long enough for them.
"""

import os
import random
import subprocess
import time
from pathlib import Path

import pytest
from pregate_support.forked import with_libraries
from pregate_support.mini import environment

from harness.gold import recorded_tasks, registered_tasks
from harness.journal.folder import RunFolder, journals, read_journal, write_once, write_record
from harness.ledgers.close import close_generation, close_run
from harness.places import places
from harness.protocols.grids import executed_grid
from harness.protocols.load import load_protocol
from harness.records.kinds import journal_type
from harness.records.protocol import JudgedProtocol
from harness.run.child import ChildRequest
from harness.run.request import make_request

KILLS = int(os.environ.get("HARNESS_KILLS", "3"))
TIER = "smoke" if KILLS <= 3 else "formal"
NAMES = ("run.json", "ledger.json", "statistics.json")


def start(folder):
    """`python -m harness generate FOLDER` as a child, forked off an interpreter that has the libraries."""
    own = environment(places().root)
    output = folder.path / "child.log"
    return with_libraries(own).start(
        "harness", ["generate", str(folder.path)], cwd=Path.cwd(), environment=own, output=output
    )


def finish(folder):
    """Run a child to its end."""
    assert start(folder).wait() == 0, (folder.path / "child.log").read_text("utf-8", "replace")


def loads(folder):
    """How many children have loaded their model in this folder."""
    ready = folder.path / "ready"
    return len(list(ready.iterdir())) if ready.exists() else 0


def kill_when(folder, units, seconds):
    """Start a child; once its model is loaded and that many units lie there, wait, kill -9. False: it had ended."""
    before, child = loads(folder), start(folder)
    while child.poll() is None and (loads(folder) == before or len(landed(folder)) < units):
        time.sleep(0.01)
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
        return True
    return False


def landed(folder):
    """Finished units, each with what would change if its file were written again."""
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns, path.read_bytes()) for path in journals(folder)}


@pytest.fixture(params=["nano-behavior", "nano-task-crn"])
def resuming(request):
    """Each protocol that may be gone on with."""
    loaded = load_protocol(request.param)
    assert loaded.protocol.resume
    return loaded


@pytest.fixture
def asked(resuming, options, tmp_path):
    """`asked(name)`: a new folder with the request of the tier's grid in it."""

    def make(name):
        folder = RunFolder(tmp_path / name)
        request = make_request(resuming, TIER, name, options())
        folder.create()
        write_record(folder.file("request.json"), ChildRequest(request=request, forbidden=(), workers=1))
        return folder

    return make


def close(folder, loaded):
    """run.json and the books; a formal task run's programs aren't executed here, so that its run.json is all."""
    if isinstance(loaded.protocol, JudgedProtocol):
        tasks = registered_tasks(loaded, (), loaded.units(loaded.protocol.tier_grids[TIER], loaded.domains))
        write_once(folder.file("tasks.json"), recorded_tasks(tasks), what="code tasks")
        if executed_grid(loaded.protocol, loaded.protocol.tier_grids[TIER]):
            close_generation(folder, loaded)
            return ("run.json",)
    close_run(folder, loaded)
    return NAMES


def test_a_killed_run_is_the_undisturbed_run(asked, resuming):
    """R04, R08 5.2: the bytes of run, ledger and statistics are the same; no finished unit was written again."""
    undisturbed, killed = asked("run"), asked("killed")
    finish(undisturbed)
    close(undisturbed, resuming)
    kind = journal_type(resuming.protocol)
    walls = [read_journal(path, kind).observation.wall_ns / 1e9 for path in journals(undisturbed)]
    moments = random.Random("kills")
    hits, kept = 0, {}
    for number in range(KILLS):
        most = len(kept) + (len(walls) - 1 - len(kept)) // (KILLS - number)
        hits += kill_when(killed, moments.randint(len(kept), most), moments.random() * min(walls))
        now = landed(killed)
        assert kept.items() <= now.items()
        kept = now
    finish(killed)
    assert kept.items() <= landed(killed).items()
    assert hits > 0
    assert len(landed(killed)) == len(walls)
    loads = {read_journal(path, kind).observation.process.model_load_id for path in journals(killed)}
    assert loads <= {path.stem.partition("-")[2] for path in (killed.path / "workers").iterdir()}
    names = close(killed, resuming)
    assert {name: killed.file(name).read_bytes() for name in names} == {
        name: undisturbed.file(name).read_bytes() for name in names
    }
