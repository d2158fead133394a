"""Judging steps on hand-made tensors: which row at which step broke the contract, and which rows are aside."""

import pytest
import torch

from harness.decode.greedy import StepWatch, _trim, judge_steps
from harness.errors import DecodeError

EOS = 1
GENERATED = [[5, 6, EOS, EOS], [7, 8, 9, 4]]


def judge(generated=GENERATED, argmax=None, finite=None):
    """Judge rows whose watched argmax and finite flags are the emitted IDs and True, unless given."""
    emitted = torch.tensor(generated)
    flags = torch.ones_like(emitted, dtype=torch.bool) if finite is None else torch.tensor(finite)
    return judge_steps(emitted, emitted.clone() if argmax is None else torch.tensor(argmax), flags, eos=EOS)


def flags_without(row, step):
    """All finite but one."""
    flags = [[True] * 4 for _ in GENERATED]
    flags[row][step] = False
    return flags


def argmax_without(row, step):
    """The emitted IDs, with another argmax at one place."""
    argmax = [list(one) for one in GENERATED]
    argmax[row][step] = 99
    return argmax


def test_a_good_batch_counts_its_live_steps():
    """Steps up to and including a row's first EOS, over all rows: 3 + 4 of 4 steps."""
    checks = judge()
    assert (checks.steps, checks.rows_checked, checks.finite, checks.argmax) == (4, 7, 7, 7)


@pytest.mark.parametrize(("row", "step"), [(0, 0), (0, 2), (1, 0), (1, 3)])
def test_a_step_that_is_not_finite_is_named(row, step):
    """Also the step that draws EOS, and the last one."""
    with pytest.raises(DecodeError, match=f"step {step}, row {row}: expected finite logits, found 1 steps") as caught:
        judge(finite=flags_without(row, step))
    assert caught.value.kind == "non_finite"


@pytest.mark.parametrize(("row", "step"), [(0, 0), (0, 2), (1, 0), (1, 3)])
def test_an_id_that_is_not_the_argmax_is_named(row, step):
    """Also the EOS itself: an end that the model didn't choose."""
    with pytest.raises(DecodeError, match=f"step {step}, row {row}: expected the argmax") as caught:
        judge(argmax=argmax_without(row, step))
    assert caught.value.kind == "not_argmax"


def test_the_first_step_of_several_is_named():
    """Row 1 breaks at step 1 and row 0 at step 2: the earlier one is named, with the number of both."""
    flags = flags_without(1, 1)
    flags[0][2] = False
    with pytest.raises(DecodeError, match=r"step 1, row 1: .*found 2 steps"):
        judge(finite=flags)


@pytest.mark.parametrize(
    "change", [{"finite": flags_without(0, 3)}, {"argmax": argmax_without(0, 3)}], ids=["finite", "argmax"]
)
def test_a_finished_row_is_aside(change):
    """After its EOS a row's logits are nobody's."""
    assert judge(**change) == judge()


def test_eos_at_the_last_step_is_live():
    """The step that draws EOS is judged and counted."""
    checks = judge([[5, EOS]])
    assert checks.rows_checked == checks.steps
    with pytest.raises(DecodeError, match="step 1, row 0"):
        judge([[5, EOS]], argmax=[[5, 6]])


def test_eos_at_the_first_step_leaves_one_live_step():
    """An empty answer is one step long."""
    assert judge([[EOS, EOS, EOS]]).rows_checked == 1


@pytest.mark.parametrize("watched", [[[5, 6, 7]], [[5]]], ids=["more-steps", "fewer-steps"])
def test_ids_that_nobody_watched_are_refused(watched):
    """Speculative or assisted decoding emits more IDs than steps: this isn't the contract's decoding."""
    emitted, argmax = torch.tensor([[5, 6]]), torch.tensor(watched)
    message = f"one emitted ID for each of {argmax.shape[1]} watched steps, found 2 IDs"
    with pytest.raises(DecodeError, match=message) as caught:
        judge_steps(emitted, argmax, torch.ones_like(argmax, dtype=torch.bool), eos=EOS)
    assert caught.value.kind == "not_argmax"


def test_a_row_lost_on_the_way_is_refused():
    """Two rows were watched and one came back."""
    with pytest.raises(DecodeError):
        judge_steps(torch.tensor([[5, 6]]), torch.tensor([[5, 6], [5, 6]]), torch.ones(2, 2, dtype=torch.bool), eos=EOS)


@pytest.mark.parametrize(
    ("row", "kept"), [([5, EOS, EOS], (5, EOS)), ([EOS, 7, EOS], (EOS,)), ([5, 6], (5, 6)), ([], ())], ids=str
)
def test_a_row_ends_with_its_first_eos(row, kept):
    """EOS kept, padding (the same ID) dropped; without EOS the whole row."""
    assert _trim(row, EOS) == kept


def test_the_watcher_returns_the_very_scores():
    """No copy, no change, and one tick a step."""
    ticks = []
    watch = StepWatch(ticks.append)
    scores = torch.tensor([[0.0, 2.0, float("-inf")], [float("nan"), 1.0, 0.0]])
    assert watch(torch.zeros(2, 1), scores) is scores
    watch(torch.zeros(2, 1), scores)
    assert ticks == [1, 2]
    assert watch.finite[0].tolist() == [False, False]
    assert watch.argmax[0][0].item() == 1
