"""What the pool does with answers and losses, against a stand-in for Ray whose actors answer as a test says."""

import socket
import tempfile
from collections import deque
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from harness.cluster import ray_engine
from harness.cluster.apart import folder_of, new_name
from harness.cluster.ray_engine import LOSSES, Pool, require_ray
from harness.cluster.unit_worker import Landed, UnitWorker
from harness.errors import SessionError


class RayError(Exception):
    """What all of Ray's errors are."""


class ActorLostError(RayError):
    """What Ray raises for an actor that died."""


class AnswerLostError(RayError):
    """What Ray raises for an answer whose node died before it was fetched."""


class RaisedError(RayError):
    """What Ray raises for what a worker's own code raised."""


class Actor:
    """`begin`, `land` and `end` give references that say what was asked of whom."""

    def __init__(self, cluster, number):
        self.cluster, self.number = cluster, number

    def __getattr__(self, name):
        """What was asked, as a reference."""
        return SimpleNamespace(remote=lambda *given: self.cluster.asked(self.number, name, *given))


class Cluster:
    """`answers(number, step, key)` gives Landed, or raises; `idle`: actors that are never scheduled."""

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RaisedError)

    def __init__(self, answers, idle=()):
        self.answers, self.idle, self.actors, self.calls, self.killed = answers, idle, 0, [], []
        self.there, self.cleared = [node(cpu=8.0, gpu=2.0)], []

    def remote(self, kind):
        """Ray's decorator."""
        return SimpleNamespace(options=self.options) if kind is UnitWorker else SimpleNamespace(options=self._on_node)

    def options(self, **given):
        """What an actor is started with."""
        self.given = given
        return SimpleNamespace(remote=self._start)

    def NodeAffinitySchedulingStrategy(self, *, node_id, soft):  # noqa: N802 - Ray's name
        """A task that is done on this node, or nowhere."""
        assert not soft
        return node_id

    def _on_node(self, *, scheduling_strategy, num_cpus, max_retries):
        """Note a task's node and what it is given."""
        assert (num_cpus, max_retries) == (0, 0)
        return SimpleNamespace(remote=lambda name: self.cleared.append((scheduling_strategy, name, tuple(self.killed))))

    def _start(self, *arguments):
        self.apart = arguments[-1]
        self.actors += 1
        return Actor(self, self.actors)

    def asked(self, number, step, *given):
        """Note a call; its number is the reference."""
        self.calls.append((number, step, *given))
        return len(self.calls) - 1

    def wait(self, references, **given):
        """The first whose actor was scheduled; of tasks all."""
        if given["num_returns"] == len(references) and references[0] is None:
            return references, []
        there = [one for one in references if self.calls[one][0] not in self.idle]
        return there[:1], references

    def nodes(self):
        """What the cluster holds."""
        return self.there

    def kill(self, actor):
        """Note whom."""
        self.killed.append(actor.number)

    def get(self, reference):
        """The answer, or the loss."""
        return self.answers(*self.calls[reference])


def node(cpu, gpu=0.0, *, alive=True):
    """A node in Ray's words."""
    return {"Alive": alive, "NodeID": f"node of {cpu:.0f}", "Resources": {"CPU": cpu} | ({"GPU": gpu} if gpu else {})}


class Key(str):
    """A unit that is its name."""

    @property
    def name(self):
        """The unit's name."""
        return str(self)


def pool(cluster, units, *, resume=True, actors=1, device="cpu"):
    """A pool with actors at work, what it took, and what it said."""
    loaded = SimpleNamespace(digest="d" * 64, protocol=SimpleNamespace(resume=resume))
    request = SimpleNamespace(execution=SimpleNamespace(threads=1, device=device))
    taken, said = [], []
    keys = [Key(one) for one in units]
    made = Pool(loaded, request, taken.append, said.append, cluster, deque(keys), len(keys), new_name())
    for _ in range(actors):
        made.start()
    return made, taken, said


def landed(number, step, *given):
    """Every step is answered with one file that names it."""
    return Landed({f"{step} {' '.join(given)} {number}".replace("  ", " "): b""}, "")


