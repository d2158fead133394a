"""Making evidence: each reach once for a process, in the order in which a protocol's parts need each other.

smoke record -> the run -> (its model released) placement, replay, determinism in fresh processes -> frozen snapshots.
Under xdist the workers share the run's units by locks; the parts made apart are made by the first worker that asks.
"""

import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
from filelock import FileLock

from harness.checks.frozen import SmokeEvidence, SnapshotEvidence
from harness.errors import HarnessError, JournalError, SessionError, StorageError
from harness.evidence import PairEvidence, RunEvidence, VariantEvidence
from harness.journal.assemble import read_spec
from harness.journal.folder import RunFolder, journals
from harness.ledgers.close import close_run
from harness.plugin.judgements import altered_since_judged, keep_judgement
from harness.plugin.progress import sink_for
from harness.plugin.session import GateSession
from harness.protocols.load import LoadedProtocol
from harness.records.audit import SmokeReference
from harness.records.protocol import PairRule, Placement
from harness.run.child import replace_request, run_apart, with_threads
from harness.run.registration import registration_evidence
from harness.run.request import Options, Request, make_request
from harness.run.smoke import SmokeCall, passed_smoke
from harness.run.start import generate_run, require_device
from harness.snapshots.store import is_frozen, links, read_frozen


class Stages:
    """The evidence of one protocol in this session."""

    def __init__(self, session: GateSession, loaded: LoadedProtocol) -> None:
        self._session = session
        self._loaded = loaded
        self._claim: FileLock | None = None
        self._made: dict[str, Any] = {}

    @property
    def folder(self) -> RunFolder:
        """The run's folder."""
        return self._session.folder(self._loaded.protocol.id)

    @cached_property
    def request(self) -> Request:
        """What this session asks for; ProtocolError, InputError or PlacementError refuse."""
        option = self._session.config.option
        options = Options(
            checkpoint=Path(option.checkpoint) if option.checkpoint else None,
            inputs=input_folders(option.inputs),
            gpu_memory=option.gpu_memory,
            cpu_memory=option.cpu_memory,
            port=option.port,
        )
        tier = self._session.tier
        if tier is None:
            raise RuntimeError("a request needs a tier")
        return make_request(self._loaded, tier, self.folder.path.name, options, self._session.tree)

    @property
    def domains(self) -> tuple[str, ...]:
        """The domains that run."""
        return self.request.domains

    def open(self, *, claim: bool) -> None:
        """Refuse before any generation: inputs, prompts, checkpoint, folder, unfrozen parts."""
        request = self.request  # what is refused leaves no folder behind
        require_device(request.execution, request.placement)
        self._made["registration"] = registration_evidence(self._loaded, request)
        if is_frozen(self._loaded.protocol.id, self._session.tree):
            read_frozen(self._loaded.protocol.id, self._session.tree)
        if claim:
            self.folder.create()
            self._claim = self.folder.claim()
            require_resumable(self._loaded, self.folder, request)
            self._session.books.errors += (*altered_since_judged(self.folder), *links(self.folder))
            keep_judgement(self.folder)

    def close(self) -> None:
        """Release the folder."""
        if self._claim is not None:
            self._claim.release()

    def run_sha256(self) -> str:
        """The run's name, where it has one already."""
        made = self._made.get("run")
        try:
            return made.run_sha256 if isinstance(made, RunEvidence) else "none yet"
        except HarnessError:
            return "none: the run is incomplete"

    def evidence(self, reach: str) -> Any:
        """The evidence of a reach, made at the first call. What can't be made is raised at every call."""
        makers: dict[str, Callable[[], Any]] = {
            "smoke_record": self._smoke,
            "run": self._make_run,
            "placement": lambda: self._pair("placement", self._loaded.protocol.placement_equivalence),
            "replay": lambda: self._pair("replay", self._loaded.protocol.independent_replay),
            "determinism": self._determinism,
            "snapshots": self._snapshots,
        }
        return self._remembered(reach, makers.get(reach, _unknown))

    def _remembered(self, name: str, make: Callable[[], Any]) -> Any:
        """What `make` gives, or why it gives nothing, once a process: no row tries again what failed for another."""
        if name not in self._made:
            try:
                self._made[name] = make()
            except HarnessError as error:
                self._made[name] = Unavailable(error)
            except OSError as error:
                self._made[name] = Unavailable(_storage(self.folder.path, error))
            except Exception as error:  # a fault of the harness or of a library; raised here and at every later reading
                self._made[name] = Unavailable(error)
                raise
        return self._made[name]

    def _required(self, name: str, make: Callable[[], Any]) -> Any:
        made = self._remembered(name, make)
        if isinstance(made, Unavailable):
            raise made.reason
        return made

    def _smoke(self) -> SmokeEvidence:
        reference, folder = self._smoke_record()
        return SmokeEvidence(self._run(), reference, folder)

    def _smoke_record(self) -> tuple[SmokeReference, RunFolder]:
        record: tuple[SmokeReference, RunFolder] = self._required("smoke reference", self._find_smoke)
        return record

    def _find_smoke(self) -> tuple[SmokeReference, RunFolder]:
        option = self._session.config.option
        call = SmokeCall(self.request, self._session.tree, option.gpu_memory, option.cpu_memory)
        with self.folder.lock("smoke"):
            return passed_smoke(self._loaded, self.folder, call)

    def _run(self) -> RunEvidence:
        made: RunEvidence = self._required("run", self._make_run)
        return made

    def _make_run(self) -> RunEvidence:
        if any(
            gate.reach == "smoke_record" and self.request.tier in gate.tiers for gate in self._loaded.protocol.gates
        ):
            self._smoke_record()  # no formal unit is generated before a smoke run of the same protocol passed
        return self._generate()

    def _generate(self) -> RunEvidence:
        try:
            generate_run(self._loaded, self.request, self.folder, sink=sink_for(self._session.config))
            close_run(self.folder, self._loaded)
        except HarnessError as error:
            return self._evidence_at(self.folder, stopped=error)
        return self._evidence_at(self.folder)

    def _evidence_at(self, folder: RunFolder, stopped: HarnessError | None = None) -> RunEvidence:
        inputs = tuple(Path(one) for one in self.request.inputs)
        return RunEvidence(self._loaded, folder, stopped, checkpoint=Path(self.request.checkpoint), inputs=inputs)

    def _pair(self, name: str, rule: PairRule) -> PairEvidence:
        first = self._run()
        _ = first.run  # a run that was stopped has no second
        placement = self._other_placement(rule)
        if self.request.port:  # a port's own placement stands where the registered one would
            sides = (self.request.placement.id, placement.id)
            rule = msgspec.structs.replace(rule, left=sides[0], right=sides[1])
        request = replace_request(
            self.request,
            grid=rule.grid,
            placement=placement,
            run_id=f"{self.request.run_id}/{name}",
        )
        second, pids = self._apart(name, request, workers=1)
        return PairEvidence(first, second, rule, pids)

    def _other_placement(self, rule: PairRule) -> Placement:
        registered = {placement.id: placement for placement in self._loaded.protocol.placements}
        if rule.left == rule.right:
            return self.request.placement
        other = rule.left if self.request.placement.id == rule.right else rule.right
        return registered[other]

    def _determinism(self) -> VariantEvidence:
        first = self._run()
        _ = first.run
        rule = self._loaded.protocol.row_determinism
        pairs = {}
        for variant in rule.variants:
            request = replace_request(
                self.request,
                grid=rule.grid,
                execution=with_threads(self.request, variant.threads),
                run_id=f"{self.request.run_id}/{variant.id}",
            )
            second, pids = self._apart(variant.id, request, workers=variant.workers)
            placement = self.request.placement.id
            pairs[variant.id] = PairEvidence(
                first, second, PairRule(grid=rule.grid, left=placement, right=placement, fields=rule.fields), pids
            )
        return VariantEvidence(pairs, {variant.id: variant for variant in rule.variants})

    def _apart(self, name: str, request: Request, *, workers: int) -> tuple[RunEvidence, tuple[int, ...]]:
        part = self.folder.part(name)
        with self.folder.lock(f"part-{name}"):
            show = sink_for(self._session.config)
            show(f"{self.request.protocol} {name}: {workers} fresh process(es) over grid {request.grid}")
            report = run_apart(request, part, forbidden=self.folder.path, workers=workers)
            show("")
            close_run(part, self._loaded)
        return self._evidence_at(part), report.pids

    def _snapshots(self) -> SnapshotEvidence:
        return SnapshotEvidence(self._run(), read_frozen(self._loaded.protocol.id, self._session.tree))


