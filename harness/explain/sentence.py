"""The one sentence that a person can paste: cell, step, tokens, what the records differ in, what was made again.

Says what the records and the rerun show and nothing else: a change that gives the other token back is called that.
"""

from collections.abc import Iterator

from harness.errors import words
from harness.explain.place import step_of
from harness.records.difference import (
    CellPair,
    ComparedSide,
    Decoded,
    JudgedBy,
    NoToken,
    OutputPair,
    Parting,
    SideComparison,
    Token,
    TracePair,
    TracePlace,
)
from harness.records.explanation import (
    Aspect,
    Change,
    Divergence,
    NoDivergence,
    NoRerun,
    NoSearch,
    Rerun,
    Search,
    SideRerun,
    StepResult,
    Untried,
)
from harness.records.run import Environment
from harness.records.tapes import EdgeDistance

FIELDS = 3  # of an aspect; the record has all
LONGEST = 80
VERSIONS = ("torch", "transformers")


def sentence(compared: SideComparison, found: Divergence | NoDivergence, made: Rerun | NoRerun) -> str:
    """One line in ASCII."""
    head = _head(compared.a, compared.b)
    if isinstance(found, NoDivergence):
        return words(f"{head} are equal in {compared.equal.count} of {compared.equal.of} cells{_but(compared)}.")
    parts = [_parting(found.explained), _counted(found, compared), *_recorded(found.aspects)]
    parts += [*_judged(compared.judged_by)]
    parts += list(_rerun(made)) if isinstance(made, Rerun) else [f"nothing was made again ({made.reason})"]
    return words(f"{head} {'; '.join(parts)}.")


def _head(a: ComparedSide, b: ComparedSide) -> str:
    """Both sides under one protocol, or each under its own."""
    if (a.protocol, a.protocol_digest) == (b.protocol, b.protocol_digest):
        return f"{_protocol(a)}: {_side('A', a)} and {_side('B', b)}"
    return f"{_side('A', a, f' of {_protocol(a)}')} and {_side('B', b, f' of {_protocol(b)}')}"


def _protocol(side: ComparedSide) -> str:
    return f"{side.protocol} {side.protocol_digest[:16]}"


def _side(name: str, side: ComparedSide, of: str = "") -> str:
    what = "frozen results" if side.kind == "frozen" else side.name
    other = ", a port" if side.port else ""
    return f"{name} ({what}{of}{other})"


def _but(compared: SideComparison) -> str:
    """What keeps equal cells from being all: tokens beyond a budget, cells that a side lacks, one call, gaps."""
    said = [*_extent(compared)]
    if compared.verdict == "different" and not _missing(compared):
        said.append("cells of both grids are on neither side")
    if compared.shared_units.count:
        shared = f"{compared.shared_units.count} of {compared.shared_units.of} units"
        said.append(f"{shared} are one call's or the accepted run's own on both sides, whose equality shows nothing")
    said += _judged(compared.judged_by)
    if compared.not_compared:
        said.append(f"not compared: {', '.join(compared.not_compared)}")
    return "".join(f"; {one}" for one in said)


def _extent(compared: SideComparison) -> Iterator[str]:
    """Tokens and cells that the comparison is about, where it isn't about all."""
    if not compared.whole:
        yield f"of each cell the first {compared.budget} tokens were compared"
    if missing := _missing(compared):
        yield f"{missing} cells are missing on a side"


def _missing(compared: SideComparison) -> int:
    return sum(one.missing for one in compared.lone)


def cell_name(cell: CellPair) -> str:
    """Source, replicate and condition."""
    return f"{cell.source_id} {cell.replicate} {cell.condition}"


def _parting(cell: CellPair) -> str:
    found, step = cell.found, step_of(cell)
    if isinstance(found, OutputPair) and isinstance(found.parting, Parting):
        one, other = token_text(found.parting.a), token_text(found.parting.b)
        return f"part in cell {cell_name(cell)} at step {step}, counted from 0: A has {one}, B has {other}"
    if isinstance(found, TracePair):
        return f"differ in cell {cell_name(cell)} in {', '.join(cell.fields)}: {places(found)}"
    return f"have the same tokens in cell {cell_name(cell)} and differ in its {', '.join(cell.fields)}"


def token_text(token: Token | NoToken) -> str:
    """A token's ID and text, or that the sequence has ended."""
    if isinstance(token, NoToken):
        return "ended"
    return f"{token.id} '{token.text.text_escaped}'" if isinstance(token.text, Decoded) else str(token.id)


def places(pair: TracePair) -> str:
    """The first stage and gate of a trace that differ, in words."""
    if not pair.tensors:
        return "tensor digests weren't compared"
    named = (("stage", pair.first_stage), ("gate", pair.first_gate))
    found = [
        f"first {what} {one.name} {one.digest} ({one.scope})" for what, one in named if isinstance(one, TracePlace)
    ]
    return ", ".join(found) or "no stage and no gate differs"


