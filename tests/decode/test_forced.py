"""A step with the tokens before it forced is the step of the run that chose them: the same logits bit for bit."""

import msgspec
import pytest
import torch
from pregate_support.sampling import seeds_of

from harness.decode.chosen import SeededDraw, at_u, by_argmax, by_seed, row_logits
from harness.decode.contract import contract_config
from harness.decode.executed import make_executor
from harness.decode.forced import Forced, step_logits
from harness.decode.forced_executed import executed_logits
from harness.decode.graph import execute_rows
from harness.decode.icdf import InverseCdf
from harness.decode.loop import LoopContract, decode_rows
from harness.decode.sampled import PaddedRows, decode_sampled
from harness.decode.watch import StepWatch, generate_rows
from harness.errors import DecodeError
from harness.protocols.load import load_protocol
from harness.protocols.loops import greedy_contract
from harness.protocols.seeds import seed_value
from harness.records.tapes import EdgeDistance, NoEdge, SamplerContract

from .rows import ignore

BUDGET = 40  # the first two rows of `mixed` end within it
SAMPLER = SamplerContract(rule="icdf-r08", temperature=0.3, top_p=0.95, min_tokens_to_keep=1, device="cpu")


class Kept(StepWatch):
    """Keeps the scores of every step of a call."""

    def __init__(self):
        super().__init__(ignore)
        self.scores = []

    def __call__(self, input_ids, scores):
        """One step's scores."""
        self.scores.append(scores.clone())
        return super().__call__(input_ids, scores)


@pytest.fixture(scope="module")
def free(shared, loaded, mixed):
    """{program: (rows, logits of each step)} of runs that chose for themselves."""
    ids = loaded.profile.special_ids
    kept = []

    def choose(logits, step, live):
        del step, live
        kept.append(logits.clone())
        return logits.argmax(dim=-1)

    contract = LoopContract(eos=ids.eos, pad=ids.pad, max_new_tokens=BUDGET)
    looped = decode_rows(shared, mixed, contract=contract, choose=choose, tick=ignore)
    watch, decode = Kept(), loaded.protocol.decode
    shared.model.generation_config = contract_config(decode, ids, BUDGET)
    generate_rows(shared, *mixed, watch)
    return {"own_loop": (looped.rows, kept), "generate": (looped.rows, watch.scores)}


def forced_at(mixed, rows, step):
    """The batch with these rows' tokens before a step."""
    return Forced(*mixed, [row[:step] for row in rows], step)


def logits_of(model, loaded, forced, program):
    """One step under nano's IDs."""
    ids, contract = loaded.profile.special_ids, loaded.protocol.decode
    return step_logits(model, forced, program=program, contract=contract, ids=ids)


@pytest.mark.parametrize("step", [0, 1, 27, 39])
@pytest.mark.parametrize("program", ["generate", "own_loop"])
def test_a_forced_step_is_the_runs_own(program, step, free, shared, loaded, mixed):
    """Of every row that goes on to it, also after others have ended: their mask and padding are each program's."""
    rows, logits = free[program]
    found = logits_of(shared, loaded, forced_at(mixed, rows, step), program)
    live = [at for at, row in enumerate(rows) if len(row) > step]
    assert torch.equal(found[live], logits[step][live].float())


def test_another_token_before_it_is_another_step(free, shared, loaded, mixed):
    """The control: one forced token changed in one row, and its logits are others; its mates' within rounding."""
    rows, logits = free["own_loop"]
    changed = [[*row[:4], 300, *row[5:]] if at == 3 else row for at, row in enumerate(rows)]
    found = logits_of(shared, loaded, forced_at(mixed, changed, 6), "own_loop")
    assert torch.allclose(found[:3], logits[6][:3], atol=1e-3)
    assert not torch.allclose(found[3], logits[6][3], atol=1e-2)


def test_one_forward_without_a_cache_says_the_same_and_not_in_the_same_bits(free, shared, loaded, mixed):
    """The same argmax, logits within rounding of those with a cache."""
    rows, logits = free["generate"]
    found = logits_of(shared, loaded, forced_at(mixed, rows, 30), "whole")
    live = [at for at, row in enumerate(rows) if len(row) > 30]
    assert found.shape == logits[30].shape
    assert torch.allclose(found[live], logits[30][live], atol=1e-3)
    assert torch.equal(found[live].argmax(-1), logits[30][live].argmax(-1))


def executed(model, mixed, contract, graph):
    """Rows and logits of each step of a run by the executor that chose for itself."""
    kept = []

    def choose(logits, best, batch):
        del batch
        kept.append(logits.clone())
        return best

    executor = make_executor(model, graph, captured=False)
    found = execute_rows(
        model, mixed, contract=contract, step=executor.step, choose=choose, how=executor.how, tick=ignore
    )
    return found.looped.rows, kept


@pytest.mark.parametrize("step", ["modules", "lean"])
def test_a_forced_step_of_the_executor_is_the_runs_own(step, shared, loaded, mixed):
    """Over the columns that the run had room for: bit for bit, also after rows have ended; the tokens before decide."""
    ids = loaded.profile.special_ids
    graph = msgspec.structs.replace(load_protocol("nano-task-crn-graph").protocol.decode.graph, step=step)
    contract = LoopContract(eos=ids.eos, pad=ids.pad, max_new_tokens=BUDGET)
    rows, logits = executed(shared, mixed, contract, graph)
    how = {"graph": graph, "captured": False, "budget": BUDGET, "ids": ids}
    for at in (0, 1, 27, BUDGET - 1):
        found = executed_logits(shared, forced_at(mixed, rows, at), **how)
        live = [row for row, tokens in enumerate(rows) if len(tokens) > at]
        assert torch.equal(found[live], logits[at][live])
    changed = [[*row[:4], 300, *row[5:]] if at == 3 else row for at, row in enumerate(rows)]
    assert not torch.allclose(executed_logits(shared, forced_at(mixed, changed, 6), **how)[3], logits[6][3], atol=1e-2)
    with pytest.raises(DecodeError, match="all rows ended before"):
        executed_logits(shared, Forced(*mixed, [[ids.eos]] * len(mixed[0]), 3), **how)
    with pytest.raises(DecodeError, match="expected a CUDA device"):
        executed_logits(shared, forced_at(mixed, rows, 1), **how | {"captured": True})


