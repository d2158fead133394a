"""Which cell is the first, which parts earliest, which is explained; and that equal sides have none."""

import pytest

from harness.canon import escaped, text_sha256
from harness.errors import ComparisonError
from harness.records.explanation import NoDivergence


def where(cell):
    """Source and condition of a compared cell."""
    return cell.source_id, cell.condition


def test_equal_sides_have_nothing_to_explain(run, copied, explained):
    """A copy: equal, no aspect, and the sentence says of how many cells, and that a copy shows nothing."""
    record = explained(run, copied(run), again=True)
    assert (record.verdict, record.found) == ("equal", NoDivergence())
    assert record.rerun.reason == "no cell differs"
    assert " are equal in 16 of 16 cells; 2 of 2 units are one call's " in record.sentence


def test_the_first_cell_and_the_earliest_are_two(run, copied, explained, token):
    """The grid's first parts in step 5, another in step 2: that one is explained, and the sentence names both."""

    def both(unit):
        token(5, cell=0)(unit)
        token(2, cell=3)(unit)

    record = explained(run, copied(run, unit=both))
    found = record.found
    assert (where(found.first)[1], where(found.earliest)[1]) == ("s0_eos", "s1_bos")
    assert found.explained == found.earliest
    assert (found.differing.count, found.differing.of) == (2, 16)
    assert "s1_bos at step 2, counted from 0: A has " in record.sentence
    assert "in the grid's order first " in record.sentence


def test_of_two_that_part_in_one_step_the_grids_first_is_the_earliest(run, copied, explained, token):
    """Ties go to the grid's order, over units too."""
    record = explained(run, copied(run, at=1, unit=token(3, cell=2)))
    one = record.found.earliest
    both = explained(run, copied(run, unit=lambda unit: [token(3, cell=at)(unit) for at in (4, 6)])).found
    assert one.source_id != both.earliest.source_id
    assert both.earliest == both.first
    assert where(both.first)[1] == "s0_x"


def test_a_named_cell_is_explained(run, copied, explained, token):
    """Also one that parts later; one that is equal, or that no side has, is refused."""
    other = copied(run, unit=lambda unit: [token(5, cell=0)(unit), token(2, cell=3)(unit)])
    source = explained(run, other).found.first.source_id
    record = explained(run, other, cell=(source, "greedy", "s0_eos"))
    assert record.found.explained == record.found.first
    assert "s0_eos at step 5" in record.sentence
    for name, words in (("s1_eos", "expected a difference"), ("nothing", "expected a cell of both sides")):
        with pytest.raises(ComparisonError, match=words):
            explained(run, other, cell=(source, "greedy", name))


def test_a_cell_with_the_same_tokens_parts_in_no_step(run, copied, explained):
    """Another decoder under the same IDs: said, and nothing is made again."""

    def text(unit):
        unit["cells"][0] |= {"text_escaped": escaped("another"), "text_sha256": text_sha256("another")}

    record = explained(run, copied(run, unit=text), again=True)
    assert record.verdict == "different"
    assert "have the same tokens in cell" in record.sentence
    assert record.rerun.reason == "the tokens of this cell part in no step"
    assert record.found.first == record.found.earliest


def test_a_trace_is_named_by_stage_and_gate(frozen, explained):
    """Its records hold both; nothing is generated, so nothing is made again."""
    copy = frozen("nano-depth")

    def change(unit):
        unit["cells"][0]["hidden_sha256"]["layer_03"][1] = "0" * 64

    record = explained(copy.original, copy.change("*-tensors.json", change), again=True)
    assert "first stage layer_03 hidden (full)" in record.sentence
    assert record.rerun.reason.startswith("a trace generates nothing")


def test_a_cell_missing_on_a_side_is_no_divergence(run, copied, explained):
    """Different, with no cell that differs: the sentence says what is missing."""
    other = copied(run)
    sorted((other / "journal").glob("*.json"))[0].unlink()
    record = explained(run, other)
    assert (record.verdict, record.found) == ("different", NoDivergence())
    assert "8 cells are missing on a side" in record.sentence