def _counted(found: Divergence, compared: SideComparison) -> str:
    first = "" if found.first == found.explained else f", in the grid's order first {cell_name(found.first)}"
    rest = "".join(f"; {one}" for one in _extent(compared))
    return f"{found.differing.count} of {found.differing.of} common cells differ{first}{rest}"


def _recorded(aspects: tuple[Aspect, ...]) -> Iterator[str]:
    """Versions where both sides have the same; then every aspect that differs, and those that can't be compared."""
    libraries = next(one for one in aspects if one.name == "libraries")
    if libraries.state == "same" and libraries.held:
        yield f"both record {libraries.held}"
    differing = [one for one in aspects if one.state == "differs"]
    unknown = [one.name for one in aspects if one.state == "unknown"]
    told = ", ".join(f"{one.name} ({_fields(one)})" for one in differing)
    yield f"the records differ in {told}" if told else "the records differ in no aspect that both hold"
    if unknown:
        yield f"not held by both: {', '.join(unknown)}"


def _judged(one: JudgedBy) -> Iterator[str]:
    """Who judged, where that differs."""
    if one.differing:
        yield f"the sides were judged by others ({_fields(one)})"


def _fields(aspect: Aspect | JudgedBy) -> str:
    shown = [f"{one.field} {_short(one.a)} on A, {_short(one.b)} on B" for one in aspect.differing[:FIELDS]]
    more = len(aspect.differing) - FIELDS
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _rerun(made: Rerun) -> Iterator[str]:
    """Where it was made, what each side's conditions give, where the traces part, what a single change gives."""
    environment = next((one.environment for one in (made.a, made.b) if isinstance(one, SideRerun)), None)
    if environment is not None:
        yield f"made again on {_machine(environment)}"
    for name, side in (("A", made.a), ("B", made.b)):
        yield f"{name}'s conditions{_elsewise(side)} {_gives(side)}"
    if made.same_bits:
        yield "both give the same logits bit for bit"
    if isinstance(made.trace, TracePair):
        yield f"traced without a cache, {places(made.trace)}"
    yield from _searched(made.search)


def _machine(environment: Environment) -> str:
    named = [f"{name} {environment.packages[name]}" for name in VERSIONS if name in environment.packages]
    device = ", ".join(environment.gpus) or environment.cpu
    count = f"{environment.threads} {'thread' if environment.threads == 1 else 'threads'}"
    return ", ".join([*named, device, count])


def _elsewise(side: SideRerun | Untried) -> str:
    """What this machine had otherwise than the side's record says: then they aren't its conditions."""
    named = [one.field for one in side.elsewise] if isinstance(side, SideRerun) else []
    if not named:
        return ""
    more = len(named) - FIELDS
    return f", {', '.join(named[:FIELDS])}{f' and {more} more' if more > 0 else ''} not as recorded,"


def _gives(side: SideRerun | Untried) -> str:
    if isinstance(side, Untried):
        return f"can't be made here ({_short(side.reason)})"
    one = side.outcome
    own = "" if side.reproduced else ", not the recorded token"
    return f"give {token_text(one.token)}{own} (logits {number(one.a.logit)} and {number(one.b.logit)}{_margin(one)})"


def _margin(one: StepResult) -> str:
    edge = f", u {number(one.edge.distance)} from the edge" if isinstance(one.edge, EdgeDistance) else ""
    return f", margin {number(one.margin)}{edge}"


def number(value: float) -> str:
    """A float32 in as many digits as tell it apart."""
    return f"{value:.9g}"


def _searched(search: Search | NoSearch) -> Iterator[str]:
    if isinstance(search, NoSearch):
        yield f"no single change was tried ({search.reason})"
        return
    tried = [one for one in search.changes if isinstance(one.outcome, StepResult)]
    base, wanted = search.base.upper(), search.wanted.upper()
    what = f"single change to {base}'s conditions gives {wanted}'s token"
    if not any(one.restores for one in tried):
        yield f"no {what}, of {len(tried)} tried"
    for kind, which in (("between the sides", "in what the sides differ in"), ("tried besides", "tried besides")):
        of = [one for one in tried if one.kind == kind]
        if back := [change_text(one) for one in of if one.restores]:
            each = f"this {what}" if len(back) == 1 else f"each of these as a {what}"
            yield f"{which}, {each}, of {len(of)} tried: {', '.join(back)}"
    if untried := [one.field for one in search.changes if isinstance(one.outcome, Untried)]:
        yield f"untried: {', '.join(untried)}"


def change_text(change: Change) -> str:
    """What was changed, from what to what."""
    return f"{change.field} from {change.before} to {change.after}"
