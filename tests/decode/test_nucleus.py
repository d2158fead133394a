"""The watcher behind the warpers on hand-made scores, judging draws, and counting them by the generator's state."""

import pytest
import torch

from harness.decode.nucleus import NucleusWatch, generator_of, generator_state, require_draws
from harness.decode.sampled import judge_draws
from harness.decode.watch import StepWatch
from harness.errors import DecodeError

EOS = 1
CUT = float("-inf")
# Three steps of two rows over four IDs; CUT is what a warper leaves of an ID.
SCORES = (
    [[0.0, CUT, 2.0, CUT], [CUT, CUT, 0.0, 0.0]],
    [[CUT, 0.0, CUT, CUT], [0.0, 0.0, 0.0, 0.0]],
    [[0.0, 0.0, CUT, CUT], [CUT, CUT, CUT, 0.0]],
)
EMITTED = [[2, EOS, EOS], [3, 0, 3]]


def watched(emitted=EMITTED, scores=SCORES):
    """Both watchers after those steps, fed with the IDs as a call feeds them, and the IDs int64 [rows, steps]."""
    steps, nucleus = StepWatch(lambda _: None), NucleusWatch()
    generated = torch.tensor(emitted)
    for step, one in enumerate(scores):
        before = torch.cat([torch.zeros(2, 3, dtype=torch.long), generated[:, :step]], dim=1)
        nucleus(before, steps(before, torch.tensor(one)))
    return steps, nucleus, generated


def finite(watch):
    """Every step's own logits were finite, whatever the warpers cut."""
    watch.finite = [torch.ones(2, dtype=torch.bool)] * len(watch.finite)
    return watch


def judge(**kwargs):
    """Judged with finite logits."""
    steps, nucleus, generated = watched(**kwargs)
    nucleus.end(generated)
    return judge_draws(generated, finite(steps), nucleus.drawn, eos=EOS)


def test_a_good_batch_counts_its_live_steps():
    """2 + 3 row steps; three of them had more than one ID, and four drew the argmax."""
    checks, drawable, several = judge()
    assert (checks.steps, checks.rows_checked, checks.finite, drawable, several) == (3, 5, 5, 5, 3)
    assert checks.argmax == 4


@pytest.mark.parametrize(("row", "step", "emitted"), [(0, 0, 3), (0, 1, 2), (1, 0, 0), (1, 2, 2)])
def test_an_id_without_probability_is_named(row, step, emitted):
    """Also the step that ends a row, and the last step, which no later one sees."""
    ids = [list(one) for one in EMITTED]
    ids[row][step] = emitted
    with pytest.raises(DecodeError, match=f"step {step}, row {row}: expected an ID with a probability") as caught:
        judge(emitted=ids)
    assert caught.value.kind == "not_drawable"


@pytest.mark.parametrize(("row", "step"), [(0, 0), (1, 1)])
def test_an_id_that_was_altered_after_its_draw_is_named(row, step):
    """What is returned is what the call went on with, also where the other ID would have had a probability."""
    _, nucleus, generated = watched()
    altered = generated.clone()
    altered[row, step] = 1 - altered[row, step] if step else 0
    with pytest.raises(DecodeError, match=f"step {step}, row {row}: expected the ID that the call drew") as caught:
        nucleus.end(altered)
    assert caught.value.kind == "not_drawable"


def test_rows_of_several_calls_are_refused():
    """A batch is drawn at once: two rows more than the last draw was for."""
    _, nucleus, generated = watched()
    with pytest.raises(DecodeError, match="expected draws for all 4 rows at once, found draws for 2") as caught:
        nucleus.end(torch.cat([generated, generated]))
    assert caught.value.kind == "not_drawable"


def test_a_finished_row_is_aside():
    """Its padding has no probability in step 2 of row 0 here, and nobody asks."""
    scores = (*SCORES[:2], [[0.0, CUT, CUT, CUT], SCORES[2][1]])
    assert judge(scores=scores)[0].rows_checked == 5


def test_logits_that_are_not_finite_are_named():
    """The model's own, before any warper."""
    steps, nucleus, generated = watched()
    nucleus.end(generated)
    finite(steps).finite[1] = torch.tensor([True, False])
    with pytest.raises(DecodeError, match="step 1, row 1: expected finite logits") as caught:
        judge_draws(generated, steps, nucleus.drawn, eos=EOS)
    assert caught.value.kind == "non_finite"


def test_a_step_that_nobody_watched_is_refused():
    """More IDs than steps: assisted decoding emits several at once."""
    steps, nucleus, generated = watched()
    nucleus.end(generated)
    more = torch.cat([generated, generated[:, :1]], dim=1)
    with pytest.raises(DecodeError, match="one emitted ID for each of 3 watched steps, found 4 IDs") as caught:
        judge_draws(more, finite(steps), nucleus.drawn, eos=EOS)
    assert caught.value.kind == "not_drawable"


def test_a_call_that_never_reached_the_watcher_is_refused():
    """IDs came back and no scores were seen."""
    with pytest.raises(DecodeError, match="a watched step for every draw, found 2 steps of which none was seen"):
        NucleusWatch().end(torch.tensor([[5, 6]]))


def test_the_watcher_returns_the_very_scores():
    """No copy and no change."""
    scores = torch.tensor(SCORES[0])
    assert NucleusWatch()(torch.zeros(2, 1, dtype=torch.long), scores) is scores


def test_one_step_is_held_and_no_more():
    """Flags of [rows] are kept; of the probabilities [rows, vocabulary] only the last."""
    _, nucleus, generated = watched()
    held = nucleus.end(generated)
    assert held.shape == (2, 4)
    assert {one.shape for one in (*nucleus.drawn.drawable, *nucleus.drawn.several)} == {torch.Size([2])}
    assert torch.equal(held.sum(dim=-1), torch.ones(2))


@pytest.mark.parametrize(("device", "name"), [("cpu", "torch_cpu"), ("cuda:0", "torch_cuda"), ("cuda:1", "torch_cuda")])
def test_a_device_has_its_generator(device, name):
    """By the name that the records use."""
    assert generator_of(torch.device(device)) == name


CPU = torch.device("cpu")


def states(draws, shape=(3, 50)):
    """The state before and after so many draws of a process's own generator, from probabilities that aren't uniform."""
    torch.manual_seed(11)
    before = generator_state(CPU)
    for number in range(draws):
        weights = torch.linspace(0, number + 1, shape[0] * shape[1]).reshape(shape)
        torch.multinomial(weights, num_samples=1)
    return before, generator_state(CPU)


@pytest.mark.parametrize("draws", [1, 2, 7])
def test_draws_are_counted_by_the_state_that_they_leave(draws):
    """Whatever the probabilities were; and counting draws from no generator of the process."""
    before, after = states(draws)
    require_draws(before, after, like=torch.rand(3, 50, generator=torch.Generator()), draws=draws)
    assert torch.equal(generator_state(CPU), after)


@pytest.mark.parametrize("draws", [1, 3, 0])
def test_another_number_of_draws_is_refused(draws):
    """One too few, one too many, none."""
    before, after = states(2)
    with pytest.raises(DecodeError, match=f"the generator's state after {draws} draws for 3 rows") as caught:
        require_draws(before, after, like=torch.ones(3, 50), draws=draws)
    assert caught.value.kind == "foreign_draw"


def test_a_draw_by_somebody_else_is_refused():
    """One number more than the steps'."""
    before, _ = states(2)
    torch.rand(1)
    with pytest.raises(DecodeError, match="Find what else draws"):
        require_draws(before, generator_state(CPU), like=torch.ones(3, 50), draws=2)
