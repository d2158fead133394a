"""Units drawn again by the process that drew them, right after and under the same seed (R07 7.1): a part of the run.

Another process could be exact by having the same state from its start; the same process has consumed it.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.journal.folder import RunFolder, write_once
from harness.protocols.grids import UnitKey
from harness.protocols.load import LoadedProtocol
from harness.records.protocol import SamplingProtocol, TapedProtocol
from harness.records.sampling import SameProcessRule
from harness.run.child import replace_request
from harness.run.request import Request, spec_of

if TYPE_CHECKING:
    from harness.run.engine import Engine

SAME_PROCESS = "same_process"


def same_process_rule(loaded: LoadedProtocol, request: Request) -> SameProcessRule | None:
    """What a run of the request draws again: a gate of its tier judges it, on the tier's own grid."""
    protocol = loaded.protocol
    if not isinstance(protocol, SamplingProtocol | TapedProtocol) or request.decoding != "registered":
        return None
    judged = any(gate.reach == SAME_PROCESS and request.tier in gate.tiers for gate in protocol.gates)
    own = any(grid == request.grid for tier, grid in protocol.tier_grids.items() if tier == request.tier)
    return protocol.same_process_replay if judged and own else None


def again_engine(engine: "Engine", folder: RunFolder, rule: SameProcessRule) -> "Engine":
    """The same engine over the rule's grid, for a part of the run that says what it is."""
    request = replace_request(engine.request, grid=rule.grid, run_id=f"{engine.request.run_id}/{SAME_PROCESS}")
    part, again = folder.part(SAME_PROCESS), replace(engine, request=request)
    write_once(part.file("spec.json"), spec_of(request, engine.loaded, engine.deviations), what="run request")
    write_once(part.file("environment.json"), engine.environment, what="environment")
    write_once(part.file("placement.json"), engine.placement, what="placement")
    return again


def key_again(loaded: LoadedProtocol, request: Request, rule: SameProcessRule, key: UnitKey) -> UnitKey | None:
    """The unit of the rule's grid that a unit of the run is drawn again as; None for another replicate's."""
    planned = loaded.units(rule.grid, request.domains)
    return next((one for one in planned if (one.source_id, one.replicate) == (key.source_id, key.replicate)), None)