class Unavailable:
    """Evidence that couldn't be made: reading any part of it raises the reason."""

    def __init__(self, reason: Exception) -> None:
        self.reason = reason

    def __getattr__(self, name: str) -> Any:
        raise self.reason


def _unknown() -> Any:
    raise RuntimeError("a gate asks for evidence that this module doesn't make")


def _storage(folder: Path, error: OSError) -> StorageError:
    return StorageError(
        str(error.filename or folder),
        expected="a disk that can be read and written",
        found=error.strerror or type(error).__name__,
        todo="Mend it and start again with --run; finished units stay valid.",
    )


def input_folders(named: list[str]) -> tuple[Path, ...]:
    """--inputs, or HARNESS_INPUTS."""
    chosen = named or [one for one in os.environ.get("HARNESS_INPUTS", "").split(os.pathsep) if one]
    return tuple(Path(one) for one in chosen)


def require_resumable(loaded: LoadedProtocol, folder: RunFolder, request: Request) -> None:
    """A folder with journals is this request's run; an incomplete one is resumed only where the protocol allows it."""
    begun = list(journals(folder))
    if not begun:
        return
    spec = read_spec(folder)
    pairs = (
        ("protocol_digest", loaded.digest, spec.protocol_digest),
        ("tier", request.tier, spec.tier),
        ("placement", request.placement.id, spec.placement),
        ("port", str(request.port), str(spec.port)),
        ("domains", str(request.domains), str(spec.domains)),
    )
    for name, expected, found in pairs:
        if expected != found:
            raise JournalError(
                f"{folder.path}: {name}",
                expected=expected,
                found=found,
                todo="Judge this run with its own options, or start a new one.",
            )
    units = loaded.units(request.grid, request.domains)
    if len(begun) < len(units) and not loaded.protocol.resume:
        raise SessionError(
            str(folder.path),
            expected=f"all {len(units)} units or none",
            found=f"{len(begun)} units of a run that ended",
            todo="This protocol doesn't resume: the journals stay as evidence; start the whole run again.",
        )
