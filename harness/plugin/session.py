"""The gate session of one process: protocols, run folders, evidence by reach, judgements, and the end.

Evidence is made once for a process and reach (`harness.plugin.stages`); judging only reads it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.errors import HarnessError, SessionError
from harness.evidence import Differences, RunEvidence, guarded
from harness.journal.assemble import read_spec
from harness.journal.folder import RunFolder, journals
from harness.places import Places, include, places, places_of_run
from harness.plugin import options
from harness.plugin.books import Books, Recorder
from harness.plugin.devices import own_gpu
from harness.protocols.folders import named_protocol, protocol_ids
from harness.protocols.grids import executed_grid, is_executed
from harness.protocols.load import LoadedProtocol, load_protocol
from harness.records.protocol import GraphTaskProtocol, JudgedProtocol, Tier
from harness.run.attempting import enter_beginning, enter_refusal, require_enterable
from harness.run.comparable import not_comparable
from harness.run.request import new_run_id
from harness.snapshots.acceptance import FROZEN
from harness.snapshots.store import is_frozen

if TYPE_CHECKING:
    from harness.plugin.collect import GateRow
    from harness.plugin.stages import Stages

KEY = pytest.StashKey["GateSession"]()
DEFAULT_PREFIX = "nano-"
NOT_RUN = "{}: this tier executes no program; code cells are not run, and nothing of them is scored"
NOT_CAPTURED = "{}: executed on the CPU, where no step is captured; nothing is said of a captured one"


@dataclass(frozen=True, slots=True)
class Judged:
    """A row's verdict: the differences (none: it holds), and the gate's fraction over all its rows."""

    differences: Differences
    fraction: str

    @property
    def message(self) -> str:
        """What a failing gate prints."""
        return f"{self.fraction} rows hold; this one doesn't: " + "; ".join(self.differences)


@dataclass(slots=True)
class GateSession:
    """One process's view of a session over gates/."""

    config: pytest.Config
    tree: Places
    tier: Tier | None
    protocols: tuple[LoadedProtocol, ...]
    runs: dict[str, str]
    books: Books = field(default_factory=Books)
    records: dict[str, str] = field(default_factory=dict)
    _stages: dict[str, "Stages"] = field(default_factory=dict)
    _tallies: dict[tuple[str, str], str] = field(default_factory=dict)

    @property
    def is_worker(self) -> bool:
        """Whether this is an xdist worker."""
        return hasattr(self.config, "workerinput")

    @property
    def only_collects(self) -> bool:
        """Nothing is generated or written."""
        return bool(self.config.option.collectonly)

    def plain(self) -> dict[str, str]:
        """Run folders by protocol, for workers."""
        return dict(self.runs)

    def folder(self, protocol_id: str) -> RunFolder:
        """The run folder of a protocol in this session."""
        return RunFolder(Path(self.runs[protocol_id]))

    def stages(self, protocol_id: str) -> "Stages":
        """The protocol's evidence, made on demand. Imports the runner, so only after collection."""
        from harness.plugin.stages import Stages  # noqa: PLC0415 - collection must not load the runner

        if protocol_id not in self._stages:
            loaded = next(one for one in self.protocols if one.protocol.id == protocol_id)
            self._stages[protocol_id] = Stages(self, loaded)
        return self._stages[protocol_id]

    def domains(self, loaded: LoadedProtocol) -> tuple[str, ...]:
        """The domains that run: all, or under --port those whose input is there."""
        named = self.config.option.port and self.tier is not None
        return self.stages(loaded.protocol.id).domains if named else loaded.domains

    def start(self) -> None:
        """Refuse, before any model is loaded; claim the run folders (not on workers, which share them)."""
        if self.only_collects or self.tier is None:
            return
        for loaded in self.protocols:
            with self._refusal_entered(loaded):
                self.stages(loaded.protocol.id).open()
                self.require_compared(loaded)
            self._require_enterable(loaded)
        if self.is_worker:
            return
        for loaded in self.protocols:
            with self._refusal_entered(loaded):
                self.stages(loaded.protocol.id).claim()
        for loaded in self.protocols:
            stages = self.stages(loaded.protocol.id)
            enter_beginning(loaded, stages.folder, stages.request, self.tree)
            stages.keep()

    def _require_enterable(self, loaded: LoadedProtocol) -> None:
        """What the attempts file itself refuses isn't entered in it. Workers share what the controller entered."""
        if not self.is_worker:
            stages = self.stages(loaded.protocol.id)
            require_enterable(loaded, stages.folder, stages.request, self.tree)

    @contextmanager
    def _refusal_entered(self, loaded: LoadedProtocol) -> Iterator[None]:
        """What refuses a formal session stands in the protocol's attempts file before it is said."""
        try:
            yield
        except (HarnessError, OSError) as error:
            if self.tier == "formal" and not self.is_worker:
                name, port = self.folder(loaded.protocol.id).path.name, bool(self.config.option.port)
                enter_refusal(loaded, name, self.tree, port=port, reason=error)
            raise

    def require_compared(self, loaded: LoadedProtocol) -> None:
        """SessionError for a replay that no frozen result is left to be compared with."""
        left_out = self.left_out(loaded)
        frozen = [gate for gate in loaded.protocol.gates if gate.reach in FROZEN and self.tier in gate.tiers]
        if self.tier == "replay" and all(gate.reach in left_out for gate in frozen):
            raise SessionError(
                f"{loaded.protocol.id}: replay",
                expected="frozen results that this run can be held against",
                found="; ".join(self.not_compared(loaded)) or "no gate over frozen results",
                todo="Replay with the registered weights. Another checkpoint's run is judged by smoke and formal.",
            )

    def judge(self, request: pytest.FixtureRequest, row: "GateRow") -> Judged:
        """Judge one row, and record the properties of its JUnit case (ASCII; digests, never model text)."""
        evidence = self.stages(row.protocol).evidence(row.gate.reach)
        differences = guarded(row.check, evidence, row.row)
        judged = Judged(differences, self._fraction(row, evidence))
        properties = {
            "protocol": row.protocol,
            "protocol_digest": next(one.digest for one in self.protocols if one.protocol.id == row.protocol),
            "tier": row.tier,
            "gate": row.gate.id,
            "clause": row.gate.clause,
            "cell": row.row.name or "whole",
            "run_sha256": self.stages(row.protocol).run_sha256(),
            "fraction": judged.fraction,
            "differences": str(len(differences)),
        }
        for name, value in properties.items():
            request.node.user_properties.append((name, value.encode("ascii", "backslashreplace").decode("ascii")))
        return judged

    def _fraction(self, row: "GateRow", evidence: Any) -> str:
        from harness.plugin.collect import rows_of  # noqa: PLC0415 - collect imports this module

        key = (row.protocol, row.gate.id)
        if key not in self._tallies:
            rows = [one for one in rows_of(self.config, row.gate.id, row.check) if one.protocol == row.protocol]
            passed = sum(1 for one in rows if not guarded(one.check, evidence, one.row))
            self._tallies[key] = f"{passed}/{len(rows)}"
        return self._tallies[key]

    def header(self) -> list[str]:
        """Protocols, digests and what is unfrozen."""
        lines = []
        for loaded in self.protocols:
            state = "frozen" if is_frozen(loaded.results, self.tree) else "unfrozen: no snapshot gate"
            port = ", PORT" if self.config.option.port else ""
            lines.append(f"protocol {loaded.protocol.id} {loaded.digest[:16]} tier {self.tier}{port}; results {state}")
            lines += [self._run_line(loaded)] if self.tier is not None and not self.only_collects else []
            lines += [f"{loaded.protocol.id}: not compared: {one}" for one in self.not_compared(loaded)]
            lines += [NOT_RUN.format(loaded.protocol.id)] if self._leaves_programs(loaded) else []
            lines += [NOT_CAPTURED.format(loaded.protocol.id)] if self._captures_nothing(loaded) else []
        return lines

    def left_out(self, loaded: LoadedProtocol) -> dict[str, str]:
        """Reaches whose frozen results can't be this session's, with the reason: other weights, another environment."""
        if not is_frozen(loaded.results, self.tree):
            return {}
        opened = self.tier is not None and not self.only_collects
        if opened and self.config.option.port and self.stages(loaded.protocol.id).other_weights:
            return dict.fromkeys(FROZEN, "a port on other weights has no results in common with the frozen run")
        reason = not_comparable(loaded, self.tree)
        return {} if reason is None else {"tensors": reason}

    def not_compared(self, loaded: LoadedProtocol) -> tuple[str, ...]:
        """The tier's gates over frozen results that are left out, each with the reason."""
        left_out = self.left_out(loaded)
        gates = (gate for gate in loaded.protocol.gates if gate.reach in left_out and self.tier in gate.tiers)
        return tuple(f"{gate.id}: {left_out[gate.reach]}" for gate in gates)

    def _leaves_programs(self, loaded: LoadedProtocol) -> bool:
        """Whether this tier leaves the programs of a protocol that registers a sandbox unexecuted."""
        if self.tier is None or self.only_collects or not isinstance(loaded.protocol, JudgedProtocol):
            return False
        executed = executed_grid(loaded.protocol, loaded.protocol.tier_grids[self.tier])
        return not executed and any(is_executed(domain) for domain in loaded.protocol.domains)

    def _captures_nothing(self, loaded: LoadedProtocol) -> bool:
        """Whether steps that could be captured are run on a device that captures none."""
        if self.tier is None or self.only_collects or not isinstance(loaded.protocol, GraphTaskProtocol):
            return False
        return loaded.protocol.execution.device != "cuda"

    def _run_line(self, loaded: LoadedProtocol) -> str:
        """Whether a run is made or one that is there is judged, and from how many units it goes on."""
        folder = self.folder(loaded.protocol.id)
        there, verdicts = len(list(journals(folder))), len(list((folder.path / "sandbox").glob("*.json")))
        found = f"already there, with {there} units" + (f" and {verdicts} verdicts" if verdicts else "")
        return f"run {folder.path.name}: " + (found if there else "new")

    def finish(self, session: pytest.Session, exitstatus: int) -> None:
        """On the controller: close the books, write the audit records, set the exit code."""
        from harness.plugin.ending import end_session  # noqa: PLC0415 - after collection

        if not self.is_worker and not self.only_collects:
            end_session(self, session, exitstatus)
            if exitstatus == pytest.ExitCode.INTERNAL_ERROR:
                self._say()  # pytest writes no summary after an internal error, and the books are open all the same

    def _say(self) -> None:
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.ensure_newline()
            for line in self.summary():
                reporter.write_line(line)

    def summary(self) -> list[str]:
        """Lines for the terminal."""
        return [self.records[name] for name in sorted(self.records)]


