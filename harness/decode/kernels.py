"""Triton kernels of the lean step: norms, and attention over latents.

No program's result depends on another row. Sums over programs are made by one program in a fixed order, without
atomics, so that a step gives the same bits each time.
"""

import torch
import triton
import triton.language as tl

from harness.decode.lean import AttentionWeights, Turn

COLUMNS = 64  # cached columns that one program attends to


@triton.jit
def _add_norm(
    hidden, parts, weight, live, total, normed, eps, PARTS: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < SIZE
    goes_on = inside & (tl.load(live + row) != 0)
    extra = tl.zeros([BLOCK], dtype=tl.float32)
    for part in tl.static_range(PARTS):
        extra += tl.load(parts + (row * PARTS + part) * SIZE + at, mask=goes_on, other=0.0).to(tl.float32)
    kept = tl.load(hidden + row * SIZE + at, mask=inside, other=0.0).to(tl.float32) + extra
    kept = kept.to(total.dtype.element_ty)
    tl.store(total + row * SIZE + at, kept, mask=inside)
    wide = kept.to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(wide * wide, axis=0) / SIZE + eps)
    scaled = (wide * scale).to(normed.dtype.element_ty)
    tl.store(normed + row * SIZE + at, scaled * tl.load(weight + at, mask=inside, other=0.0), mask=inside)


