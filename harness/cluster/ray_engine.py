"""Units as tasks on Ray actors that each hold the model once. Ray is the extra `ray`, loaded here alone.

An actor that is lost (its process or its node died, or its answer did on the way) takes the unit it was making with it
and nothing that landed: where the protocol may resume the unit is made again by another, where it may not the run ends.
"""

import importlib
import importlib.util
import os
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from harness.cluster.apart import new_name, remove
from harness.cluster.unit_worker import Landed, UnitWorker
from harness.errors import SessionError, words
from harness.model.process import steering
from harness.places import STUDIES, places
from harness.protocols.grids import UnitKey
from harness.protocols.load import LoadedProtocol
from harness.run.code import code_sha256
from harness.run.request import Request

LOSSES = 3  # of one unit: a unit that kills its worker isn't tried for ever
POLL_S = 1.0
ANSWER_S = 5.0
CLEAR_S = 30.0
ASK_S = 90.0  # Ray is loaded and connected in a few seconds, on a busy machine in many
ASKING = """import sys, ray
try:
    ray.init(address=sys.argv[1], log_to_driver=False, logging_level="error")
except (ConnectionError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
    sys.exit(f"{type(error).__name__}: {' '.join(str(error).split())}")
"""
# In Ray's log. An address that is given is sent no token, unless RAY_AUTH_MODE says so.
UNAUTHENTICATED = "InvalidAuthToken"
CREATION = "creation task"  # Ray's words for an actor whose class couldn't be loaded or made
NO_REASON = "no reason was given"

Take = Callable[[Mapping[str, bytes]], None]


def require_ray() -> None:
    """SessionError that names the extra where the package isn't installed."""
    if importlib.util.find_spec("ray") is None:
        raise SessionError(
            "--engine ray", expected="ray", found="none", todo="Install the extra: pip install -e '.[ray]'."
        )


def require_address(address: str) -> None:
    """SessionError where no cluster answers at HOST:PORT: nobody listens there, or somebody else does.

    Ray itself asks for minutes, and ends the process that asked. So another process asks, for a while.
    """
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=ANSWER_S).close()
        _ask(address)
    except (OSError, ValueError, OverflowError, subprocess.TimeoutExpired) as error:
        raise _no_cluster(address, error) from error


def _ask(address: str) -> None:
    """Connect and leave again; ConnectionError with what Ray said, TimeoutExpired where nothing came."""
    done = subprocess.run(
        [sys.executable, "-c", ASKING, address],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=ASK_S,
        check=False,
    )
    if done.returncode != 0:
        if UNAUTHENTICATED in done.stderr:
            raise PermissionError("it asks for a token, and none that it takes was sent")
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise ConnectionError(said[-1] if said else f"exit code {done.returncode}")


def _no_cluster(address: str | None, error: Exception) -> SessionError:
    return SessionError(
        f"--address {address}" if address else "a Ray cluster of this machine",
        expected="a Ray cluster that answers",
        found=f"no answer in {ASK_S:.0f} seconds"
        if isinstance(error, subprocess.TimeoutExpired)
        else f"{type(error).__name__}: {error}",
        todo="Set RAY_AUTH_MODE=token, with the cluster's own token where Ray looks for it."
        if isinstance(error, PermissionError)
        else "Start it with `ray start --head`, and give its HOST:PORT or none.",
    )


@dataclass(slots=True)
class Pool:
    """Actors at work on a run's units. `note` says a line for a person; `apart` names the folder that they write in."""

    loaded: LoadedProtocol
    request: Request
    take: Take
    note: Callable[[str], None]
    ray: Any
    todo: "deque[UnitKey]"
    total: int
    apart: str
    _actors: list[Any] = field(default_factory=list)
    _pending: dict[Any, tuple[Any, UnitKey | None]] = field(default_factory=dict)
    _beginning: set[Any] = field(default_factory=set)
    _ended: set[Any] = field(default_factory=set)
    _losses: dict[UnitKey, int] = field(default_factory=dict)
    _landed: int = 0
    _lost_idle: int = 0

    def start(self) -> None:
        """One more actor, with as many cores as the protocol registers threads and, on CUDA, a GPU of its own."""
        execution = self.request.execution
        options = {"num_cpus": execution.threads, "num_gpus": 1 if execution.device == "cuda" else 0, "max_restarts": 0}
        given = (self.request, self.loaded.digest, steering(), code_sha256(), self.apart)
        actor = self.ray.remote(UnitWorker).options(**options).remote(*given)
        self._actors.append(actor)
        first = actor.begin.remote()
        self._beginning.add(first)
        self._pending[first] = (actor, None)

    def run(self) -> None:
        """Until every unit landed and every actor that began ended. A refusal stops all; what it left is on disk."""
        while self._pending and (self.todo or not self._beginning.issuperset(self._pending)):
            done, _ = self.ray.wait([*self._pending], num_returns=1, timeout=POLL_S)
            for reference in done:
                self._answered(reference)
            if not done and self._beginning.issuperset(self._pending):
                room_of(self.ray, self.request)  # nobody is at work: somebody must be able to begin

    def stop(self) -> None:
        """End every actor, also one that never answered; what any of them left on a node is removed there."""
        for actor in self._actors:
            with suppress(Exception):  # it is gone already
                self.ray.kill(actor)
        if silent := clear(self.ray, self.apart):
            self.note(f"{silent} nodes didn't answer: {self.apart} may be left in their folder for temporary files")

    def _answered(self, reference: Any) -> None:
        """Take what the worker sends. Whatever Ray says instead, but that the worker's own code raised, is a loss."""
        actor, key = self._pending.pop(reference)
        try:
            landed: Landed = self.ray.get(reference)
        except self.ray.exceptions.RayTaskError as error:
            landed = Landed({}, last_line(error))
        except self.ray.exceptions.RayError as error:
            with suppress(Exception):  # one that is only out of reach must not come back
                self.ray.kill(actor)
            if reference not in self._ended:  # it had landed all that it was asked for
                self._lost(key, error)
            return
        self.take(landed.files)
        if landed.refusal:
            raise SessionError(
                f"unit {key.name}" if key else "a worker",
                expected="a unit that landed" if key else "a worker that begins",
                found=landed.refusal,
                todo="See failures/ in the run folder, and mend what the worker's node lacks.",
            )
        if key is not None:
            self._landed += 1
            self.note(f"{self._landed} of {self.total} units landed")
        if reference not in self._ended:
            self._next(actor)

    def _next(self, actor: Any) -> None:
        if self.todo:
            key = self.todo.popleft()
            self._pending[actor.land.remote(key)] = (actor, key)
        else:
            last = actor.end.remote()
            self._ended.add(last)
            self._pending[last] = (actor, None)

    def _lost(self, key: UnitKey | None, error: Exception) -> None:
        """The unit goes back to the front and another actor is started, or the run ends."""
        name = f"unit {key.name}" if key else "a worker without a unit"
        first = last_line(error) if CREATION in str(error) else (str(error).strip().splitlines() or [NO_REASON])[0]
        if key is not None and not self.loaded.protocol.resume:
            raise SessionError(
                name,
                expected="its journal from the worker that had it",
                found=f"none: the worker was lost ({first})",
                todo="This protocol doesn't resume: start the whole run again.",
            )
        losses = self._count(key)
        if losses > LOSSES:
            raise SessionError(
                name,
                expected=f"at most {LOSSES} lost workers",
                found=f"{losses}: {first}",
                todo="Look at the nodes' logs.",
            )
        self.note(f"{name}: its worker was lost, another is started")
        if key is not None:
            self.todo.appendleft(key)
        if self.todo:
            self.start()

    def _count(self, key: UnitKey | None) -> int:
        if key is None:
            self._lost_idle += 1
            return self._lost_idle
        self._losses[key] = self._losses.get(key, 0) + 1
        return self._losses[key]