def is_gate_session(config: pytest.Config) -> bool:
    """Whether this session is over gates/."""
    return KEY in config.stash


def gate_session(config: pytest.Config) -> GateSession:
    """The session of a config for which `is_gate_session` holds."""
    return config.stash[KEY]


def open_session(config: pytest.Config) -> None:
    """Create the session where the arguments lie in gates/; UsageError for what its tier refuses."""
    tree = places()
    workerinput = getattr(config, "workerinput", None)
    if workerinput is None and not options.covers_gates(config, tree.gates):
        return
    if workerinput is not None and "harness_runs" not in workerinput:
        return
    if workerinput is None:
        options.refuse(config, tree.gates)
    own_gpu(config)
    tier = options.selected_tier(config)
    try:
        chosen, tree = _named(config, tree)
        protocols = tuple(load_protocol(name, tree) for name in chosen)
    except HarnessError as error:
        raise pytest.UsageError(str(error)) from error
    _require_frozen_for_replay(tier, protocols, tree)
    runs = workerinput["harness_runs"] if workerinput else _run_folders(config, tree, tier, protocols)
    config.stash[KEY] = session = GateSession(config, tree, tier, protocols, runs)
    config.pluginmanager.unregister(name="hypothesispytest")  # no gate uses it, and its summary loads the whole library
    if workerinput is None:
        config.pluginmanager.register(Recorder(session.books), "pregate-books")
    if workerinput is None and not config.option.collectonly and config.option.xmlpath is None:
        config.option.xmlpath = str(Path(next(iter(runs.values()))) / "junit.xml")