def add_norm(
    hidden: torch.Tensor, parts: torch.Tensor, weight: torch.Tensor, eps: float, live: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """As `lean.add_norm`; of a finished row no parts are read."""
    rows, size = hidden.shape
    total, normed = torch.empty_like(hidden), torch.empty_like(hidden)
    block = triton.next_power_of_2(size)
    _add_norm[(rows,)](
        hidden, parts, weight, live, total, normed, eps, PARTS=parts.shape[1], SIZE=size, BLOCK=block, num_warps=8
    )
    return total, normed


@triton.jit
def _enter(
    entry,
    norm,
    cosine,
    sine,
    cache,
    asking,
    slot,
    columns,
    eps,
    HEADS: tl.constexpr,
    NOPE: tl.constexpr,
    ROPE: tl.constexpr,
    LATENT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Turn one head's query, or (the last program of a row) norm the latent, turn its key and write the column."""
    row = tl.program_id(0)
    head = tl.program_id(1)
    width = HEADS * (NOPE + ROPE) + LATENT + ROPE
    pair = tl.arange(0, ROPE // 2)
    cos = tl.load(cosine + row * (ROPE // 2) + pair)
    sin = tl.load(sine + row * (ROPE // 2) + pair)
    is_key = head == HEADS
    begin = tl.where(is_key, HEADS * (NOPE + ROPE) + LATENT, head * (NOPE + ROPE) + NOPE)
    even = tl.load(entry + row * width + begin + 2 * pair).to(tl.float32)
    odd = tl.load(entry + row * width + begin + 2 * pair + 1).to(tl.float32)
    one = (even * cos - odd * sin).to(cache.dtype.element_ty)
    other = (even * sin + odd * cos).to(cache.dtype.element_ty)
    if is_key:
        at = tl.arange(0, BLOCK)
        inside = at < LATENT
        latent = tl.load(entry + row * width + HEADS * (NOPE + ROPE) + at, mask=inside, other=0.0).to(tl.float32)
        scale = 1.0 / tl.sqrt(tl.sum(latent * latent, axis=0) / LATENT + eps)
        scaled = (latent * scale).to(cache.dtype.element_ty) * tl.load(norm + at, mask=inside, other=0.0)
        to = cache + (row * columns + tl.load(slot)) * (LATENT + ROPE)
        tl.store(to + at, scaled, mask=inside)
        tl.store(to + LATENT + 2 * pair, one)
        tl.store(to + LATENT + 2 * pair + 1, other)
    else:
        to = asking + (row * HEADS + head) * ROPE
        tl.store(to + 2 * pair, one)
        tl.store(to + 2 * pair + 1, other)


@triton.jit
def _attend(
    lowered,
    asking,
    cache,
    mask,
    slot,
    peaks,
    sums,
    shares,
    columns,
    rows,
    scaling,
    PARTS: tl.constexpr,
    HEADS: tl.constexpr,
    TILE: tl.constexpr,
    ROPE: tl.constexpr,
    LATENT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One row over one block of columns: peak, sum and weighted latents of all heads."""
    row = tl.program_id(0)
    part = tl.program_id(1)
    at = part * BLOCK + tl.arange(0, BLOCK)
    head = tl.arange(0, TILE)
    is_head = head < HEADS
    latent = tl.arange(0, LATENT)
    rope = tl.arange(0, ROPE)
    to = (row * PARTS + part) * HEADS + head
    if part * BLOCK <= tl.load(slot):
        counts = tl.load(mask + row * columns + at, mask=at < columns, other=0) == 1
        column = cache + (row * columns + at) * (LATENT + ROPE)
        keys = tl.load(column[:, None] + latent[None, :], mask=counts[:, None], other=0.0)
        turned = tl.load(column[:, None] + LATENT + rope[None, :], mask=counts[:, None], other=0.0)
        query = tl.load(
            lowered + (head[:, None] * rows + row) * LATENT + latent[None, :], mask=is_head[:, None], other=0.0
        )
        own = tl.load(asking + (row * HEADS + head[:, None]) * ROPE + rope[None, :], mask=is_head[:, None], other=0.0)
        score = tl.dot(query, tl.trans(keys), input_precision="ieee")
        score += tl.dot(own, tl.trans(turned), input_precision="ieee")
        score = tl.where(counts[None, :], score * scaling, float("-inf"))
        peak = tl.max(score, axis=1)
        weight = tl.where(counts[None, :], tl.exp(score - tl.where(peak == float("-inf"), 0.0, peak)[:, None]), 0.0)
        tl.store(peaks + to, peak, mask=is_head)
        tl.store(sums + to, tl.sum(weight, axis=1), mask=is_head)
        share = tl.dot(weight.to(keys.dtype), keys, input_precision="ieee")
        tl.store(shares + to[:, None] * LATENT + latent[None, :], share, mask=is_head[:, None])
    else:
        tl.store(peaks + to, tl.full([TILE], float("-inf"), tl.float32), mask=is_head)
        tl.store(sums + to, tl.zeros([TILE], dtype=tl.float32), mask=is_head)


@triton.jit
def _leave(
    peaks,
    sums,
    shares,
    up,
    out,
    PARTS: tl.constexpr,
    TILE: tl.constexpr,
    HEADS: tl.constexpr,
    LATENT: tl.constexpr,
    VALUE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One head of one row: its parts' latents as one, and the value that they stand for."""
    row = tl.program_id(0)
    head = tl.program_id(1)
    part = tl.arange(0, TILE)
    from_ = (row * PARTS + part) * HEADS + head
    peak = tl.load(peaks + from_, mask=part < PARTS, other=float("-inf"))
    factor = tl.exp(peak - tl.max(peak, axis=0))
    whole = tl.sum(factor * tl.load(sums + from_, mask=part < PARTS, other=0.0), axis=0)
    there = (part < PARTS) & (peak != float("-inf"))
    value = tl.arange(0, VALUE)
    made = tl.zeros([VALUE, BLOCK], dtype=tl.float32)
    for begin in range(0, LATENT, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        latents = tl.load(shares + from_[:, None] * LATENT + at[None, :], mask=there[:, None], other=0.0)
        latent = (tl.sum(latents * factor[:, None], axis=0) / whole).to(up.dtype.element_ty).to(tl.float32)
        rows = tl.load(up + (head * VALUE + value[:, None]) * LATENT + at[None, :]).to(tl.float32)
        made += rows * latent[None, :]
    tl.store(out + (row * HEADS + head) * VALUE + value, tl.sum(made, axis=1).to(out.dtype.element_ty))


def attend(weights: AttentionWeights, entry: torch.Tensor, cache: torch.Tensor, turn: Turn) -> torch.Tensor:
    """As `lean.attend_latents`: three kernels and the product of queries with the keys' up-projection."""
    shape, now = weights.shape, turn.batch.inputs
    rows, columns, size = len(entry), cache.shape[1], {"ROPE": shape.rope, "LATENT": shape.latent}
    asking = entry.new_empty(rows, shape.heads, shape.rope)
    _enter[(rows, shape.heads + 1)](
        entry, weights.norm, turn.cosine, turn.sine, cache, asking, now.slot, columns, weights.eps,
        HEADS=shape.heads, NOPE=shape.nope, BLOCK=triton.next_power_of_2(shape.latent), **size,
    )  # fmt: skip
    query = entry[:, : shape.queries].view(rows, shape.heads, -1)[..., : shape.nope]
    lowered = torch.bmm(query.transpose(0, 1), weights.up_keys)
    parts = triton.cdiv(columns, COLUMNS)
    peaks, sums = (entry.new_empty(rows, parts, shape.heads, dtype=torch.float32) for _ in range(2))
    shares = entry.new_empty(rows, parts, shape.heads, shape.latent, dtype=torch.float32)
    _attend[(rows, parts)](
        lowered, asking, cache, now.mask, now.slot, peaks, sums, shares, columns, rows, weights.scaling,
        PARTS=parts, HEADS=shape.heads, TILE=max(16, triton.next_power_of_2(shape.heads)), BLOCK=COLUMNS,
        num_warps=8, num_stages=1, **size,
    )  # fmt: skip
    out = entry.new_empty(rows, shape.heads * shape.value)
    _leave[(rows, shape.heads)](
        peaks, sums, shares, weights.up_values, out, PARTS=parts, TILE=triton.next_power_of_2(parts),
        HEADS=shape.heads, LATENT=shape.latent, VALUE=shape.value, BLOCK=64,
    )  # fmt: skip
    return out
