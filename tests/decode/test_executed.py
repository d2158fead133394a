"""A unit by the executor that a protocol registers: its rows, its accounts, and how its steps ran."""

import msgspec
import pytest
from pregate_support.taped import SAMPLER, TAPE

from harness.decode.adopt import adopt_decoding
from harness.decode.executed import decode_executed, decode_greedily, make_executor
from harness.decode.icdf import InverseCdf
from harness.decode.loop import LoopContract
from harness.decode.taped import TapedCall, decode_argmax, decode_taped
from harness.protocols.load import load_protocol
from harness.records.graph import GraphBatch, GraphExecution, GraphRan

from .rows import ignore

BUDGET, SOURCE = 48, "code/0000"
CONDITIONS = ("s0_eos", "s1_eos", "s0_period", "s1_period")
MODULES = GraphExecution(executor="graph", step="modules", kernels=(), look=8, ended_rows="kept", against="own_loop")
LEAN = msgspec.structs.replace(MODULES, step="lean")
NAMES = {"modules": "modules, experts grouped_mm", "lean": "lean, kernels none"}


@pytest.fixture
def call(loaded):
    """Four rows under one tape."""
    ids = loaded.profile.special_ids
    contract = LoopContract(eos=ids.eos, pad=ids.pad, max_new_tokens=BUDGET)
    return TapedCall(tape=TAPE, source_id=SOURCE, conditions=CONDITIONS, contract=contract)


@pytest.mark.parametrize("graph", [MODULES, LEAN], ids=lambda one: one.step)
def test_a_unit_is_the_loops_and_says_how_it_ran(shared, mixed, call, graph):
    """Tokens and checks of the own loop under the same tape, on the CPU; no step was captured, and it says so."""
    sampler = InverseCdf(SAMPLER)
    wanted = decode_taped(shared, mixed, sampler=sampler, call=call, tick=ignore)
    executor = make_executor(shared, graph, captured=False)
    found = decode_executed(shared, mixed, sampler=sampler, call=call, executor=executor, tick=ignore)
    assert (found.rows, found.checks) == (wanted.rows, wanted.checks)
    assert isinstance(found.tape, GraphBatch)
    assert found.tape.ran == GraphRan(step=NAMES[graph.step], captured=False, replays=0, look=8)
    assert (found.tape.cached, found.tape.columns) == (wanted.tape.cached, wanted.tape.columns)
    assert [row.consumed for row in found.tape.rows] == [row.consumed for row in wanted.tape.rows]


@pytest.mark.parametrize("graph", [MODULES, LEAN], ids=lambda one: one.step)
def test_a_greedy_unit_is_the_loops(shared, mixed, call, graph):
    """With the argmax in the sampler's place."""
    executor = make_executor(shared, graph, captured=False)
    wanted = decode_argmax(shared, mixed, contract=call.contract, tick=ignore)
    assert decode_greedily(shared, mixed, contract=call.contract, executor=executor, tick=ignore) == wanted


class OneBigger:
    """A step that pushes one ID of one row in one step: what a wrong kernel does."""

    def __init__(self, step):
        self.name, self._step, self._calls = step.name, step, 0

    def begin(self, layers, batch):
        """As the step does."""
        self._calls = 0
        self._step.begin(layers, batch)

    def __call__(self, batch):
        """The step's logits, one of them another."""
        logits = self._step(batch)
        self._calls += 1
        if self._calls == 3:
            logits[2, 700] = 1e4
        return logits


def test_a_step_that_changes_a_token_parts_from_the_loop(shared, mixed, call):
    """The row parts at that step, and no other row does: what the gate compares can tell it."""
    sampler = InverseCdf(SAMPLER)
    wanted = decode_taped(shared, mixed, sampler=sampler, call=call, tick=ignore)
    executor = make_executor(shared, MODULES, captured=False)
    executor.made = OneBigger(executor.step)
    found = decode_executed(shared, mixed, sampler=sampler, call=call, executor=executor, tick=ignore)
    assert found.rows[2][:3] == wanted.rows[2][:3]
    assert found.rows[2][3] == 700 != wanted.rows[2][3]
    assert [found.rows[row] == wanted.rows[row] for row in range(4)] == [True, True, False, True]


def test_what_is_read_back_is_the_steps_own(shared, loaded):
    """Sampler, stopping and executor by name; and misuse where nothing executes what is registered so."""
    own, ids, sampler = load_protocol("nano-task-crn-graph").protocol, loaded.profile.special_ids, InverseCdf(SAMPLER)
    executor = make_executor(shared, MODULES, captured=False)
    found = adopt_decoding(shared, own, ids, BUDGET, sampler=sampler, executor=executor)
    executed = {name: found[name] for name in ("executor", "step", "captured", "look")}
    assert executed == {"executor": "graph", "step": NAMES["modules"], "captured": False, "look": 8}
    assert (found["strategy"], found["sampler_device"]) == ("tape", "cpu")
    with pytest.raises(RuntimeError, match="executes its steps"):
        adopt_decoding(shared, own, ids, BUDGET, sampler=sampler, executor=None)


def test_a_closed_executor_holds_no_weights(shared, mixed, call):
    """Whoever needs the memory next can have it: a step keeps the model's tensors alive."""
    executor = make_executor(shared, LEAN, captured=False)
    executor.close()
    with pytest.raises(RuntimeError, match="the executor was closed"):
        decode_greedily(shared, mixed, contract=call.contract, executor=executor, tick=ignore)
