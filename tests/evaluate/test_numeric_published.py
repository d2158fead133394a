"""`numeric-r05` and `numeric-r08`: the published order, what the clause leaves open, and the marker of R05 4.2."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.evaluate.number import NUMBER_R04, plain_number
from harness.evaluate.numeric import NUMERIC_RULES, final_marker_r05, numeric_r05, numeric_r08
from harness.records.evaluation import NumericFound, NumericMissing

FIXED = settings(deadline=None, derandomize=True, max_examples=60)  # no verdict on time, the same cases everywhere

WRITTEN = st.from_regex(NUMBER_R04, fullmatch=True)
FORMS = {
    "boxed": lambda number: f"\\boxed{{{number}}}",
    "hash": lambda number: f"#### {number}",
    "phrase": lambda number: f"The answer is {number}",
    "last": lambda number: f"then {number}",
}
ORDER = list(FORMS)
LINES = st.lists(st.tuples(st.sampled_from(ORDER), WRITTEN), min_size=1, max_size=8)

R05 = {
    "\\boxed{18}": ("boxed", "18"),
    "\\boxed{ $1,250.50 }": ("boxed", "1250.5"),
    "\\boxed{\\$18}": ("boxed", "18"),
    "\\boxed {7}": ("boxed", "7"),
    "\\boxed{11} or \\boxed{13} \\boxed{x}": ("boxed", "13"),
    "\\boxed{7{,}250}": ("last", "250"),
    "\\boxed{18 apples} #### 5": ("hash", "5"),
    "\\boxed{4": ("last", "4"),
    "#### 26\nYou would get 29.": ("hash", "26"),
    "####5": ("hash", "5"),
    "#### $ 5": ("hash", "5"),
    "##### 5 of 6": ("last", "6"),
    "### 5 of 6": ("last", "6"),
    "####\n5 of 6": ("last", "6"),
    "The ANSWER is 4, not 5": ("phrase", "4"),
    "The answer is: **4** of 5": ("phrase", "4"),
    "Total = 3 * 4 = 12 for 5": ("phrase", "12"),
    "The total is 12 and each is 3": ("phrase", "3"),
    "the profit would then = \\$540 in 3 days": ("phrase", "540"),
    "The result is (57). Or 58": ("last", "58"),
    "Answer: 63 of 64": ("last", "64"),
    "The answers are 5 of 6": ("last", "6"),
    "The answer\nis 5 of 6": ("last", "6"),
    "The answer is\n5 of 6": ("last", "6"),
    "The total fell. It is 5 of 6": ("last", "6"),
    "the total v1.2 is 5 of 6": ("phrase", "5"),
    "total >= 5 of 6": ("last", "6"),
    "subtotal = 5 of 6": ("last", "6"),
    f"answer {'x' * 78} is 5 of 6": ("phrase", "5"),
    f"answer {'x' * 79} is 5 of 6": ("last", "6"),
    "\u7b54\u6848answer is 5 of 6": ("phrase", "5"),
    "This is 5 of 6": ("last", "6"),
    "\u2212\uff14\uff12 and 7": ("last", "7"),
}


@pytest.mark.parametrize(("text", "expected"), R05.items())
def test_round_05_reads(text, expected):
    """Each rule takes what the documented pattern takes and nothing else (R05 5)."""
    found = numeric_r05(text)
    assert (found.method, found.value) == expected


@FIXED
@given(LINES)
def test_the_highest_rule_with_a_hit_wins_and_its_last_hit_counts(lines):
    """The result is a function of clause 5's order: neither lower rules nor earlier hits have a say."""
    found = numeric_r05("\n".join(FORMS[form](number) for form, number in lines))
    best = min((form for form, _ in lines), key=ORDER.index)
    value = [number for form, number in lines if form == best][-1]
    assert (found.method, found.value, found.marker) == (best, plain_number(value), best != "last")


@FIXED
@given(st.text(), WRITTEN, st.text(st.characters(exclude_characters="\\")))
def test_a_box_always_wins(before, number, after):
    """Whatever stands around it, the last boxed number is the answer."""
    found = numeric_r05(f"{before}\\boxed{{{number}}}{after}")
    assert (found.method, found.value) == ("boxed", plain_number(number))


@pytest.mark.parametrize("rule", NUMERIC_RULES)
@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1,450,000", "1450000"),
        ("31.00", "31"),
        ("31.50", "31.5"),
        ("007", "7"),
        ("-0", "0"),
        ("+0", "0"),
        ("-0.00", "0"),
        ("+5", "5"),
        ("9" * 60 + ".10", "9" * 60 + ".1"),
        ("1" + "0" * 40, "1" + "0" * 40),
        ("0." + "0" * 40 + "1", "0." + "0" * 40 + "1"),
    ],
)
def test_numbers_are_normalised_exactly(rule, written, value):
    """Commas and trailing zeros go, zero has no sign, no digit is rounded away and no exponent is written."""
    assert NUMERIC_RULES[rule](f"#### {written}").value == value


@pytest.mark.parametrize("text", ["", "I cannot solve this.", "\u56db\u5341\u4e8c", "\\boxed{x}", "#### none"])
@pytest.mark.parametrize("rule", NUMERIC_RULES)
def test_a_text_without_a_number_is_missing(rule, text):
    """No rule makes a number up; the record says whose rule found none."""
    assert NUMERIC_RULES[rule](text) == NumericMissing(rule=rule)


@FIXED
@given(st.text(), WRITTEN)
def test_round_08_takes_the_last_number_whatever_marks_another(before, number):
    """A marker has no say in R08 6.2, so none is claimed."""
    text = f"{before}\\boxed{{1}} #### 2 the answer is 3 {number}"
    start = len(text) - len(number)
    assert numeric_r08(text) == NumericFound(
        rule="numeric-r08", method="last", value=plain_number(number), marker=False, start=start, end=len(text)
    )


@pytest.mark.parametrize("rule", NUMERIC_RULES)
def test_the_span_is_the_numbers(rule):
    """Start and end are code points of the text as written: what was read can be shown."""
    text = "\U0001f9ee\u200b \u7b54 #### -1,234.50"
    found = NUMERIC_RULES[rule](text)
    assert (text[found.start : found.end], found.value, found.rule) == ("-1,234.50", "-1234.5", rule)


@pytest.mark.parametrize(
    "text",
    [
        "\\boxed{18}",
        "\\boxed{\\text{no {real} solution}} and on",
        "I put it in \\boxed{}.",
        "{ \\boxed {x}",
        "#### 5",
        "so\n####",
        "#### Step 2: add",
        "The answer is 5",
        "total = $3",
    ],
)
def test_an_explicit_marker_ends_the_task(text):
    """R05 4.2: a closed box and `####` with or without a number, the phrase with one."""
    assert final_marker_r05(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "So 18",
        "\\boxed{18",
        "\\boxed{\\text{a}",
        "\\boxed{a\\}",
        "boxed{18}",
        "### 5",
        "##### 5",
        "The total is found by adding",
        "The answer: 5",
        "Answer is\n5",
    ],
)
def test_what_is_no_marker(text):
    """An open box may still be going on, other headings are no `####`, and a phrase without its number ends nothing."""
    assert not final_marker_r05(text)


@FIXED
@given(st.text(st.sampled_from("\\boxed{}#### 12is=answer \n\ud800\x00$")))
def test_a_number_with_a_marker_implies_the_terminal(text):
    """What R05 5 extracts by an explicit rule, R05 4.2 counts as a marker, for every text of such pieces."""
    found = numeric_r05(text)
    assert not getattr(found, "marker", False) or final_marker_r05(text)
