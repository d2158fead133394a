"""What two batches of a step differ in, one thing at a time: the row's own prompt, the rows beside it, their tokens.

A row is padded up to the widest of its batch, as every unit of a run is: a changed prompt changes all paddings with it.
"""

from collections.abc import Iterator, Sequence

import msgspec

from harness.rerun.trial import Forward, Row

BESIDE = "tokens beside"


def row_changes(own: Forward, other: Forward) -> Iterator[tuple[str, tuple[Row, ...], int]]:
    """(field, rows, place of the row) of each single change from `own` to `other`: prompt, batch, tokens beside.

    `batch` has the other side's rows with their prompts, order and padding; the row's own prompt stays, and so do the
    tokens of a row that both have.
    """
    row, wanted = own.rows[own.row], other.rows[other.row]
    if row.prompt_ids != wanted.prompt_ids:
        rows = [*own.rows]
        rows[own.row] = msgspec.structs.replace(row, prompt_ids=wanted.prompt_ids)
        yield "prompt", padded(rows, extra=_extra(own.rows)), own.row
    forced = {one.condition: one.forced for one in own.rows}
    theirs = [
        msgspec.structs.replace(
            one,
            prompt_ids=row.prompt_ids if at == other.row else one.prompt_ids,
            forced=forced.get(one.condition, one.forced),
        )
        for at, one in enumerate(other.rows)
    ]
    batch = padded(theirs, extra=_extra(other.rows))
    if (batch, other.row) != (own.rows, own.row):
        yield "batch", batch, other.row
    tokens = {one.condition: one.forced for one in other.rows}
    beside = tuple(msgspec.structs.replace(one, forced=tokens.get(one.condition, one.forced)) for one in own.rows)
    if beside != own.rows:
        yield BESIDE, beside, own.row


def padded(rows: Sequence[Row], *, extra: int = 0) -> tuple[Row, ...]:
    """Rows padded on the left to the widest, and so many tokens more."""
    width = max(len(one.prompt_ids) for one in rows) + extra
    return tuple(msgspec.structs.replace(one, left_padding=width - len(one.prompt_ids)) for one in rows)


def _extra(rows: Sequence[Row]) -> int:
    """Padding that even the widest row has: none in a run of ours, and a batch's own where a record says so."""
    return min(one.left_padding for one in rows)
