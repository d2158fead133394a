"""A run made by `python -m harness run` and left to be judged: opened, entered, its units landed. Judges nothing.

What a gate session refuses before it generates is refused here too, in the same words; the session that judges the run
later asks it all again.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.claims.load import NAME as CLAIM_RULES
from harness.claims.load import load_claims
from harness.cluster.merge import Merger
from harness.cluster.ray_engine import Cluster, land_on_ray, require_address, require_ray
from harness.errors import HarnessError, SessionError
from harness.journal.assemble import verify_units
from harness.journal.attempts import attempt_number
from harness.journal.folder import RunFolder
from harness.places import Places
from harness.protocols.grids import UnitKey
from harness.protocols.load import LoadedProtocol
from harness.records.protocol import BaselinedProtocol
from harness.run.attempting import enter_beginning, enter_end, enter_refusal, require_enterable
from harness.run.baseline import named_or_frozen
from harness.run.keep import keep_protocol
from harness.run.registration import registration_evidence
from harness.run.request import Options, Request, make_request
from harness.run.resuming import require_resumable
from harness.run.smoke import SmokeCall, passed_smoke
from harness.run.start import generate_run, require_device

Note = Callable[[str], None]
FORMAL, RAY = "formal", "ray"


@dataclass(frozen=True, slots=True)
class Call:
    """Who makes the units: `engine` local or ray; `address` and `workers` are Ray's (`harness.cluster.ray_engine`)."""

    engine: str
    address: str | None
    workers: int | None


@dataclass(frozen=True, slots=True)
class Start:
    """A run that is to be made in `folder`: the protocol, the command line's words, the tier and who makes it."""

    loaded: LoadedProtocol
    options: Options
    folder: RunFolder
    tree: Places
    tier: str
    call: Call
    note: Note

    def make(self) -> tuple[UnitKey, ...]:
        """Land every unit of the tier's grid; the units. HarnessError: refused, or ended before all landed.

        A formal run is entered in its protocol's attempts file before its first unit, and its end where it ends here.
        """
        try:
            request = self._opened()
        except (HarnessError, OSError) as error:
            if self.tier == FORMAL:
                name, port = self.folder.path.name, self.options.port
                enter_refusal(self.loaded, name, self.tree, port=port, reason=error)
            raise
        require_enterable(self.loaded, self.folder, request, self.tree)
        self.folder.create()
        with self.folder.claim():
            require_resumable(self.loaded, self.folder, request)
            enter_beginning(self.loaded, self.folder, request, self.tree)
            keep_protocol(self.loaded, self.folder, Path(request.checkpoint), self.tree)
            try:
                return self._made(request)
            except HarnessError as error:
                if self.tier == FORMAL:
                    enter_end(self.loaded, self.folder, self.tree, None, (str(error),))
                raise

    def _opened(self) -> Request:
        """The request, after everything that can be refused without a model."""
        self._require_call()
        if self.call.engine == RAY:
            require_ray()
            if self.call.address is not None:
                require_address(self.call.address)
        request = make_request(self.loaded, self.tier, self.folder.path.name, self.options, self.tree)
        if self.call.engine != RAY:
            require_device(request.execution, request.placement)
        require_resumable(self.loaded, self.folder, request)
        self._baseline(request)
        if (self.loaded.folder / CLAIM_RULES).is_file():
            load_claims(self.loaded)
        registration_evidence(self.loaded, request)
        return request

    def _require_call(self) -> None:
        """SessionError for words that only a cluster's run has a use for."""
        if self.call.engine != RAY and (self.call.address is not None or self.call.workers is not None):
            raise SessionError(
                "--address and --workers",
                expected=f"--engine {RAY}",
                found=f"--engine {self.call.engine}",
                todo=f"Give --engine {RAY}, or neither.",
            )

    def _baseline(self, request: Request) -> str:
        """The digest of the run that this one is held against; none where the protocol registers none."""
        if not isinstance(self.loaded.protocol, BaselinedProtocol):
            return "none"
        return named_or_frozen(self.loaded, request, self._keys(request), self.tree).run_sha256

    def _keys(self, request: Request) -> tuple[UnitKey, ...]:
        return self.loaded.units(request.grid, request.domains)

    def _made(self, request: Request) -> tuple[UnitKey, ...]:
        gates = self.loaded.protocol.gates
        if any(gate.reach == "smoke_record" and self.tier in gate.tiers for gate in gates):
            budgets = (self.options.gpu_memory, self.options.cpu_memory)
            call = SmokeCall(request, self.tree, *budgets, self._baseline(request))
            passed_smoke(self.loaded, self.folder, call)  # no formal unit is generated before it
        if self.call.engine == RAY:
            self._land_on_ray(request)
        else:
            generate_run(self.loaded, request, self.folder, sink=self.note)
        verify_units(self.folder, self._keys(request), self.loaded)
        return self._keys(request)

    def _land_on_ray(self, request: Request) -> None:
        missing = tuple(key for key in self._keys(request) if not self.folder.journal(key).exists())
        if not missing:
            return
        attempt_number(self.folder, request.placement.id)  # nothing is added to an attempt that memory ended
        with tempfile.TemporaryDirectory(prefix="pregate-arriving-") as apart:
            merger = Merger(self.folder, self.loaded, Path(apart))
            cluster = Cluster(self.call.address, self.call.workers)
            land_on_ray(self.loaded, request, missing, cluster, take=merger.merge, note=self.note)
