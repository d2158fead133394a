"""`number-r04` on texts whose last number is known, its plain form, and the gold number of an answer."""

import json
import os
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import InputError
from harness.evaluate.number import NUMBER_R04, gold_number, last_number_r04, plain_number
from harness.records.ledger import NoNumber, NumberFound

FIXED = settings(deadline=None, derandomize=True)  # no verdict on time, the same cases everywhere

LAST = {
    "The answer is \\boxed{42}.": "42",
    "#### 31": "31",
    "first 7, then 8": "8",
    "$1,234.50.": "1234.5",
    "12,": "12",
    "1,2,3": "123",
    "12,.5": "12.5",
    "5, 6,": "6",
    "3.": "3",
    "1.2.3": "3",
    ".75": "75",
    "31.00": "31",
    "007": "7",
    "+5": "5",
    "-0": "0",
    "-0.00": "0",
    "x=-7": "-7",
    "5-3": "-3",
    "- 3": "3",
    "--3": "-3",
    "2026-05-01": "-1",
    "1/2": "2",
    "5e3": "3",
    "50%": "50",
    "1 000": "0",
    "\u22125": "5",
    "8\u00bd": "8",
    "4\u00b2": "4",
    "12\uff0c5": "5",
    "a1b2c": "2",
    "7 and \uff15 and \u0665": "7",
    "9" * 60 + ".10": "9" * 60 + ".1",
}

NONE = [
    "",
    "no number",
    "\uff14\uff12",
    "\u0664\u0662",
    "\u0968",
    "\u00b2\u00bd",
    "-",
    ",,",
    ".",
    "twelve",
    "\u5341\u4e8c",
]


@pytest.mark.parametrize(("text", "value"), LAST.items())
def test_the_last_number_is_the_published_rules(text, value):
    """The last match of the published pattern, commas dropped, in plain form."""
    assert last_number_r04(text).value == value


@pytest.mark.parametrize("text", NONE)
def test_a_text_without_an_ascii_digit_has_no_number(text):
    """Full-width, Arabic, Devanagari digits, superscripts, fractions and numerals in words are no digits."""
    assert last_number_r04(text) == NoNumber()


def test_the_span_is_where_the_number_was_read():
    """Start and end are code points of the text, so what was read can be shown; one beyond the BMP counts once."""
    text = "\U0001f9ee \u7b54\u6848 1,000 or 2,500."
    assert last_number_r04(text) == NumberFound(value="2500", start=14, end=19)
    assert text[14:19] == "2,500"


WRITTEN = st.from_regex(NUMBER_R04, fullmatch=True)


@FIXED
@given(WRITTEN, WRITTEN)
def test_plain_forms_are_equal_exactly_when_the_decimals_are(one, other):
    """A match is equality of decimal values, whatever the length of the numbers."""
    values = Decimal(one.replace(",", "")), Decimal(other.replace(",", ""))
    assert (plain_number(one) == plain_number(other)) == (values[0] == values[1])


@FIXED
@given(WRITTEN)
def test_the_plain_form_keeps_the_value_and_is_its_own_plain_form(written):
    """No digit is rounded away, and there is one plain form of a value."""
    plain = plain_number(written)
    assert Decimal(plain) == Decimal(written.replace(",", ""))
    assert plain_number(plain) == plain


@FIXED
@given(st.text(), WRITTEN, st.text(st.characters(exclude_characters="0123456789,.")))
def test_what_stands_before_the_last_number_has_no_say(before, written, after):
    """After a space, the last number is read alike whatever stands before it and whatever follows without digits."""
    assert last_number_r04(f"{before} {written}{after}").value == plain_number(written)


@pytest.mark.parametrize("written", ["", "x", "1 ", "1 2", "\uff11", "1.", "1e3"])
def test_plain_number_takes_one_number_only(written):
    """Anything but one whole number is misuse, not a value."""
    with pytest.raises(RuntimeError, match="takes one number"):
        plain_number(written)


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("3 + 4 = <<3+4=7>>7\n#### 7", "7"),
        ("#### 1,450,000", "1450000"),
        ("#### -10", "-10"),
        ("#### 31.00\n", "31"),
        ("####5", "5"),
        ("#### 1\n#### 2", "2"),
    ],
)
def test_the_gold_number_ends_the_answer(answer, value):
    """The number after the last marker, normalised as the last number of a text is."""
    assert gold_number(answer) == value


@pytest.mark.parametrize(
    "answer", ["", "the answer is 7", "#### ", "#### 7 apples", "#### $7", "#### 7\nmore", "#### \uff17"]
)
def test_an_answer_without_a_gold_number_is_refused(answer):
    """A broken gold answer is bad input: it is never read as some other number or as none."""
    with pytest.raises(InputError, match=r"^line 3: expected an answer that ends in `#### N`, found an end of"):
        gold_number(answer, where="line 3")


@pytest.mark.inputs
def test_every_registered_answer_has_a_gold_number():
    """All 1,319 answers of the registered file end in one number; two are negative, commas are dropped."""
    file = Path(os.environ["HARNESS_INPUTS"]) / "gsm8k_test.jsonl"
    answers = [json.loads(line)["answer"] for line in file.read_text(encoding="utf-8").splitlines()]
    golds = [gold_number(answer) for answer in answers]
    assert (len(golds), sum(gold.startswith("-") for gold in golds), "1450000" in golds) == (1319, 2, True)
