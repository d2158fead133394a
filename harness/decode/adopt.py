"""What a run decodes by, set before its first unit and read back: the model's own config, or the loop's own parts."""

from typing import Any

from harness.decode.executed import Executor
from harness.decode.greedy import adopt_contract
from harness.decode.icdf import InverseCdf
from harness.decode.sampled import adopt_sampling
from harness.decode.taped import adopt_argmax, adopt_taped, loop_contract
from harness.model.load import LoadedModel
from harness.records.profile import SpecialIds
from harness.records.protocol import (
    BehaviorProtocol,
    CompletionProtocol,
    GraphCheckProtocol,
    GraphTaskProtocol,
    GreedyStudyProtocol,
    LoopCheckProtocol,
    SamplingProtocol,
    TapedProtocol,
)

Decoded = (
    BehaviorProtocol | CompletionProtocol | SamplingProtocol | TapedProtocol | GreedyStudyProtocol | LoopCheckProtocol
)


def adopt_decoding(  # noqa: PLR0913
    model: LoadedModel,
    protocol: Decoded,
    ids: SpecialIds,
    max_new_tokens: int,
    *,
    sampler: InverseCdf | None,
    executor: Executor | None,
) -> dict[str, Any]:
    """The decoding contract by name, as it is held by what decodes.

    `sampler`: the one that a tape's units draw by; `executor`: what executes steps over a fixed cache.
    """
    executed = {} if executor is None else executor.settings()
    if isinstance(protocol, GraphTaskProtocol | GraphCheckProtocol) and executor is None:
        raise RuntimeError(f"{protocol.id} executes its steps")
    if isinstance(protocol, SamplingProtocol):
        return adopt_sampling(model, protocol.decode, ids, max_new_tokens)
    if sampler is not None:
        return adopt_taped(sampler, loop_contract(ids, max_new_tokens)) | executed
    if isinstance(protocol, TapedProtocol):
        raise RuntimeError(f"{protocol.id} draws by its sampler")
    if isinstance(protocol, LoopCheckProtocol) and protocol.by != "generate":
        return adopt_argmax(loop_contract(ids, max_new_tokens)) | executed
    return adopt_contract(model, protocol.decode, ids, max_new_tokens)