def test_every_unit_is_asked_for_once_and_every_actor_ends():
    """Two actors share four units; each begins before and ends after its own."""
    cluster = Cluster(landed)
    made, taken, said = pool(cluster, ["a", "b", "c", "d"], actors=2)
    made.run()
    asked = [call for call in cluster.calls if call[1] == "land"]
    assert sorted(call[2] for call in asked) == ["a", "b", "c", "d"]
    assert [call[:2] for call in cluster.calls if call[1] != "land"].count((1, "end")) == 1
    assert said[-1] == "4 of 4 units landed"
    assert len(taken) == len(cluster.calls)


@pytest.mark.parametrize(("device", "gpus"), [("cpu", 0), ("cuda", 1)])
def test_an_actor_has_what_the_protocol_registers(device, gpus):
    """Cores for its threads, one GPU, and no restart behind the pool's back."""
    cluster = Cluster(landed)
    pool(cluster, ["a"], device=device)
    assert cluster.given == {"num_cpus": 1, "num_gpus": gpus, "max_restarts": 0}


def losing(lost, times=1, error=ActorLostError):
    """An answerer that loses the actor which has unit `lost`, so many times, or its answer."""
    left = [times]

    def answer(number, step, *given):
        if step == "land" and given == (lost,) and left[0]:
            left[0] -= 1
            raise error("The actor died.\nIts node was lost.")
        return landed(number, step, *given)

    return answer


@pytest.mark.parametrize("lost", ["a", "b", "c"])
def test_a_lost_actors_unit_is_made_by_another(lost):
    """First, middle and last unit: another actor is started, and nothing that landed is asked for again."""
    cluster = Cluster(losing(lost))
    made, _, said = pool(cluster, ["a", "b", "c"])
    made.run()
    assert [call[2] for call in cluster.calls if call[1] == "land"].count(lost) == 2
    assert cluster.actors == 2
    assert f"unit {lost}: its worker was lost, another is started" in said
    assert said[-1] == "3 of 3 units landed"


@pytest.mark.parametrize("error", [ActorLostError, AnswerLostError])
def test_an_answer_that_is_lost_on_the_way_is_a_loss(error):
    """The unit was made and never landed: it is made again, and who made it can't come back."""
    cluster = Cluster(losing("b", error=error))
    made, _, said = pool(cluster, ["a", "b"])
    made.run()
    assert (cluster.killed, cluster.actors, said[-1]) == ([1], 2, "2 of 2 units landed")


def test_what_a_workers_code_raised_is_a_refusal():
    """It isn't tried again: the last line of the traceback says what it was."""

    def answer(number, step, *given):
        if step == "land":
            raise RaisedError("Traceback (most recent call last):\n  ...\nOSError: no space left\n")
        return landed(number, step, *given)

    cluster = Cluster(answer)
    made, _, _ = pool(cluster, ["a"])
    with pytest.raises(SessionError, match=r"unit a: .*found OSError: no space left"):
        made.run()
    assert cluster.actors == 1


def test_workers_lost_after_all_landed_are_no_reason_to_end():
    """Each of five had ended its units: only what it noted of itself is gone."""

    def answer(number, step, *given):
        if step == "end":
            raise ActorLostError("The actor died.")
        return landed(number, step, *given)

    cluster = Cluster(answer)
    made, _, said = pool(cluster, list("abcde"), actors=5)
    made.run()
    assert (cluster.actors, said[-1]) == (5, "5 of 5 units landed")


def test_a_cluster_that_holds_no_worker_any_more_is_not_waited_for():
    """Its node was lost with the only actor: the next one would never be scheduled."""
    cluster = Cluster(losing("b"), idle=(2,))
    made, _, said = pool(cluster, ["a", "b"])
    cluster.there = [node(cpu=8.0, alive=False)]
    with pytest.raises(SessionError, match="the Ray cluster: expected a node with 1 cores"):
        made.run()
    assert said[0] == "1 of 2 units landed"


def test_a_worker_that_cannot_be_made_says_why():
    """The last line of what its creation raised, not the first of Ray's words."""

    def answer(number, step, *given):
        del number, step, given
        raise ActorLostError("The actor died because of an error raised in its creation task, x\nNo module: harness")

    made, _, _ = pool(Cluster(answer), ["a"])
    with pytest.raises(SessionError, match="found 4: No module: harness"):
        made.run()


