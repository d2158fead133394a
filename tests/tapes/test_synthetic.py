"""The synthetic table's judge: it holds for what the table owes, and each departure is named. No torch here."""

import msgspec
import pytest

from harness.records.tapes import SyntheticOutcome
from harness.tapes.synthetic import CASES, VOCABULARY, synthetic_differences


def owed(rule):
    """The outcomes that the table asks for."""
    if rule == "icdf-r08":
        return [SyntheticOutcome(case=one.name, token=one.token_r08, gap=one.gap_r08) for one in CASES]
    return [SyntheticOutcome(case=one.name, token=one.token_v1, gap=False) for one in CASES]


@pytest.mark.parametrize("rule", ["icdf-r08", "icdf-v1"])
def test_the_table_holds_for_what_it_owes(rule):
    """In any order."""
    assert synthetic_differences(rule, owed(rule)[::-1]) == ()


@pytest.mark.parametrize("place", range(len(CASES)), ids=[one.name for one in CASES])
def test_a_wrong_id_or_flag_is_named(place):
    """Case by case, under both rules."""
    for rule in ("icdf-r08", "icdf-v1"):
        for change in ({"token": 39}, {"gap": not owed(rule)[place].gap}):
            outcomes = owed(rule)
            outcomes[place] = msgspec.structs.replace(outcomes[place], **change)
            (difference,) = synthetic_differences(rule, outcomes)
            assert difference.startswith(f"{CASES[place].name}: expected (ID, gap)")


def test_a_case_left_out_twice_or_unknown_is_named():
    """The denominator is the table's."""
    outcomes = owed("icdf-r08")
    assert synthetic_differences("icdf-r08", []) == tuple(f"{one.name}: expected one outcome, found 0" for one in CASES)
    assert synthetic_differences("icdf-r08", [*outcomes, outcomes[0]]) == (
        f"{CASES[0].name}: expected one outcome, found 2",
    )
    other = SyntheticOutcome(case="other", token=0, gap=False)
    assert synthetic_differences("icdf-r08", [*outcomes, other]) == ("other: expected a case of the table, found none",)


def test_the_rules_differ_on_the_gap_alone():
    """And the table has that gap, a u at each clamp, and the registered vocabulary."""
    apart = [one.name for one in CASES if one.token_r08 != one.token_v1]
    assert apart == [one.name for one in CASES if one.gap_r08] == ["gap_inside", "gap_top"]
    assert {0.0, 1.0} <= {one.u for one in CASES}
    assert max(one.columns for one in CASES) == VOCABULARY
    assert len({one.name for one in CASES}) == len(CASES)
