"""A Ray cluster of two nodes on this machine: runs made on it are those of one process, an actor killed or not."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest
from pregate_support.fixtures import tree_of
from pregate_support.mini import MINI, copy_tree, environment, run_gates

TIMEOUT_S = 600
NAMES = ("run.json", "ledger.json", "statistics.json")


@pytest.fixture(scope="module")
def cluster():
    """Two nodes with one core each; its address."""
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    made.add_node(num_cpus=1)
    yield made.address
    made.shutdown()


def start(tree, *arguments, **variables):
    """`python -m harness run …` over a tree, with these variables besides."""
    return subprocess.Popen(
        [sys.executable, "-m", "harness", "run", *arguments],
        cwd=tree,
        env=environment(tree) | variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def attempts(tree):
    """What the attempts file says of each line."""
    lines = (tree / "reports" / MINI / "attempts.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_a_run_made_on_a_cluster_is_that_of_one_process(cluster, mini_tree, formal_run, tmp_path):
    """A formal run over two nodes, judged by pytest: every gate passes, the bytes are those of the usual session."""
    tree = copy_tree(mini_tree, tmp_path / "tree")
    folder = f"reports/{MINI}/formal-1"
    made = start(tree, MINI, "--engine", "ray", "--address", cluster, "--run", folder)
    output, errors = made.communicate(timeout=TIMEOUT_S)
    assert made.returncode == 0, errors
    assert output == f"python -m pytest gates/ -m formal --protocol {MINI} --run {tree / folder}\n"
    assert len(list((tree / folder / "workers").iterdir())) == 2
    assert not (tree / folder / "run.json").exists()
    assert [(one["event"], one["units_there"]) for one in attempts(tree)] == [("begun", 0)]
    judged = run_gates(tree, "-m", "formal", "--run", folder)
    assert judged.code == 0, judged.output
    assert {name: (tree / folder / name).read_bytes() for name in NAMES} == {
        name: (formal_run / name).read_bytes() for name in NAMES
    }
    assert [one["event"] for one in attempts(tree)] == ["begun", "begun", "ended"]
    assert tree_of(formal_run) != tree


def says(process, title):
    """Whether a process has this title."""
    try:
        return any(title in word for word in process.cmdline())
    except psutil.Error:
        return False


def actor_in_a_unit(made):
    """The process of an actor that has a unit, as soon as there is one; every process is looked at now and then."""
    while made.poll() is None:
        known = [one for one in psutil.process_iter() if says(one, "UnitWorker.")]
        for _ in range(40):
            if there := [one for one in known if says(one, "UnitWorker.land")]:
                return there[0]
            time.sleep(0.005)
    pytest.fail(f"no actor had a unit: {made.communicate()}")


def left_by_actors():
    """Folders that actors' runs have left on this machine."""
    return Path(tempfile.gettempdir()).glob("pregate-actors-*")


def test_an_actor_that_is_killed_takes_no_unit_with_it(cluster, mini_tree, tmp_path):
    """Killed in a unit: another actor makes it again, and the units are those of a run that nobody killed."""
    others = set(left_by_actors())  # of another session on this machine
    tree = copy_tree(mini_tree, tmp_path / "tree")
    folder = tree / "reports" / MINI / "smoke-1"
    made = start(tree, MINI, "--tier", "smoke", "--engine", "ray", "--address", cluster, "--run", str(folder))
    actor_in_a_unit(made).kill()
    _, errors = made.communicate(timeout=TIMEOUT_S)
    assert made.returncode == 0, errors
    assert "its worker was lost, another is started" in errors
    assert set(left_by_actors()) <= others
    judged = run_gates(tree, "-m", "smoke", "--run", str(folder))
    assert judged.code == 0, judged.output


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nowhere", "127.0.0.1:99999"])
def test_a_cluster_that_does_not_answer_is_named(mini_tree, tmp_path, address):
    """One line, no traceback, no run folder; that a formal run was refused is on record."""
    tree = copy_tree(mini_tree, tmp_path / "tree")
    made = start(tree, MINI, "--engine", "ray", "--address", address)
    _, errors = made.communicate(timeout=TIMEOUT_S)
    assert made.returncode == 1
    assert f"--address {address}: expected a Ray cluster that answers" in errors
    assert len(errors.splitlines()) == 1
    assert [one["event"] for one in attempts(tree)] == ["refused"]
    assert [path for path in (tree / "reports" / MINI).iterdir() if path.is_dir()] == []


HEAD = """
import sys
from ray.cluster_utils import Cluster
made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
print(made.address, flush=True)
sys.stdin.readline()
made.head_node.kill_gcs_server()
print("killed", flush=True)
sys.stdin.readline()
made.shutdown()
"""
TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0123456789abcdef" * 2}


@pytest.fixture
def head():
    """A cluster of its own that asks for a token; the first line that it reads ends its head, the second all of it."""
    made = subprocess.Popen(
        [sys.executable, "-c", HEAD],
        env={**os.environ, **TOKEN},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    yield made
    made.communicate("\n\n", timeout=TIMEOUT_S)


def test_a_head_that_is_lost_ends_the_command_and_nothing_that_landed(head, mini_tree, tmp_path):
    """A token that wasn't sent is named. The head killed in mid-run: Ray ends the command; the rest is made here."""
    tree = copy_tree(mini_tree, tmp_path / "tree")
    address = head.stdout.readline().strip()
    asked = (MINI, "--tier", "smoke", "--engine", "ray", "--address", address)
    refused = start(tree, *asked)
    _, errors = refused.communicate(timeout=TIMEOUT_S)
    assert (refused.returncode, "RAY_AUTH_MODE=token" in errors, len(errors.splitlines())) == (1, True, 1)

    run = tree / "reports" / MINI / "smoke-1"
    made = start(tree, *asked, "--run", str(run), RAY_gcs_rpc_server_reconnect_timeout_s="1", **TOKEN)
    landed = made.stderr.readline()
    head.stdin.write("\n")
    head.stdin.flush()
    _, errors = made.communicate(timeout=TIMEOUT_S)
    assert landed.startswith("run: 1 of ")
    assert (made.returncode, "GCS" in errors) == (1, True)
    there = {path.name: path.read_bytes() for path in (run / "journal").iterdir()}
    assert there

    gone_on = start(tree, MINI, "--tier", "smoke", "--run", str(run))
    _, errors = gone_on.communicate(timeout=TIMEOUT_S)
    assert gone_on.returncode == 0, errors
    assert there.items() <= {path.name: path.read_bytes() for path in (run / "journal").iterdir()}.items()
    judged = run_gates(tree, "-m", "smoke", "--run", str(run))
    assert judged.code == 0, judged.output
