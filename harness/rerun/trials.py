"""Forwards by their conditions, each made once; those of one load share a process."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from harness.canon import digest
from harness.errors import HarnessError
from harness.records.explanation import NoTrace, Untried
from harness.rerun.conditions import Conditions
from harness.rerun.processes import Make
from harness.rerun.trial import Forward, ForwardReport, Load, TraceDigests, Trial, TrialReport

Note = Callable[[str], None]


@dataclass(slots=True)
class Trials:
    """What was made so far, by conditions. `make` makes a trial: in a process of its own, or a test's own way."""

    make: Make
    note: Note
    _reports: dict[str, TrialReport] = field(default_factory=dict)
    _made: dict[str, ForwardReport | Untried] = field(default_factory=dict)
    _traces: dict[str, TraceDigests | NoTrace] = field(default_factory=dict)

    def run(self, wanted: Sequence[Conditions], *, trace: bool = False) -> None:
        """Make whatever of these isn't there yet."""
        loads: dict[str, tuple[Load, dict[str, Forward]]] = {}
        for one in wanted:
            if _key(one) not in self._made:
                loads.setdefault(digest(one.load), (one.load, {}))[1][_key(one)] = one.forward
        for at, (name, (load, forwards)) in enumerate(loads.items(), start=1):
            self.note(f"process {at} of {len(loads)}: {load.placement.id}, {load.dtype}, {load.experts} experts")
            self._run(name, load, forwards, trace=trace)

    def _run(self, name: str, load: Load, forwards: dict[str, Forward], *, trace: bool) -> None:
        try:
            report = self.make(Trial(load=load, forwards=tuple(forwards.values()), trace=trace))
        except HarnessError as error:
            self._made |= dict.fromkeys(forwards, Untried(reason=str(error)))
            return
        self._reports.setdefault(name, report)
        self._made |= zip(forwards, report.forwards, strict=True)
        if trace:
            self._traces |= zip(forwards, report.traces, strict=True)

    def outcome(self, one: Conditions) -> ForwardReport | Untried:
        """What a forward under these conditions gave."""
        return self._made[_key(one)]

    def read_back(self, one: Conditions) -> TrialReport:
        """The report of their process."""
        return self._reports[digest(one.load)]

    def trace(self, one: Conditions) -> TraceDigests | NoTrace:
        """The trace of the forward's rows."""
        return self._traces.get(_key(one), NoTrace(reason="the forward wasn't made"))


def _key(one: Conditions) -> str:
    return digest([one.load, one.forward])
