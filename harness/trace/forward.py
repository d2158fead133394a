"""One prompt-only forward over a source's cells, with the trace's hooks or without any (R05 depth 7.1).

The forward is `generate`'s first one without its cache: the same rows, the same mask, and positions counted from each
row's first token (padding stands at 0), as `generate` gives them to a left-padded batch. No token is drawn.

The logits' digest is SHA-256 of the canonical list of the cells' tensor digests, each over that cell's logits at all
its unpadded positions: equal digests mean that every logit of every token is equal byte for byte.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import torch

from harness.canon import digest
from harness.model.load import LoadedModel
from harness.model.memory import is_out_of_memory, out_of_memory
from harness.records.depth import Gate, GateEdge, HiddenStage, StageEdge, TargetTokens
from harness.trace.batch import Batch, EdgeRows, lay_out
from harness.trace.capture import GATE, STAGE, Capture
from harness.trace.encoding import tensor_sha256
from harness.trace.host import Fetch, as_matrix, fetch
from harness.trace.line import find_line
from harness.trace.work import Work

Rows = Sequence[Sequence[int]]
Results = list[tuple[str, list[Any]]]


@dataclass(frozen=True, slots=True)
class TracedEdge:
    """An edge of the batch along the depth."""

    edge: str
    stages: tuple[StageEdge, ...]
    gates: tuple[GateEdge, ...]


@dataclass(frozen=True, slots=True)
class Traced:
    """`hidden` and `gates`: for each row of the batch, its stages and gates by depth; `edges` as asked for."""

    hidden: tuple[tuple[HiddenStage, ...], ...]
    gates: tuple[tuple[Gate, ...], ...]
    edges: tuple[TracedEdge, ...]
    logits_sha256: str
    logits_shape: tuple[int, int]
    cache_returned: bool


@dataclass(frozen=True, slots=True)
class Plain:
    """The same forward without any of the trace's hooks: its logits' digest, and whether it gave a cache back."""

    logits_sha256: str
    logits_shape: tuple[int, int]
    cache_returned: bool


# What the library calls a cache that a forward gives back; an output has no key for what it doesn't have.
CACHES = ("past_key_values", "cache", "cache_params")
# What a model's own config could make of a forward; set and read back before the first one.
FORWARD = {"use_cache": False, "output_hidden_states": False, "output_attentions": False}


def adopt_forward(loaded: LoadedModel) -> dict[str, Any]:
    """Make the forward's settings the model's own, so that no default brings others; read back what it has."""
    model = _open(loaded)
    for name, value in FORWARD.items():
        setattr(model.config, name, value)
    return {name: getattr(model.config, name, None) for name in FORWARD} | {"training": model.training}


def trace_batch(
    loaded: LoadedModel, ids: Rows, mask: Rows, *, targets: Sequence[TargetTokens], edges: Sequence[EdgeRows]
) -> Traced:
    """Trace left-padded rows (int, equal width) in one forward, never split; records alone are kept.

    Raises DecodeError (`out_of_memory`, `non_finite`) and ModelError (no such modules, `unknown gate contract`);
    RuntimeError for rows, targets or edges that make no batch.
    """
    model = _open(loaded)
    batch = lay_out(ids, mask, targets, edges)
    line = find_line(model)
    try:
        with Work() as work:
            capture = Capture(line, batch, work)
            with capture.hooks():
                logits, cached = _forward(loaded, ids, mask)
            results = work.finish()
        capture.require_all()
        return _traced(results, batch, Plain(*_hash_logits(logits, mask), cached))
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise out_of_memory("trace", error) from error


def plain_forward(loaded: LoadedModel, ids: Rows, mask: Rows) -> Plain:
    """The forward alone. DecodeError (`out_of_memory`)."""
    _open(loaded)
    try:
        logits, cached = _forward(loaded, ids, mask)
        return Plain(*_hash_logits(logits, mask), cached)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise out_of_memory("trace", error) from error


def _open(loaded: LoadedModel) -> Any:
    if loaded.model is None:
        raise RuntimeError("the model was closed")
    return loaded.model


def _forward(loaded: LoadedModel, ids: Rows, mask: Rows) -> tuple[torch.Tensor, bool]:
    """Logits [rows, width, vocabulary] on the model's device, and whether a cache came back with them."""
    flags = torch.tensor(mask, dtype=torch.long, device=loaded.device)
    with torch.inference_mode():
        output = loaded.model(
            input_ids=torch.tensor(ids, dtype=torch.long, device=loaded.device),
            attention_mask=flags,
            position_ids=positions(flags),
            use_cache=False,
            return_dict=True,
        )
    return output.logits, any(name in output.keys() for name in CACHES)  # noqa: SIM118 - an output's own keys


def positions(mask: torch.Tensor) -> torch.Tensor:
    """Int [rows, width]: each token's place in its own prompt, 0 for padding."""
    return (mask.cumsum(-1) - 1).masked_fill(mask == 0, 0)


def _hash_logits(logits: torch.Tensor, mask: Rows) -> tuple[str, tuple[int, int]]:
    """The digest, and the [tokens, columns] that it was really taken over.

    All cells are hashed at once: their copies take no more than the logits themselves.
    """
    fetched = [fetch(logits[row, len(flags) - sum(flags) :]) for row, flags in enumerate(mask)]
    with Work(in_flight=1) as work:
        work.submit("logits", [partial(_row_sha256, one) for one in fetched])
        ((_, found),) = work.finish()
    shapes = [shape for _, shape in found]
    return digest([one for one, _ in found]), (sum(rows for rows, _ in shapes), min(columns for _, columns in shapes))


def _row_sha256(fetched: Fetch) -> tuple[str, tuple[int, int]]:
    matrix = as_matrix(fetched(), "logits")
    return tensor_sha256(matrix), matrix.shape


def _traced(results: Results, batch: Batch, plain: Plain) -> Traced:
    cells = len(batch.cuts)
    stages = [list(chain.from_iterable(found)) for name, found in results if name.startswith(f"{STAGE} ")]
    gates = [found[0] for name, found in results if name.startswith(f"{GATE} ")]
    edges = (
        TracedEdge(
            edge.edge, tuple(found[cells + place] for found in stages), tuple(gate.edges[place] for gate in gates)
        )
        for place, edge in enumerate(batch.edges)
    )
    return Traced(
        hidden=tuple(tuple(found[row] for found in stages) for row in range(cells)),
        gates=tuple(tuple(gate.cells[row] for gate in gates) for row in range(cells)),
        edges=tuple(edges),
        logits_sha256=plain.logits_sha256,
        logits_shape=plain.logits_shape,
        cache_returned=plain.cache_returned,
    )