def test_a_run_that_may_not_resume_ends_with_its_actor():
    """Nothing is asked for again; the error names the unit and why."""
    cluster = Cluster(losing("b"))
    made, _, _ = pool(cluster, ["a", "b", "c"], resume=False)
    with pytest.raises(SessionError, match=r"unit b: .*the worker was lost \(The actor died\.\)\. .*doesn't resume"):
        made.run()
    assert cluster.actors == 1


def test_a_unit_that_kills_its_workers_is_not_tried_for_ever():
    """After three losses the fourth ends the run."""
    cluster = Cluster(losing("b", times=9))
    made, _, _ = pool(cluster, ["a", "b"])
    with pytest.raises(SessionError, match=f"unit b: expected at most {LOSSES} lost workers, found 4"):
        made.run()


def test_workers_that_never_begin_are_not_started_for_ever():
    """They die while they load the model."""

    def answer(number, step, *given):
        del number, step, given
        raise ActorLostError("")

    made, _, _ = pool(Cluster(answer), ["a"])
    with pytest.raises(
        SessionError, match="a worker without a unit: expected at most 3 lost workers, found 4: no reason"
    ):
        made.run()


@pytest.mark.parametrize(("step", "where"), [("begin", "a worker"), ("land", "unit a")])
def test_a_refusal_stops_the_run_once_its_files_are_taken(step, where):
    """What failed is kept before anybody hears of it."""

    def answer(number, asked, *given):
        return Landed({"failures/a.json": b""}, "it can't") if asked == step else landed(number, asked, *given)

    made, taken, _ = pool(Cluster(answer), ["a", "b"])
    with pytest.raises(SessionError, match=f"{where}: .*found it can't"):
        made.run()
    assert taken[-1] == {"failures/a.json": b""}


def test_an_actor_that_no_node_takes_is_not_waited_for():
    """The others made every unit."""
    made, _, said = pool(Cluster(landed, idle=(2,)), ["a", "b"], actors=2)
    made.run()
    assert said[-1] == "2 of 2 units landed"


def test_without_the_package_the_extra_is_named(monkeypatch):
    """Before anything of Ray is imported."""
    monkeypatch.setattr(ray_engine.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SessionError, match=r"expected ray, found none. Install the extra: pip install -e '\.\[ray\]'"):
        require_ray()


def held(nodes, device="cpu", threads=2):
    """Room in a cluster of these nodes, of (cores, GPUs) each."""
    request = SimpleNamespace(execution=SimpleNamespace(threads=threads, device=device))
    there = [node(cpu, gpu) for cpu, gpu in nodes] + [node(99.0, 99.0, alive=False)]
    return ray_engine.room_of(SimpleNamespace(nodes=lambda: there), request)


@pytest.mark.parametrize(
    ("nodes", "device", "threads", "room"),
    [
        ([(5.0, 0.0)], "cpu", 2, 2),
        ([(3.0, 0.0), (3.0, 0.0)], "cpu", 2, 2),
        ([(8.0, 2.0)], "cuda", 1, 2),
        ([(1.0, 4.0)], "cuda", 1, 1),
        ([(8.0, 0.0), (1.0, 1.0)], "cuda", 1, 1),
    ],
)
def test_a_cluster_holds_what_its_nodes_hold(nodes, device, threads, room):
    """By the protocol's threads; an actor isn't spread over two nodes, and a node that died holds none."""
    assert held(nodes, device, threads) == room


@pytest.mark.parametrize(
    ("nodes", "device"), [([(1.0, 0.0)], "cpu"), ([(1.0, 0.0), (1.0, 0.0)], "cpu"), ([(8.0, 0.0)], "cuda")]
)
def test_a_cluster_without_room_is_refused(nodes, device):
    """Rather than waited for."""
    with pytest.raises(SessionError, match="expected a node with 2 cores"):
        held(nodes, device)


