"""Triton kernels of the lean step's experts: each that a live row chose is read once, the others not at all.

A tile has all rows, and each row of a product is its own sum in a fixed order: no row's result depends on another, and
a finished row, which chooses no expert, costs none. No atomics: each place of a row is written by one program.
"""

from typing import Any

import torch
import triton
import triton.language as tl

ROWS = 16  # rows of a tile: the smallest that the matrix units take


@triton.jit
def _route(
    hidden,
    gate,
    live,
    ids,
    weights,
    scaling,
    SIZE: tl.constexpr,
    EXPERTS: tl.constexpr,
    TOP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """A row's experts by falling probability, ties to the lower ID; a finished row's are -1."""
    row = tl.program_id(0)
    expert = tl.arange(0, EXPERTS)
    made = tl.zeros([EXPERTS, BLOCK], dtype=tl.float32)
    for begin in range(0, SIZE, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        one = tl.load(hidden + row * SIZE + at).to(tl.float32)
        made += tl.load(gate + expert[:, None] * SIZE + at[None, :]).to(tl.float32) * one[None, :]
    logits = tl.sum(made, axis=1)
    shares = tl.exp(logits - tl.max(logits, axis=0))
    shares = shares / tl.sum(shares, axis=0)
    goes_on = tl.load(live + row) != 0
    for rank in tl.static_range(TOP):
        best = tl.max(shares, axis=0)
        chosen = tl.min(tl.where(shares == best, expert, EXPERTS), axis=0)
        tl.store(ids + row * TOP + rank, tl.where(goes_on, chosen, -1))
        tl.store(weights + row * TOP + rank, best * scaling)
        shares = tl.where(expert == chosen, -1.0, shares)


@triton.jit
def _places(
    ids, expert, ROWS_: tl.constexpr, TOP: tl.constexpr, TOPS: tl.constexpr, TILE: tl.constexpr, ROUTED: tl.constexpr
):
    """Of each row of a tile: whether the expert is one of its, and at which place."""
    row = tl.arange(0, TILE)
    if ROUTED:
        rank = tl.arange(0, TOPS)
        inside = (row < ROWS_)[:, None] & (rank < TOP)[None, :]
        hit = (tl.load(ids + row[:, None] * TOP + rank[None, :], mask=inside, other=-1) == expert).to(tl.int32)
        chosen = tl.sum(hit, axis=1)
        place = tl.sum(hit * rank[None, :], axis=1)
    else:
        chosen = (row < ROWS_).to(tl.int32)
        place = tl.zeros([TILE], dtype=tl.int32) + TOP + expert
    return chosen, place


@triton.jit
def _gated(
    hidden,
    ids,
    gates,
    ups,
    made,
    stride,
    ROWS_: tl.constexpr,
    TOP: tl.constexpr,
    TOPS: tl.constexpr,
    PLACES: tl.constexpr,
    TILE: tl.constexpr,
    ROUTED: tl.constexpr,
    SIZE: tl.constexpr,
    INNER: tl.constexpr,
    OUT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """silu(gate) * up of one expert, OUT of its inner columns, for the rows that chose it."""
    expert = tl.program_id(0)
    chosen, place = _places(ids, expert, ROWS_, TOP, TOPS, TILE, ROUTED)
    if tl.sum(chosen, axis=0) > 0:
        row = tl.arange(0, TILE)
        column = tl.program_id(1) * OUT + tl.arange(0, OUT)
        at = tl.arange(0, BLOCK)
        begin = expert.to(tl.int64) * stride
        gate_at = gates + begin + column[None, :] * SIZE + at[:, None]
        up_at = ups + begin + column[None, :] * SIZE + at[:, None]
        from_ = hidden + row[:, None] * SIZE + at[None, :]
        gate = tl.zeros([TILE, OUT], dtype=tl.float32)
        up = tl.zeros([TILE, OUT], dtype=tl.float32)
        for done in range(0, SIZE, BLOCK):
            one = tl.load(from_ + done, mask=(row < ROWS_)[:, None], other=0.0)
            gate = tl.dot(one, tl.load(gate_at + done), gate, input_precision="ieee")
            up = tl.dot(one, tl.load(up_at + done), up, input_precision="ieee")
        both = gate / (1.0 + tl.exp(-gate)) * up
        to = made + (row * PLACES + place)[:, None] * INNER + column[None, :]
        tl.store(to, both.to(made.dtype.element_ty), mask=(chosen > 0)[:, None])


@triton.jit
def _down(
    made,
    ids,
    weights,
    downs,
    parts,
    stride,
    line,
    ROWS_: tl.constexpr,
    TOP: tl.constexpr,
    TOPS: tl.constexpr,
    PLACES: tl.constexpr,
    TILE: tl.constexpr,
    ROUTED: tl.constexpr,
    SIZE: tl.constexpr,
    INNER: tl.constexpr,
    OUT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The expert's output times its weight, OUT of the hidden columns, at its place of each row that chose it."""
    expert = tl.program_id(0)
    chosen, place = _places(ids, expert, ROWS_, TOP, TOPS, TILE, ROUTED)
    if tl.sum(chosen, axis=0) > 0:
        row = tl.arange(0, TILE)
        column = tl.program_id(1) * OUT + tl.arange(0, OUT)
        at = tl.arange(0, BLOCK)
        down_at = downs + expert.to(tl.int64) * stride + column[None, :] * line + at[:, None]
        from_ = made + (row * PLACES + place)[:, None] * INNER + at[None, :]
        sums = tl.zeros([TILE, OUT], dtype=tl.float32)
        for done in range(0, INNER, BLOCK):
            one = tl.load(from_ + done, mask=(chosen > 0)[:, None], other=0.0)
            sums = tl.dot(one, tl.load(down_at + done), sums, input_precision="ieee")
        if ROUTED:
            weight = tl.load(weights + row * TOP + place, mask=chosen > 0, other=0.0)
            sums = sums * weight[:, None]
        to = parts + (row * PLACES + place)[:, None] * SIZE + column[None, :]
        tl.store(to, sums, mask=(chosen > 0)[:, None])


def mlp_parts(mlp: Any, normed: torch.Tensor, live: torch.Tensor) -> torch.Tensor:
    """Float32 [rows, places, hidden], whose sum over the places is the MLP: chosen experts, then the shared ones.

    A dense layer's MLP is one shared expert. A finished row has no routed experts, and its places aren't written.
    """
    if len(normed) > ROWS:
        raise RuntimeError(f"at most {ROWS} rows, got {len(normed)}")
    if not hasattr(mlp, "experts"):
        return _experts(normed, _none(normed), None, (mlp, 1))
    return _experts(normed, route(mlp.gate, normed, live), mlp.experts, (mlp.shared_experts, _shared_count(mlp)))


def _shared_count(mlp: Any) -> int:
    return int(mlp.config.n_shared_experts)


def _none(normed: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return normed.new_empty(len(normed), 0, dtype=torch.int32), normed.new_empty(len(normed), 0, dtype=torch.float32)


def route(gate: Any, normed: torch.Tensor, live: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Of each row, its experts int32 and their weights float32, both [rows, top]."""
    rows, size = normed.shape
    ids = torch.empty(rows, gate.top_k, dtype=torch.int32, device=normed.device)
    weights = torch.empty(rows, gate.top_k, dtype=torch.float32, device=normed.device)
    _route[(rows,)](
        normed, gate.weight, live, ids, weights, float(gate.routed_scaling_factor),
        SIZE=size, EXPERTS=gate.num_experts, TOP=gate.top_k, BLOCK=_block(size, 128), num_warps=8,
    )  # fmt: skip
    return ids, weights


def _experts(
    normed: torch.Tensor, routes: tuple[torch.Tensor, torch.Tensor], experts: Any, shared: tuple[Any, int]
) -> torch.Tensor:
    rows, size = normed.shape
    ids, weights = routes
    top, (both, count) = ids.shape[1], shared
    inner = both.intermediate_size // count
    made = normed.new_empty(rows, top + count, inner)
    parts = torch.empty(rows, top + count, size, dtype=torch.float32, device=normed.device)
    fixed = {"ROWS_": rows, "TOP": top, "TOPS": triton.next_power_of_2(max(top, 1)), "PLACES": top + count}
    fixed |= {"TILE": ROWS, "SIZE": size, "INNER": inner, "num_warps": 4, "num_stages": 4}
    first, second = _block(inner, 32), _block(size, 32)
    across = {"OUT": first, "BLOCK": _block(size, 128)}
    back = {"OUT": second, "BLOCK": _block(inner, 128)}
    grid, again = (count, inner // first), (count, size // second)
    gate, up, down = both.gate_proj.weight, both.up_proj.weight, both.down_proj.weight
    _gated[grid](normed, ids, gate, up, made, inner * size, ROUTED=False, **fixed, **across)
    if experts is not None:
        all_gates = experts.gate_up_proj
        grid = (len(all_gates), inner // first)
        ups = all_gates[:, inner:]
        _gated[grid](normed, ids, all_gates, ups, made, 2 * inner * size, ROUTED=True, **fixed, **across)
    _down[again](made, ids, weights, down, parts, inner, inner * count, ROUTED=False, **fixed, **back)
    if experts is not None:
        again = (len(experts.down_proj), size // second)
        _down[again](made, ids, weights, experts.down_proj, parts, inner * size, inner, ROUTED=True, **fixed, **back)
    return parts


def _block(size: int, most: int) -> int:
    """The largest power of two that divides `size`, `most` at most."""
    block = most
    while size % block:
        block //= 2
    return block