def test_where_all_rows_end_there_is_no_step(shared, loaded, mixed):
    """Said, not guessed."""
    eos = loaded.profile.special_ids.eos
    ended = Forced(*mixed, [[eos]] * len(mixed[0]), 3)
    for program in ("generate", "own_loop"):
        with pytest.raises(DecodeError, match="all rows ended before"):
            logits_of(shared, loaded, ended, program)


def test_a_closed_model_is_misuse(loaded, mixed):
    """As everywhere."""
    closed = type("Closed", (), {"model": None})()
    with pytest.raises(RuntimeError, match="closed"):
        logits_of(closed, loaded, Forced(*mixed, [[]] * 4, 0), "own_loop")


def test_a_seeded_draw_is_made_again(sampler, loaded, batch, sampled_contract):
    """Each token of a sampled batch, from the seed, the draws before it, and the logits of its own step."""
    ids, seeds = loaded.profile.special_ids, seeds_of("math/0000", "R0")
    drawn = decode_sampled(sampler, PaddedRows(*batch), seeds=seeds, eos=ids.eos, tick=ignore)
    contract = sampled_contract
    for step in range(max(map(len, drawn.rows))):
        logits = logits_of(sampler, loaded, Forced(*batch, [row[:step] for row in drawn.rows], step), "generate")
        draw = SeededDraw(seed_value(seeds), contract.temperature, contract.top_k, contract.top_p, step)
        for row, tokens in enumerate(drawn.rows):
            if step < len(tokens):
                assert by_seed(logits, row, tokens[:1], draw=draw).token == tokens[step]


def test_another_seed_or_count_of_draws_is_another_draw(sampler):
    """The control: over broad distributions neither gives the same tokens."""
    del sampler
    logits = torch.zeros(64, 50)
    tokens = lambda draw: [by_seed(logits, row, (), draw=draw).token for row in range(64)]  # noqa: E731
    first = tokens(SeededDraw(7, 0.3, 0, 0.95, 3))
    assert first == tokens(SeededDraw(7, 0.3, 0, 0.95, 3))
    assert first != tokens(SeededDraw(7, 0.3, 0, 0.95, 4))
    assert first != tokens(SeededDraw(8, 0.3, 0, 0.95, 3))
    ranked = torch.arange(50.0).flip(0).repeat(64, 1) * 1e-3
    kept = {by_seed(ranked, row, (), draw=SeededDraw(7, 0.3, 2, 1.0, 3)).token for row in range(64)}
    assert kept == {0, 1}, "the two that top_k keeps"


def test_a_tape_draws_where_u_is(free):
    """Intervals of neighbours meet; the drawn one holds u, and the distance is to its nearer end."""
    del free
    logits = torch.log(torch.tensor([[0.2, 0.3, 0.4, 0.1]])) * 0.3
    sampler = InverseCdf(
        SamplerContract(rule="icdf-r08", temperature=0.3, top_p=1.0, min_tokens_to_keep=1, device="cpu")
    )
    found = at_u(logits, 0, (1, 2), sampler=sampler, u=0.45)
    assert found.token == 1
    one, other = found.shares
    assert (one.lower, one.upper, other.lower, other.upper) == pytest.approx((0.2, 0.5, 0.5, 0.9), abs=1e-6)
    assert one.probability == pytest.approx(0.3, abs=1e-6)
    assert found.edge.distance == pytest.approx(0.05, abs=1e-6)
    assert isinstance(found.edge, EdgeDistance)
    near = at_u(logits, 0, (1, 2), sampler=sampler, u=one.upper + 1e-6)
    assert (near.token, near.edge.distance) == (2, pytest.approx(1e-6, abs=1e-7))
    assert at_u(logits, 0, (0,), sampler=sampler, u=0.1).shares[0].lower == 0.0


def test_logits_are_ranked(sampler):
    """The rank counts what is larger; a row with a NaN has none."""
    del sampler
    logits = torch.tensor([[1.0, 3.0, 2.0, 3.0]])
    found = row_logits(logits, 0, (1, 0))
    assert (found.logits, found.ranks) == ((3.0, 1.0), (0, 3))
    assert by_argmax(logits, 0, (1,)).token == 1
    assert by_argmax(logits, 0, (1,)).edge == NoEdge()
    assert row_logits(logits, 0, ()).sha256 != row_logits(logits + 1, 0, ()).sha256
    with pytest.raises(DecodeError, match="finite"):
        row_logits(torch.tensor([[float("nan")]]), 0, (0,))


def test_a_task_protocols_logits_are_its_loops(shared, mixed, loaded, free):
    """`generate` under the contract that its loop is checked by gives the loop's argmax."""
    tasks = load_protocol("nano-task-crn")
    rows, logits = free["own_loop"]
    forced = forced_at(mixed, rows, 5)
    contract = greedy_contract(tasks.protocol)
    found = step_logits(shared, forced, program="generate", contract=contract, ids=loaded.profile.special_ids)
    assert torch.equal(found.argmax(-1), logits[5].argmax(-1))
