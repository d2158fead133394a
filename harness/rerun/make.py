"""The explained step made again: under A's conditions and under B's, traced under both, then with single changes.

The base of the search is B where this machine gives B's token, else A; what is looked for is the other side's token.
Where neither side's token comes out here, nothing that a change gives would say anything, and none is tried.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from harness.difference.leaves import differing, leaves
from harness.difference.side import Side
from harness.difference.traces import first_places
from harness.errors import HarnessError
from harness.explain.place import cell_of
from harness.records.difference import (
    NotDecoded,
    NoToken,
    OutputPair,
    Parting,
    SideComparison,
    SideName,
    Token,
    TracePair,
)
from harness.records.explanation import (
    Aspect,
    AspectField,
    Candidate,
    Change,
    Divergence,
    Gives,
    Interval,
    NoChance,
    NoDivergence,
    NoRerun,
    NoSearch,
    NoTrace,
    Probability,
    Rerun,
    Search,
    SideRerun,
    StepResult,
    Untried,
)
from harness.records.run import PlacementFacts
from harness.rerun.changes import Registered, Single, single_changes
from harness.rerun.conditions import Checkpoints, Conditions, Step, conditions_of
from harness.rerun.trial import ByArgmax, ByTape, CandidateReport, Forward, ForwardReport, TrialReport
from harness.rerun.trials import Trials
from harness.snapshots.environments import environment_facts

SIDES: tuple[SideName, SideName] = ("a", "b")
NOT_A_CANDIDATE = "neither side's token"
NOTHING = "no cell differs"
NO_TOKENS = "the tokens of this cell part in no step"
ENDED = "a side has ended before this step, so that it has no token here"
TRACES = "a trace generates nothing: its records hold the first stage and gate already"
NOT_HERE = "neither side's conditions give its own token on this machine"
# Of an environment: what a rerun sets by itself, or reads back without a decoding contract.
NOT_READ = "generation_config."


@dataclass(frozen=True, slots=True)
class Asked:
    """The step of the explained cell, its tokens on both sides, and what the records say around it."""

    step: Step
    tokens: tuple[Token, Token]
    aspects: tuple[Aspect, ...]


def rerun_of(
    sides: tuple[Side, Side],
    compared: SideComparison,
    found: Divergence | NoDivergence,
    checkpoints: Checkpoints,
    trials: Trials,
) -> Rerun | NoRerun:
    """The explained cell's step made again, or why there is none; ComparisonError for a checkpoint of neither side."""
    checkpoints.require_named(sides)
    if isinstance(found, NoDivergence):
        return NoRerun(reason=NOTHING)
    outputs = found.explained.found
    if not isinstance(outputs, OutputPair):
        return NoRerun(reason=TRACES)
    if not isinstance(outputs.parting, Parting):
        return NoRerun(reason=NO_TOKENS)
    a, b = outputs.parting.a, outputs.parting.b
    if isinstance(a, NoToken) or isinstance(b, NoToken):
        return NoRerun(reason=ENDED)
    step = Step(cell_of(sides, compared, found.explained), outputs.parting.step, (a.id, b.id))
    return rerun(Asked(step, (a, b), found.aspects), checkpoints, trials)


def rerun(asked: Asked, checkpoints: Checkpoints, trials: Trials) -> Rerun:
    """Everything that this machine can say of the step. Nothing is raised: what can't be made is said in its place."""
    a, b = (_conditions(name, asked.step, checkpoints) for name in SIDES)
    trials.run([one for one in (a, b) if isinstance(one, Conditions)], trace=True)
    sides = _side(asked, "a", a, trials), _side(asked, "b", b, trials)
    return Rerun(
        step=asked.step.step,
        a=sides[0],
        b=sides[1],
        same_bits=len({one.outcome.logits_sha256 for one in sides if isinstance(one, SideRerun)}) == 1
        and all(isinstance(one, SideRerun) for one in sides),
        trace=_trace(a, b, trials),
        search=_search(asked, (a, b), sides, trials),
    )


def _conditions(name: SideName, step: Step, checkpoints: Checkpoints) -> Conditions | Untried:
    try:
        return conditions_of(name, step, checkpoints)
    except HarnessError as error:
        return Untried(reason=str(error))


def _side(asked: Asked, name: SideName, wanted: Conditions | Untried, trials: Trials) -> SideRerun | Untried:
    if isinstance(wanted, Untried):
        return wanted
    found = trials.outcome(wanted)
    if isinstance(found, Untried):
        return found
    outcome, report = step_result(found, wanted.forward, asked.tokens), trials.read_back(wanted)
    side = asked.step.cell.a if name == "a" else asked.step.cell.b
    return SideRerun(
        elsewise=tuple(_elsewise(side, report)),
        environment=report.environment,
        placement=report.placement,
        outcome=outcome,
        reproduced=outcome.gives == name,
    )