@pytest.mark.parametrize("workers", [None, 3])
def test_no_actor_is_started_where_no_node_holds_one(workers, monkeypatch):
    """Whether or not their number was asked for; and the cluster is left."""
    left = []
    cluster = Cluster(landed)
    cluster.there, cluster.init, cluster.shutdown = [node(cpu=0.0)], lambda **_: None, lambda: left.append(1)
    monkeypatch.setattr(ray_engine, "require_ray", lambda: None)
    monkeypatch.setattr(ray_engine.importlib, "import_module", lambda _: cluster)
    request = SimpleNamespace(execution=SimpleNamespace(threads=1, device="cpu"))
    with pytest.raises(SessionError, match="expected a node with 1 cores"):
        land(request, workers)
    assert (cluster.actors, left) == (0, [1])


@pytest.mark.parametrize("broken", [False, True])
def test_what_actors_left_is_removed_on_every_node(broken, monkeypatch, tmp_path):
    """Also of a run that ended with an error: actors are ended first, a dead node isn't asked, and here it is gone."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    names = []

    def answer(number, step, *given):
        if step == "begin":
            names.append(cluster.apart)
            (folder_of(cluster.apart) / "pregate-units-x").mkdir(parents=True)
        if broken and step == "land":
            return Landed({}, "it can't")
        return landed(number, step, *given)

    cluster = Cluster(answer)
    cluster.there = [node(cpu=2.0), node(cpu=3.0), node(cpu=4.0, alive=False)]
    cluster.init, cluster.shutdown = lambda **_: None, lambda: None
    monkeypatch.setattr(ray_engine, "require_ray", lambda: None)
    monkeypatch.setattr(ray_engine.importlib, "import_module", lambda _: cluster)
    request = SimpleNamespace(execution=SimpleNamespace(threads=1, device="cpu"))
    with pytest.raises(SessionError, match="it can't") if broken else nullcontext():
        land(request, 1)
    assert cluster.cleared == [(f"node of {cpu}", names[0], (1,)) for cpu in (2, 3)]
    assert list(tmp_path.iterdir()) == []


def land(request, workers):
    """A unit on a running cluster."""
    loaded = SimpleNamespace(digest="d" * 64, protocol=SimpleNamespace(resume=True))
    cluster = ray_engine.Cluster("127.0.0.1:1", workers)
    ray_engine.land_on_ray(loaded, request, (Key("a"),), cluster, take=lambda _: None, note=lambda _: None)


def test_a_cluster_that_breaks_is_one_error(monkeypatch):
    """Whatever Ray raises around the answers."""

    def broken(*_, **__):
        raise RayError("first\nthe head is gone")

    cluster = Cluster(landed)
    cluster.init, cluster.shutdown, cluster.wait = lambda **_: None, lambda: None, broken
    monkeypatch.setattr(ray_engine, "require_ray", lambda: None)
    monkeypatch.setattr(ray_engine.importlib, "import_module", lambda _: cluster)
    request = SimpleNamespace(execution=SimpleNamespace(threads=1, device="cpu"))
    with pytest.raises(SessionError, match="the Ray cluster: expected one that goes on, found RayError: the head is g"):
        land(request, None)


@pytest.fixture
def listening():
    """A socket that takes connections and is no cluster; its HOST:PORT."""
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield f"127.0.0.1:{made.getsockname()[1]}"


def test_who_listens_and_never_answers_is_not_waited_for(listening, monkeypatch):
    """Another program's port: Ray would ask for minutes and end this process."""
    monkeypatch.setattr(ray_engine, "ASK_S", 0.5)
    with pytest.raises(SessionError, match=f"--address {listening}: expected a Ray cluster .*found no answer in 0 sec"):
        ray_engine.require_address(listening)


@pytest.mark.parametrize(
    ("asking", "found"),
    [
        ("import sys; sys.exit('noise\\nRuntimeError: another version')", "RuntimeError: another version"),
        ("import os; os.abort()", "exit code -6"),
    ],
)
def test_what_a_cluster_says_is_the_reason(listening, monkeypatch, asking, found):
    """Its last words, or how the process that asked it ended."""
    monkeypatch.setattr(ray_engine, "ASKING", asking)
    with pytest.raises(SessionError, match=f"ConnectionError: {found}"):
        ray_engine.require_address(listening)
