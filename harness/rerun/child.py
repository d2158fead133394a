"""A trial's whole work in its own process: variables, one load, the forwards, the trace, and what was read back."""

from collections.abc import Sequence
from pathlib import Path

from harness.decode.chosen import SeededDraw, at_u, by_argmax, by_seed, row_logits
from harness.decode.forced import Forced, step_logits
from harness.decode.forced_executed import executed_logits
from harness.decode.icdf import InverseCdf
from harness.errors import HarnessError, ModelError
from harness.model.environment import read_environment
from harness.model.identity import check_shape, check_special_ids, digests_of_a_run, file_deviations
from harness.model.load import LoadedModel, load_model
from harness.model.placement import placement_facts
from harness.records.depth import TargetTokens
from harness.records.explanation import NoTrace, Untried
from harness.records.profile import SpecialIds
from harness.rerun.trial import (
    BySeed,
    ByTape,
    CandidateReport,
    Forward,
    ForwardReport,
    Load,
    TraceDigests,
    Trial,
    TrialReport,
    execution_of,
)
from harness.trace.forward import adopt_forward, trace_batch


def make_trial(trial: Trial) -> TrialReport:
    """All forwards of a trial in this process. HarnessError where the model can't be loaded so.

    A forward that can't be made is `untried` with what the library said; the others are made all the same.
    """
    model, digests = load_as_asked(trial.load)
    try:
        return report_of(model, digests, trial)
    finally:
        model.close()


def load_as_asked(load: Load) -> tuple[LoadedModel, dict[str, str]]:
    """The model, and its files' SHA-256. ModelError where the checkpoint isn't the profile's, or can't be loaded so."""
    checkpoint = Path(load.checkpoint)
    check_shape(load.profile, checkpoint)
    check_special_ids(load.profile, checkpoint)
    digests = digests_of_a_run(load.profile, checkpoint)
    _require_code(load, digests)
    return load_model(load.profile, execution_of(load), load.placement, checkpoint), digests


def report_of(model: LoadedModel, digests: dict[str, str], trial: Trial) -> TrialReport:
    """What is read back, then every forward of a trial, then its traces, which set the model's config their own way."""
    load, ids = trial.load, trial.load.profile.special_ids
    return TrialReport(
        environment=read_environment(model, {}, digests),
        placement=placement_facts(model.model, load.placement.id, load.profile, model.device),
        forwards=tuple(_tried(model, one, ids) for one in trial.forwards),
        traces=tuple(_traced(model, one, ids.pad) for one in trial.forwards) if trial.trace else (),
    )


def _require_code(load: Load, digests: dict[str, str]) -> None:
    """Remote code runs only where each of its files is the registered one."""
    code = {f"checkpoint.{file.name}" for file in load.profile.files if file.role == "code"}
    other = [one for one in file_deviations(load.profile, digests) if one.field in code]
    if other and load.experts == "remote_code":
        one = other[0]
        raise ModelError(one.field, expected=one.registered, found=one.actual, todo="Use the registered code.")


def _tried(model: LoadedModel, forward: Forward, ids: SpecialIds) -> ForwardReport | Untried:
    try:
        return _made(model, forward, ids)
    except HarnessError as error:
        return Untried(reason=str(error))
    except Exception as error:  # noqa: BLE001  # whatever a library raises is why this wasn't made
        return Untried(reason=_words(error))


def _words(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".encode("ascii", "backslashreplace").decode("ascii").split())


def _made(model: LoadedModel, forward: Forward, ids: SpecialIds) -> ForwardReport:
    forced, row, asked, how = forced_of(forward, ids.pad), forward.row, forward.candidates, forward.executed
    if forward.program != "executor":
        logits = step_logits(model, forced, program=forward.program, contract=forward.contract, ids=ids)
    elif how is None:
        raise RuntimeError("the executor needs to be told how its steps are executed")
    else:
        graph, captured, budget = how.graph, how.captured, how.budget
        logits = executed_logits(model, forced, graph=graph, captured=captured, budget=budget, ids=ids)
    found, rule = row_logits(logits, row, asked), forward.rule
    if isinstance(rule, ByTape):
        chosen = at_u(logits, row, asked, sampler=InverseCdf(rule.sampler), u=float.fromhex(rule.u))
    elif isinstance(rule, BySeed):
        draw = SeededDraw(int(rule.seed, 16), rule.temperature, rule.top_k, rule.top_p, forward.step)
        chosen = by_seed(logits, row, asked, draw=draw)
    else:
        chosen = by_argmax(logits, row, asked)
    one, other = (
        CandidateReport(logit=logit, rank=rank, lower=share.lower, upper=share.upper, probability=share.probability)
        for logit, rank, share in zip(found.logits, found.ranks, chosen.shares, strict=True)
    )
    return ForwardReport(token=chosen.token, candidates=(one, other), edge=chosen.edge, logits_sha256=found.sha256)


def forced_of(forward: Forward, pad: int) -> Forced:
    """The batch as the programs take it: rows of one width, each padded on the left up to it."""
    ids, mask = _left_padded([(row.left_padding, row.prompt_ids) for row in forward.rows], pad)
    return Forced(ids, mask, [row.forced for row in forward.rows], forward.step)


def _left_padded(rows: Sequence[tuple[int, tuple[int, ...]]], pad: int) -> tuple[list[list[int]], list[list[int]]]:
    width = max(padding + len(ids) for padding, ids in rows)
    filled = [(width - len(ids), ids) for _, ids in rows]
    return [[pad] * gap + list(ids) for gap, ids in filled], [[0] * gap + [1] * len(ids) for gap, ids in filled]


def _traced(model: LoadedModel, forward: Forward, pad: int) -> TraceDigests | NoTrace:
    """Prompts and forced tokens of the batch in one forward, without a cache; each row's target is its last token."""
    whole = [(0, (*row.prompt_ids, *row.forced)) for row in forward.rows]
    ids, mask = _left_padded(whole, pad)
    targets = [TargetTokens(start=len(one) - 1, end=len(one), crossing=0) for _, one in whole]
    try:
        adopt_forward(model)
        traced = trace_batch(model, ids, mask, targets=targets, edges=())
    except HarnessError as error:
        return NoTrace(reason=str(error))
    hidden, gates = traced.hidden[forward.row], traced.gates[forward.row]
    return TraceDigests(
        hidden_sha256={one.stage: (one.target.sha256, one.full.sha256) for one in hidden},
        routes_sha256={one.gate: (one.target.routes_sha256, one.full.routes_sha256) for one in gates},
        weights_sha256={one.gate: (one.target.weights_sha256, one.full.weights_sha256) for one in gates},
    )