def _elsewise(side: Side, report: TrialReport) -> Iterator[AspectField]:
    """What was recorded and what was read back, where the two differ; nothing of what the side doesn't hold."""
    pairs: list[tuple[dict[str, str], dict[str, str]]] = []
    if side.environment is not None:
        pairs.append((environment_facts(side.environment), environment_facts(report.environment)))
    if side.placement is not None:
        pairs.append((_leaves(side.placement), _leaves(report.placement)))
    for recorded, here in pairs:
        for name, one, other in differing(recorded, here):
            if not name.startswith(NOT_READ):
                yield AspectField(field=name, a=one, b=other)


def _leaves(record: PlacementFacts) -> dict[str, str]:
    return {f"placement.{name}": value for name, value in leaves(msgspec.to_builtins(record)).items()}


def step_result(found: ForwardReport, forward: Forward, tokens: tuple[Token, Token]) -> StepResult:
    """A forward's report in the words of the two sides' tokens."""
    a, b = (_candidate(token, one, forward) for token, one in zip(tokens, found.candidates, strict=True))
    named: dict[int, tuple[Gives, Token]] = {tokens[1].id: ("b", tokens[1]), tokens[0].id: ("a", tokens[0])}
    gives, token = named.get(found.token, ("other", Token(id=found.token, text=NotDecoded(reason=NOT_A_CANDIDATE))))
    return StepResult(
        token=token,
        gives=gives,
        a=a,
        b=b,
        margin=a.logit - b.logit,
        edge=found.edge,
        logits_sha256=found.logits_sha256,
    )


def _candidate(token: Token, one: CandidateReport, forward: Forward) -> Candidate:
    chance: Interval | Probability | NoChance = NoChance()
    if isinstance(forward.rule, ByTape):
        chance = Interval(lower=one.lower, upper=one.upper, probability=one.probability)
    elif not isinstance(forward.rule, ByArgmax):
        chance = Probability(probability=one.probability)
    return Candidate(token=token, logit=one.logit, rank=one.rank, chance=chance)


def _trace(a: Conditions | Untried, b: Conditions | Untried, trials: Trials) -> TracePair | NoTrace:
    if isinstance(a, Untried) or isinstance(b, Untried):
        return NoTrace(reason="the conditions of a side can't be made here")
    one, other = trials.trace(a), trials.trace(b)
    if isinstance(one, NoTrace):
        return one
    if isinstance(other, NoTrace):
        return other
    return first_places(*(msgspec.to_builtins(digests) for digests in (one, other)))


def _search(
    asked: Asked,
    wanted: tuple[Conditions | Untried, Conditions | Untried],
    sides: tuple[SideRerun | Untried, SideRerun | Untried],
    trials: Trials,
) -> Search | NoSearch:
    """B is changed where it is reproduced, else A."""
    there = [at for at in (1, 0) if (one := sides[at]) and isinstance(one, SideRerun) and one.reproduced]
    if not there:
        return NoSearch(reason=NOT_HERE)
    at = there[0]
    base, other = wanted[at], wanted[1 - at]
    loaded = (asked.step.cell.a, asked.step.cell.b)[at].registered.loaded
    if isinstance(base, Untried) or loaded is None:
        raise RuntimeError("a side that was made again has conditions and a protocol")
    registered = Registered(loaded.protocol.placements, loaded.protocol.execution)
    found = None if isinstance(other, Untried) else other
    singles = single_changes(base, found, between=asked.aspects, turned=at == 0, registered=registered)
    trials.run([one.conditions for one in singles if one.conditions is not None])
    changes = tuple(_change(one, asked, trials, SIDES[1 - at]) for one in singles)
    return Search(base=SIDES[at], wanted=SIDES[1 - at], changes=changes)


def _change(single: Single, asked: Asked, trials: Trials, wanted: SideName) -> Change:
    outcome: StepResult | Untried = Untried(reason=single.why)
    if single.conditions is not None:
        found = trials.outcome(single.conditions)
        forward = single.conditions.forward
        outcome = found if isinstance(found, Untried) else step_result(found, forward, asked.tokens)
    return Change(
        kind=single.kind,
        field=single.field,
        before=single.before,
        after=single.after,
        outcome=outcome,
        restores=isinstance(outcome, StepResult) and outcome.gives == wanted,
    )
