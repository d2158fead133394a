"""Draws inside a step against the loop's, on the CPU, where the two are the same contract."""

import msgspec
import pytest
from pregate_support.taped import SAMPLER, TAPE

from harness.decode.graph import Execute, ModuleStep, execute_rows
from harness.decode.icdf import InverseCdf
from harness.decode.loop import LoopContract
from harness.decode.tape import TapeChooser
from harness.decode.tape_device import DeviceTape
from harness.decode.taped import TapedCall, decode_taped

from .rows import ignore

BUDGET, SOURCE = 96, "code/0000"
CONDITIONS = ("s0_eos", "s1_eos", "s0_period", "s1_period")


@pytest.fixture
def draw(shared, loaded, mixed):
    """`draw(choose, look)`: the mixed rows through the executor."""
    ids = loaded.profile.special_ids
    contract = LoopContract(eos=ids.eos, pad=ids.pad, max_new_tokens=BUDGET)

    def do(choose, look):
        step, how = ModuleStep(shared), Execute(captured=False, look=look)
        return execute_rows(shared, mixed, contract=contract, step=step, choose=choose, how=how, tick=ignore)

    return do


def device_tape(device, sampler=SAMPLER):
    """A chooser for the four rows."""
    return DeviceTape(InverseCdf(sampler), TAPE, SOURCE, rows=4, budget=BUDGET, device=device)


def test_tokens_are_the_loops(shared, loaded, mixed, draw):
    """Rows that end apart, everything counted; no edge: scores over another width round otherwise."""
    ids = loaded.profile.special_ids
    contract = LoopContract(eos=ids.eos, pad=ids.pad, max_new_tokens=BUDGET)
    call = TapedCall(tape=TAPE, source_id=SOURCE, conditions=CONDITIONS, contract=contract)
    wanted = decode_taped(shared, mixed, sampler=InverseCdf(SAMPLER), call=call, tick=ignore)
    chooser = device_tape(shared.device)
    found = draw(chooser, 16)
    assert found.looped.rows == wanted.rows
    assert (found.argmax, found.columns) == (wanted.checks.argmax, wanted.tape.columns)
    for one, other in zip(chooser.row_tapes(found, CONDITIONS), wanted.tape.rows, strict=True):
        assert msgspec.structs.replace(one, nearest_edge=other.nearest_edge) == other


@pytest.mark.parametrize("look", [1, 16])
@pytest.mark.parametrize("rule", ["icdf-r08", "icdf-v1"])
def test_accounts_are_the_hosts(shared, draw, look, rule):
    """From the same logits, the sampler on the host gives the same tokens, flags and edges."""
    sampler = msgspec.structs.replace(SAMPLER, rule=rule)
    host = TapeChooser(InverseCdf(sampler), TAPE, SOURCE, rows=4)

    def by_host(logits, best, batch):
        return host(logits, int(batch.inputs.step), tuple(batch.inputs.live.tolist()))

    wanted, chooser = draw(by_host, 1), device_tape(shared.device, sampler)
    found = draw(chooser, look)
    assert found == wanted
    assert chooser.row_tapes(found, CONDITIONS) == host.row_tapes(wanted.looped, CONDITIONS)
