"""An explanation as rows of a table: source, what, state, A, B. Steps count from 0; nothing is weighed or left out."""

from collections.abc import Iterator

from harness.explain.place import step_of
from harness.explain.sentence import cell_name, change_text, number, places, token_text
from harness.records.difference import CellPair, End, JudgedBy, Parting, TracePair
from harness.records.explanation import (
    Aspect,
    Candidate,
    Divergence,
    Explanation,
    Interval,
    NoDivergence,
    NoSearch,
    NoTrace,
    Probability,
    Rerun,
    Search,
    SideRerun,
    StepResult,
    TapeSide,
    TapeStep,
    Untried,
)
from harness.records.tapes import EdgeDistance, NoEdge

Row = tuple[str, str, str, str, str]
HEADINGS: Row = ("source", "what", "state", "A", "B")
RECORD, RERUN = "record", "rerun"
LONGEST = 300


def rows(record: Explanation) -> Iterator[Row]:
    """Every row; none where no cell differs."""
    if isinstance(record.found, NoDivergence):
        return
    yield from _cells(record.found)
    for aspect in record.found.aspects:
        yield from _aspect(aspect)
    yield from _judged(record.judged_by)
    yield from _tape(record.found.tape)
    if isinstance(record.rerun, Rerun):
        yield from _rerun(record.rerun)
    else:
        yield RERUN, "step", "not made", record.rerun.reason, ""


def _cells(found: Divergence) -> Iterator[Row]:
    """The first in the grid's order, the earliest, and the explained one where it is neither."""
    yield _cell("first cell in the grid's order", found.first)
    yield _cell("cell that parts earliest", found.earliest)
    if found.explained not in (found.first, found.earliest):
        yield _cell("explained cell", found.explained)


def _cell(what: str, cell: CellPair) -> Row:
    found, step = cell.found, step_of(cell)
    name = f"{what}: {cell_name(cell)}"
    if isinstance(found, TracePair):
        return RECORD, name, f"differs in {', '.join(cell.fields)}", places(found), ""
    ends = [_end(one) for one in (found.a, found.b)]
    if not isinstance(found.parting, Parting):
        return RECORD, name, f"same tokens, differs in {', '.join(cell.fields)}", f"A: {ends[0]}", f"B: {ends[1]}"
    one, other = token_text(found.parting.a), token_text(found.parting.b)
    return RECORD, name, f"from step {step}", f"A: {one} ({ends[0]})", f"B: {other} ({ends[1]})"


def _end(end: End) -> str:
    return f"{end.length} tokens, {end.stop}"


def _aspect(aspect: Aspect) -> Iterator[Row]:
    if aspect.state == "unknown":
        yield RECORD, aspect.name, "unknown", aspect.why, ""
    elif aspect.state == "same":
        yield RECORD, aspect.name, "same", _cut(aspect.held), f"({aspect.why})" if aspect.why else ""
    for one in aspect.differing:
        yield RECORD, f"{aspect.name}: {one.field}", "differs", f"A: {_cut(one.a)}", f"B: {_cut(one.b)}"


def _judged(one: JudgedBy) -> Iterator[Row]:
    """Of the sides, and no condition of the cell."""
    if one.state != "differs":
        yield RECORD, "judged by", one.state, one.held or one.why, ""
    for part in one.differing:
        yield RECORD, f"judged by: {part.field}", "differs", f"A: {_cut(part.a)}", f"B: {_cut(part.b)}"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _tape(tape: TapeStep) -> Iterator[Row]:
    """The step's number, and the row's nearest edge."""
    if not isinstance(tape.a, TapeSide) and not isinstance(tape.b, TapeSide):
        return
    one, other = ("no tape" if not isinstance(side, TapeSide) else _u(side) for side in (tape.a, tape.b))
    yield RECORD, "u of the step", "same" if one == other else "differs", f"A: {one}", f"B: {other}"
    one, other = ("no tape" if not isinstance(side, TapeSide) else _nearest(side) for side in (tape.a, tape.b))
    yield RECORD, "nearest edge of the row, any step", "same" if one == other else "differs", f"A: {one}", f"B: {other}"


def _u(side: TapeSide) -> str:
    return f"{side.u_decimal!r} ({side.u}, z {side.z}, {side.tape})"


def _nearest(side: TapeSide) -> str:
    near = side.nearest
    if isinstance(near, EdgeDistance):
        return number(near.distance)
    return "no edge" if isinstance(near, NoEdge) else f"not held ({near.reason})"


def _rerun(made: Rerun) -> Iterator[Row]:
    for name, side in (("A", made.a), ("B", made.b)):
        yield from _side(name, side)
    if isinstance(made.a, SideRerun) and isinstance(made.b, SideRerun):
        yield RERUN, "logits of the row", "same bits" if made.same_bits else "other bits", "", ""
    if isinstance(made.trace, NoTrace):
        yield RERUN, "trace of the prefix, A and B", "not made", _cut(made.trace.reason), ""
    else:
        yield RERUN, "trace of the prefix, A and B", "made", places(made.trace), ""
    yield from _search(made.search)


def _side(name: str, side: SideRerun | Untried) -> Iterator[Row]:
    what = f"under {name}'s conditions"
    if isinstance(side, Untried):
        yield RERUN, what, "untried", _cut(side.reason), ""
        return
    state = "reproduced" if side.reproduced else "not reproduced"
    yield (RERUN, what, f"{state}, {_given(side.outcome)}", *_candidates(side.outcome))
    for one in side.elsewise:
        yield RERUN, f"{what}: {one.field}", "not as recorded", f"recorded: {_cut(one.a)}", f"here: {_cut(one.b)}"


def _given(made: StepResult) -> str:
    whose = {"a": "A's token", "b": "B's token", "other": "another token"}[made.gives]
    edge = f", u {number(made.edge.distance)} from the edge" if isinstance(made.edge, EdgeDistance) else ""
    return f"gives {token_text(made.token)}, {whose}, margin {number(made.margin)}{edge}"


def _candidates(made: StepResult) -> tuple[str, str]:
    return f"A: {_candidate(made.a)}", f"B: {_candidate(made.b)}"


def _candidate(one: Candidate) -> str:
    words = f"{token_text(one.token)} logit {number(one.logit)}, rank {one.rank}"
    if isinstance(one.chance, Interval):
        return f"{words}, CDF {number(one.chance.lower)} to {number(one.chance.upper)}"
    return f"{words}, probability {number(one.chance.probability)}" if isinstance(one.chance, Probability) else words


def _search(search: Search | NoSearch) -> Iterator[Row]:
    if isinstance(search, NoSearch):
        yield RERUN, "single changes", "none tried", search.reason, ""
        return
    base, wanted = search.base.upper(), search.wanted.upper()
    for change in search.changes:
        what = f"{base}'s conditions, {change_text(change)} ({change.kind})"
        if isinstance(change.outcome, Untried):
            yield RERUN, what, "untried", _cut(change.outcome.reason), ""
            continue
        back = f"brings {wanted}'s token back, " if change.restores else ""
        yield (RERUN, what, f"{back}{_given(change.outcome)}", *_candidates(change.outcome))
    if not any(one.restores for one in search.changes):
        yield RERUN, "single changes", f"none gives {wanted}'s token", "", ""