def _named(config: pytest.Config, tree: Places) -> tuple[tuple[str, ...], Places]:
    """IDs of the session's protocols, and the tree with the folders that --protocol or --run name.

    Processes that this one starts are told of those folders too.
    """
    words = []
    for word in config.option.protocol:
        there = Path(config.invocation_params.dir, word)
        name, tree = named_protocol(str(there) if (there / "protocol.toml").is_file() else word, tree)
        words.append(name)
    config.option.protocol = words
    if config.option.run:
        tree = places_of_run(Path(config.invocation_params.dir, config.option.run), tree)
    include(tree.studies)
    return _chosen(config, tree), tree


def _chosen(config: pytest.Config, tree: Places) -> tuple[str, ...]:
    named = tuple(dict.fromkeys(config.option.protocol)) or _of_the_run(config)
    chosen = named or tuple(name for name in protocol_ids(tree) if name.startswith(DEFAULT_PREFIX))
    if not chosen:
        known = ", ".join(protocol_ids(tree)) or "none"
        raise pytest.UsageError(
            f"no --protocol given: expected one of {known}, found no {DEFAULT_PREFIX}* to run instead."
        )
    if config.option.run and len(chosen) > 1:
        raise pytest.UsageError(f"--run names one run folder: expected one --protocol, found {', '.join(chosen)}.")
    return chosen


def _of_the_run(config: pytest.Config) -> tuple[str, ...]:
    """The protocol that an existing run says it is of."""
    if not config.option.run:
        return ()
    folder = RunFolder(Path(config.invocation_params.dir, config.option.run))
    return (read_spec(folder).protocol,) if folder.file("spec.json").is_file() else ()


def _require_frozen_for_replay(tier: Tier | None, protocols: tuple[LoadedProtocol, ...], tree: Places) -> None:
    for loaded in protocols:
        if tier == "replay" and not is_frozen(loaded.results, tree):
            raise pytest.UsageError(
                f"protocol {loaded.protocol.id} is unfrozen: expected accepted results to replay against, found none. "
                "Accept a passed formal run first: python -m harness snapshots accept RUN."
            )


def _run_folders(
    config: pytest.Config, tree: Places, tier: Tier | None, protocols: tuple[LoadedProtocol, ...]
) -> dict[str, str]:
    if config.option.run:
        return {
            loaded.protocol.id: str(Path(config.invocation_params.dir, config.option.run).resolve())
            for loaded in protocols
        }
    run_id = new_run_id(tier or "none", port=config.option.port)
    return {loaded.protocol.id: str(tree.reports / loaded.protocol.id / run_id) for loaded in protocols}


def evidence_of_run(session: GateSession, loaded: LoadedProtocol) -> RunEvidence:
    """The main run's evidence as it lies on disk."""
    return RunEvidence(loaded, session.folder(loaded.protocol.id))