@dataclass(frozen=True, slots=True)
class Cluster:
    """`address`: a running cluster's, else one is started here and stopped at the end. `workers`: how many actors; by
    default as many as the cluster's cores or GPUs hold. There are never more than units.
    """

    address: str | None
    workers: int | None


def land_on_ray(  # noqa: PLR0913
    loaded: LoadedProtocol,
    request: Request,
    keys: tuple[UnitKey, ...],
    cluster: Cluster,
    *,
    take: Take,
    note: Callable[[str], None],
) -> None:
    """Have the units made; `take` gets what each answer of a worker brings.

    SessionError: no Ray, no cluster, a worker that refuses, one that was lost where the protocol can't resume, no node
    left that holds one.
    """
    require_ray()
    ray = importlib.import_module("ray")
    _connect(ray, cluster.address)
    pool = Pool(loaded, request, take, note, ray, deque(keys), len(keys), new_name())
    try:
        room = room_of(ray, request)
        for _ in range(min(cluster.workers or room, len(keys))):
            pool.start()
        pool.run()
    except ray.exceptions.RayError as error:
        raise _broken(error) from error
    finally:
        with suppress(Exception):
            pool.stop()
        with suppress(Exception):
            ray.shutdown()
        remove(pool.apart)  # here also where Ray is broken


def clear(ray: Any, apart: str) -> int:
    """Remove the actors' folder on every node that is alive; how many didn't answer in CLEAR_S."""
    at_node = importlib.import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
    nodes = [one["NodeID"] for one in ray.nodes() if one["Alive"]]
    asked = [
        ray.remote(remove)
        .options(num_cpus=0, max_retries=0, scheduling_strategy=at_node(node_id=node, soft=False))
        .remote(apart)
        for node in nodes
    ]
    return len(ray.wait(asked, num_returns=len(asked), timeout=CLEAR_S)[1]) if asked else 0


def _connect(ray: Any, address: str | None) -> None:
    tree = places()
    own = os.pathsep.join(map(str, tree.studies))  # folders that every node of the cluster has, as it has the tree
    environment = {"env_vars": {"HARNESS_ROOT": str(tree.root), STUDIES: own}}
    try:
        ray.init(
            address=address or "local",
            include_dashboard=None if address else False,
            log_to_driver=False,
            logging_level="error",
            runtime_env=environment,
        )
    except (ConnectionError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        raise _no_cluster(address, error) from error


def room_of(ray: Any, request: Request) -> int:
    """Actors that the cluster's nodes hold at once, each whole on one; SessionError where none holds any."""
    threads, cuda = request.execution.threads, request.execution.device == "cuda"
    there = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    cores = [(int(one.get("CPU", 0)) // threads, int(one.get("GPU", 0))) for one in there]
    room = sum(min(pair) if cuda else pair[0] for pair in cores)
    if room < 1:
        raise SessionError(
            "the Ray cluster",
            expected=f"a node with {threads} cores" + (" and a GPU" if cuda else ""),
            found=str([{name: one.get(name, 0) for name in ("CPU", "GPU")} for one in there]),
            todo="Add a node that has them.",
        )
    return room


def last_line(error: Exception) -> str:
    """What was raised on a worker, in Ray's words the last line of a traceback; one line of ASCII."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return words(lines[-1].strip() if lines else NO_REASON)


def _broken(error: Exception) -> SessionError:
    return SessionError(
        "the Ray cluster",
        expected="one that goes on",
        found=f"{type(error).__name__}: {last_line(error)}",
        todo="Look at the nodes' logs. What landed stays.",
    )
