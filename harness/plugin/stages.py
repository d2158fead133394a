"""Making evidence: each reach once for a process, in the order in which a protocol's parts need each other.

smoke record -> the run -> (its model released) placement, replay, determinism in fresh processes -> frozen snapshots.
Under xdist the workers share the run's units by locks; the parts made apart are made by the first worker that asks.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
from filelock import FileLock

from harness.checks.frozen import RegistrationEvidence, SmokeEvidence, SnapshotEvidence
from harness.checks.taped_graph import GraphSides
from harness.checks.taped_loop import LoopEvidence
from harness.claims.load import NAME as CLAIM_RULES
from harness.claims.load import load_claims
from harness.errors import HarnessError, StorageError
from harness.evidence import PairEvidence, RunEvidence, VariantEvidence
from harness.gold import recorded_tasks, registered_tasks
from harness.journal.assemble import read_spec
from harness.journal.folder import RunFolder, write_once
from harness.ledgers.close import close_books, close_generation, close_run
from harness.plugin.graphs import make_graph
from harness.plugin.loops import make_loop
from harness.plugin.options import input_folders, sandbox_image
from harness.plugin.progress import sink_for
from harness.plugin.session import GateSession
from harness.protocols.folders import beside
from harness.protocols.grids import UnitKey, placement_rule
from harness.protocols.load import LoadedProtocol
from harness.records.audit import SmokeReference
from harness.records.kinds import JudgedRun
from harness.records.protocol import (
    ApartRule,
    BaselinedProtocol,
    BehaviorProtocol,
    JudgedProtocol,
    PairRule,
    Placement,
    SamplingProtocol,
    TapedProtocol,
)
from harness.records.run import Baseline
from harness.run.again import SAME_PROCESS
from harness.run.baseline import named_or_frozen
from harness.run.child import replace_request, run_apart, with_threads
from harness.run.execute import ExecutionCall, execute_programs, executes, require_engine
from harness.run.keep import keep_protocol
from harness.run.ladder import Ground, effective_request, generate_down_the_ladder, has_ladder
from harness.run.registration import registration_evidence
from harness.run.request import Options, Request, make_request
from harness.run.resuming import require_resumable
from harness.run.scores import note_answers
from harness.run.smoke import SmokeCall, passed_smoke
from harness.run.start import generate_run, require_device
from harness.snapshots.judgements import altered_since_judged, keep_judgement
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
            inputs=(*input_folders(option.inputs), *beside(self._loaded.folder, "inputs")),
            gpu_memory=option.gpu_memory,
            cpu_memory=option.cpu_memory,
            port=option.port,
            baseline=Path(option.baseline) if option.baseline else None,
            sandbox_image=sandbox_image(option.sandbox_image),
        )
        tier = self._session.tier
        if tier is None:
            raise RuntimeError("a request needs a tier")
        request = make_request(self._loaded, tier, self.folder.path.name, options, self._session.tree)
        return effective_request(self._loaded, request, self.folder)

    @property
    def domains(self) -> tuple[str, ...]:
        """The domains that run."""
        return self.request.domains

    def open(self) -> None:
        """Refuse before any generation: inputs, prompts, checkpoint, engine, unfrozen parts. Nothing is written."""
        request = self.request  # what is refused leaves no folder behind
        require_device(request.execution, request.placement)
        require_resumable(self._loaded, self.folder, request)
        self._open_baseline()
        if (self._loaded.folder / CLAIM_RULES).is_file():
            load_claims(self._loaded)  # a registration that contradicts itself is refused before anything is made
        self._made["registration"] = registration_evidence(self._loaded, request)
        if is_frozen(self._loaded.results, self._session.tree):
            read_frozen(self._loaded.results, self._session.tree)

    @property
    def other_weights(self) -> bool:
        """Whether this session's checkpoint isn't the registered one, by its digests."""
        opened = self._made.get("registration")
        deviations = opened.deviations if isinstance(opened, RegistrationEvidence) else ()
        return any(one.field.startswith("checkpoint.") for one in deviations)

    def claim(self) -> None:
        """Take the run folder for this session; what an earlier session judged is held against its files first."""
        self.folder.create()
        self._claim = self.folder.claim()
        require_resumable(self._loaded, self.folder, self.request)
        self._session.books.errors += (*altered_since_judged(self.folder), *links(self.folder))
        keep_judgement(self.folder)

    def keep(self) -> None:
        """Once the run has begun on record: the files of an author's own protocol lie in its folder too."""
        keep_protocol(self._loaded, self.folder, Path(self.request.checkpoint), self._session.tree)

    def _open_baseline(self) -> None:
        """The baseline, and for a tier that executes programs the engine, before anything is made."""
        if isinstance(self._loaded.protocol, BaselinedProtocol):
            self._read_baseline(self._loaded.units(self.request.grid, self.request.domains))
        if isinstance(self._loaded.protocol, JudgedProtocol) and self._must_execute():
            require_engine(self._loaded.protocol, self._execution)

    def _must_execute(self) -> bool:
        """A run that has its ledger had all its verdicts: one that is gone since is never made again."""
        return executes(self._loaded, self.request) and not self.folder.file("ledger.json").exists()

    def close(self) -> None:
        """Release the folder."""
        if self._claim is not None:
            self._claim.release()

    @property
    def stopped_by(self) -> HarnessError | None:
        """What ended this process's run before its books were closed, if anything did."""
        made = self._made.get("run")
        return (made.stopped or made.unjudged) if isinstance(made, RunEvidence) else None

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
            "same_process": self._same_process,
            "loop": self._loop,
            "graph": self._graph,
            "placement": lambda: self._pair("placement", placement_rule(self._loaded.protocol)),
            "replay": lambda: self._pair("replay", self._loaded.protocol.independent_replay),
            "determinism": self._determinism,
            "snapshots": self._snapshots,
            "tensors": self._snapshots,
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
        registers = isinstance(self._loaded.protocol, BaselinedProtocol)
        keys = self._loaded.units(self.request.grid, self.request.domains)
        baseline = self._read_baseline(keys).run_sha256 if registers else "none"
        call = SmokeCall(self.request, self._session.tree, option.gpu_memory, option.cpu_memory, baseline)
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
            self._generate_grid()
            self._note_sources(self.folder)
            run = close_generation(self.folder, self._loaded)
        except HarnessError as error:
            return self._evidence_at(self.folder, stopped=error)
        try:
            if isinstance(run, JudgedRun) and self._must_execute():
                show = sink_for(self._session.config)
                execute_programs(self._loaded, run, self.folder, self._execution, sink=show)
            close_books(self.folder, self._loaded, run)
        except HarnessError as error:
            return self._evidence_at(self.folder, unjudged=error)
        return self._evidence_at(self.folder)

    def _generate_grid(self) -> None:
        show = sink_for(self._session.config)
        if not has_ladder(self._loaded, self.request.tier):
            generate_run(self._loaded, self.request, self.folder, sink=show)
            return
        ground = Ground(smoke=self._smoke_record()[1], close=self._close_part)
        try:
            generate_down_the_ladder(self._loaded, self.request, self.folder, ground, sink=show)
        finally:
            self.__dict__.pop("request", None)  # from here on the placement is the one that the run ended at

    def _evidence_at(
        self, folder: RunFolder, stopped: HarnessError | None = None, unjudged: HarnessError | None = None
    ) -> RunEvidence:
        return RunEvidence(
            self._loaded,
            folder,
            stopped,
            checkpoint=Path(self.request.checkpoint),
            inputs=tuple(Path(one) for one in self.request.inputs),
            unjudged=unjudged,
            baseline_source=self._read_baseline,
        )

    def _read_baseline(self, keys: Sequence[UnitKey]) -> Baseline:
        return named_or_frozen(self._loaded, self.request, keys, self._session.tree)

    def _note_sources(self, folder: RunFolder) -> None:
        """What a run is read against besides its journals: the baseline's cells, and for completion the code tasks."""
        keys = self._loaded.units(read_spec(folder).grid, self.request.domains)
        if isinstance(self._loaded.protocol, BaselinedProtocol):
            write_once(folder.file("baseline.json"), self._read_baseline(keys), what="baseline")
        if isinstance(self._loaded.protocol, JudgedProtocol):
            tasks = registered_tasks(self._loaded, self._execution.inputs, keys)
            write_once(folder.file("tasks.json"), recorded_tasks(tasks), what="code tasks")
        note_answers(self._loaded, folder, self._execution.inputs, keys)

    @property
    def _execution(self) -> ExecutionCall:
        return ExecutionCall(tuple(Path(one) for one in self.request.inputs), self.request.sandbox_image)

    def _close_part(self, part: RunFolder) -> None:
        self._note_sources(part)
        close_run(part, self._loaded)

    def _same_process(self) -> PairEvidence:
        """What the run's own processes drew again, each its own units."""
        first, protocol = self._run(), self._loaded.protocol
        _ = first.run
        if not isinstance(protocol, SamplingProtocol | TapedProtocol):
            raise RuntimeError(f"{protocol.id} registers no replay in the same process")
        again, part, placement = protocol.same_process_replay, self.folder.part(SAME_PROCESS), self.request.placement.id
        with self.folder.lock(f"part-{SAME_PROCESS}"):
            self._close_part(part)
        rule = PairRule(grid=again.grid, left=placement, right=placement, fields=again.fields)
        return PairEvidence(first, self._evidence_at(part), rule, ())

    def _loop(self) -> LoopEvidence:
        """How this run's loop decodes, beside `generate`."""
        first = self._run()
        _ = first.run
        return make_loop(first, self.request, sink_for(self._session.config))

    def _graph(self) -> GraphSides:
        """What this run's executor gives, beside what its contract is held to."""
        first = self._run()
        _ = first.run
        return make_graph(first, self.request, sink_for(self._session.config), self._note_sources)

    def _first_of(self, rule: ApartRule) -> RunEvidence:
        """What a pair's other side is held against: this run, or its smoke run for a pair at the smoke budget."""
        grids, own = self._loaded.protocol.grids, self.request.grid
        if grids[rule.grid].max_new_tokens == grids[own].max_new_tokens:
            return self._run()
        _ = self._run().run
        return self._evidence_at(self._smoke_record()[1])

    def _pair(self, name: str, rule: ApartRule) -> PairEvidence:
        first = self._first_of(rule)
        _ = first.run  # a run that was stopped has no second
        placement = self._other_placement(rule, first.spec.placement)
        if self.request.port:  # a port's own placement stands where the registered one would
            sides = (first.spec.placement, placement.id)
            rule = msgspec.structs.replace(rule, left=sides[0], right=sides[1])
        whole = self._run().spec.run_id
        request = replace_request(self.request, grid=rule.grid, placement=placement, run_id=f"{whole}/{name}")
        second, pids = self._apart(name, request, workers=1)
        return PairEvidence(first, second, rule, pids, part_of=whole)

    def _other_placement(self, rule: ApartRule, own: str) -> Placement:
        """The rule's placement that isn't `own`, the first side's: a smoke run's may not be the one arrived at."""
        registered = {placement.id: placement for placement in self._loaded.protocol.placements}
        if rule.left == rule.right:
            return self.request.placement
        return registered[rule.left if own == rule.right else rule.right]

    def _determinism(self) -> VariantEvidence:
        first = self._run()
        _ = first.run
        if not isinstance(self._loaded.protocol, BehaviorProtocol):
            raise RuntimeError(f"{self._loaded.protocol.id} registers no row determinism")
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
            self._close_part(part)
        return self._evidence_at(part), report.pids

    def _snapshots(self) -> SnapshotEvidence:
        return SnapshotEvidence(self._run(), read_frozen(self._loaded.results, self._session.tree))


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
