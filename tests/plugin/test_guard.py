"""A replay's process can't read what it must reproduce, by any way that Python offers."""

import json
import subprocess
import sys

import pytest

ATTEMPTS = {
    "open": "open(secret).read()",
    "Path.read_bytes": "Path(secret).read_bytes()",
    "bytes path": "open(os.fsencode(secret)).read()",
    "os.open": "os.read(os.open(secret, os.O_RDONLY), 1)",
    "io.FileIO": "io.FileIO(secret).read()",
    "np.load": "np.load(secret)",
    "np.fromfile": "np.fromfile(secret)",
    "shutil.copy": "shutil.copy(secret, own)",
    "mmap": "mmap.mmap(os.open(secret, os.O_RDONLY), 1, prot=mmap.PROT_READ)",
    "listdir": "os.listdir(forbidden)",
    "scandir": "list(os.scandir(forbidden))",
    "iterdir": "list(Path(forbidden).iterdir())",
    "walk": "list(os.walk(forbidden, onerror=fail))",
    "relative path": "os.chdir(top); open('run/journal/secret.json').read()",
    "dotted path": "open(own + '/../journal/secret.json').read()",
    "symlinked file": "open(top + '/link.json').read()",
    "symlinked folder": "open(top + '/folder/secret.json').read()",
    "proc root": "open('/proc/self/root' + secret).read()",
    "descriptor of a folder above": "os.open(top, os.O_RDONLY)",
    "hard link": "os.link(secret, own + '/linked')",
    "rename": "os.rename(secret, own + '/moved')",
    "replace": "os.replace(forbidden, own + '/moved')",
    "thread": "threading.Thread(target=lambda: kept.append(open(secret).read())).run()",
    "later file": "open(forbidden + '/not-yet.json').read()",
}
ALLOWED = {
    "own file": "open(own + '/mine.json').read()",
    "own folder": "os.listdir(own)",
    "a neighbour": "open(top + '/neighbour.json').read()",
    "a folder whose name begins alike": "open(top + '/run-2.json').read()",
    "listing a folder above": "os.listdir(top)",
}
SCRIPT = """
import io, json, mmap, os, shutil, sys, threading
from pathlib import Path
import numpy as np
from harness.run.guard import ForbiddenReadError, forbid_reading
top = sys.argv[1]
forbidden, own, secret, kept = top + "/run/journal", top + "/run/replay", top + "/run/journal/secret.json", []
def fail(error): raise error
forbid_reading((Path(top, "run"),), but=Path(own))
found = {}
for name, attempt in json.loads(sys.argv[2]).items():
    try:
        exec(attempt)
        found[name] = "done"
    except ForbiddenReadError as error:
        found[name] = str(error)
    except Exception as error:
        found[name] = f"{type(error).__name__}: {error}"
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each attempt gave in one guarded process: an audit hook can't be taken off again."""
    top = tmp_path_factory.mktemp("guard").resolve()
    for name in ("run/journal/secret.json", "run/replay/mine.json", "neighbour.json", "run-2.json"):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text("{}")
    (top / "link.json").symlink_to(top / "run/journal/secret.json")
    (top / "folder").symlink_to(top / "run/journal")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(top), json.dumps(ATTEMPTS | ALLOWED)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("name", ATTEMPTS)
def test_reading_is_refused(found: dict[str, str], name: str) -> None:
    """The attempt raises ForbiddenReadError."""
    assert found[name].startswith("a replay must not read "), found[name]


@pytest.mark.parametrize("name", ALLOWED)
def test_the_rest_stays_open(found: dict[str, str], name: str) -> None:
    """The process's own folder and its surroundings aren't touched by the guard."""
    assert found[name] == "done"
