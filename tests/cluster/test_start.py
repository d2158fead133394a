"""What a run of the command line refuses before a cluster is asked, without one."""

import pytest
from typer.testing import CliRunner

from harness.__main__ import app
from harness.cluster import start
from harness.cluster.start import Call, Start
from harness.journal.attempts import OUT_OF_MEMORY, AttemptOverError
from harness.journal.folder import RunFolder
from harness.places import places
from harness.protocols.load import load_protocol
from harness.run.request import Options, make_request

OPTIONS = Options(checkpoint=None, inputs=(), gpu_memory=None, cpu_memory=None, port=False)


@pytest.fixture
def starting(tmp_path):
    """A smoke run of nano on a cluster, not started; notes go nowhere."""
    folder = RunFolder(tmp_path / "smoke-1")
    folder.create()
    call = Call("ray", None, None)
    return Start(load_protocol("nano-behavior"), OPTIONS, folder, places(), "smoke", call, lambda _: None)


def test_nothing_is_added_to_an_attempt_that_memory_ended(starting, monkeypatch):
    """As a process of the folder is refused, so are a cluster's units: before any is asked for."""
    asked = []
    monkeypatch.setattr(start, "land_on_ray", lambda *given, **_: asked.append(given))
    request = make_request(starting.loaded, "smoke", "smoke-1", OPTIONS, places())
    starting._land_on_ray(request)
    assert len(asked) == 1
    starting.folder.file(OUT_OF_MEMORY).write_text("{}")
    with pytest.raises(AttemptOverError, match="found one that ran out of memory"):
        starting._land_on_ray(request)
    assert len(asked) == 1


@pytest.mark.parametrize("words", [("--address", "127.0.0.1:6379"), ("--workers", "2")])
def test_a_clusters_words_need_its_engine(words, tmp_path):
    """Nobody believes that a cluster made what one process did: exit 1, and no folder."""
    folder = tmp_path / "smoke-1"
    done = CliRunner().invoke(app, ["run", "nano-behavior", "--tier", "smoke", "--run", str(folder), *words])
    assert (done.exit_code, done.stdout) == (1, "")
    assert "--address and --workers: expected --engine ray, found --engine local" in done.stderr
    assert not folder.exists()
