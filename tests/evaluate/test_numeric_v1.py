"""`numeric-v1`: which number of a text it takes. One group of cases, one decision."""

import pytest

from harness.evaluate.numeric import numeric_v1
from harness.records.evaluation import NumericMissing


def read(text):
    """Method and value, or None."""
    found = numeric_v1(text)
    return None if isinstance(found, NumericMissing) else (found.method, found.value)


def value(text):
    """The value alone."""
    found = read(text)
    return found and found[1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\\boxed{\\text{42}}", "42"),
        ("\\boxed{\\mathbf{42}}", "42"),
        ("\\boxed{x = 5}", "5"),
        ("\\boxed{18 \\text{ dollars}}", "18"),
        ("\\boxed{\\left( 57 \\right)}", "57"),
        ("\\boxed{35\\%}", "35"),
        ("\\boxed{\\$540.00}", "540"),
        ("\\boxed{USD 540}", "540"),
        ("\\boxed{60 km/h}", "60"),
        ("\\boxed{25\\text{ cm}^2}", "25"),
        ("\\boxed{42^\\circ}", "42"),
        ("\\boxed{\\approx 3.14}", "3.14"),
        ("\\boxed{3 \\times 4 = 12}", "12"),
        ("\\boxed{42 = 6 \\cdot 7}", "42"),
        ("\\boxed{- 5}", "-5"),
        ("\\boxed{\n42\n}", "42"),
        ("\\boxed{\\boxed{42}}", "42"),
        ("\\boxed{1 234 567}", "1234567"),
        ("\\boxed{\\textbf{(B) } 42}", "42"),
        ("\\fbox{42}", "42"),
        ("\\boxed 42", "42"),
        ("\x08oxed{42} and 9", "42"),
        ("boxed{42} and 9", "42"),
    ],
)
def test_a_box_states_one_number_with_what_surrounds_it(text, expected):
    """Words, units, currency, font commands, `x =` and working up to `=` don't hide a box's number."""
    assert read(text) == ("boxed", expected)


@pytest.mark.parametrize(
    "inside",
    ["3, 4", "(3, 4)", "5 \\text{ or } 7", "x = 3, y = 4", "2\\sqrt{3}", "2\\pi", "5 + x", "3 + 4", "10-20", "10 to 20",
     "3:4", "5:30", "\\pm 5", "2^{10}", "\\frac{1}{0}", "\\text{yes}", "", "2024-05-01", "5!"],
)  # fmt: skip
def test_a_box_that_states_no_single_number_is_passed_over(inside):
    """Lists, ranges, ratios, dates, roots, unworked expressions and words in a box leave the earlier box standing."""
    assert read(f"\\boxed{{11}} then \\boxed{{{inside}}} end") == ("boxed", "11")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("First \\boxed{11}, no wait: \\boxed{13}", ("boxed", "13")),
        ("\\boxed{11}. Wait, that is wrong. The correct answer is 13.", ("phrase", "13")),
        ("\\boxed{11}. The answer is 13 less.", ("boxed", "11")),
        ("Example: \\boxed{5}\nMine: #### 9", ("hash", "9")),
        ("#### 9\nso \\boxed{5}", ("boxed", "5")),
        ("#### 26\nIf you had 3 more, you would get 29.", ("hash", "26")),
        ("<answer>42</answer> of 50", ("tag", "42")),
        ("<answer>She has 42</answer> of 50", ("tag", "42")),
        ("\\boxed{42} is the answer to 2", ("boxed", "42")),
        ("The answer is 26. If so, the answer would be 29.", ("phrase", "26")),
        ("The answer is 11. No, the answer is 13.", ("phrase", "13")),
        ("so $\\boxed{42$ of 50", ("open_box", "42")),
        ("\\boxed{11} or \\boxed{4", ("open_box", "4")),
        ("\\boxed{42\nof 50", ("open_box", "42")),
        ("\\boxed{12 no, \\boxed{13}", ("boxed", "13")),
    ],
)
def test_the_last_explicit_marker_counts(text, expected):
    """Boxes, `####` and tags rank by place; a phrase overrides them only after a retraction."""
    assert read(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#### 18 dollars", "18"),
        ("####18", "18"),
        ("#### $18.50", "18.5"),
        ("#### **18**", "18"),
        ("####\n18", "18"),
        ("#### 3 * 4 = 12", "12"),
        ("#### x = 12", "12"),
    ],
)
def test_what_follows_four_hashes(text, expected):
    """The number next to the marker, on its line or the next one, of an equation its result."""
    assert read(text) == ("hash", expected)


@pytest.mark.parametrize(
    "text", ["#### 3. Compute\nIt is 20", "#### Step 3\nIt is 20", "##### 3\nIt is 20", "### 3\n20"]
)
def test_a_heading_is_no_answer(text):
    """`####` before a numbered title with a body, before words, and other depths of heading mark nothing."""
    assert value(text) == "20"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**Answer: 63** of 64", "63"),
        ("ANSWER: 618", "618"),
        ("**Answer**: 63 of 64", "63"),
        ("Final Answer:\n\n42\nof 50", "42"),
        ("**Final Answer**\n\n$42$ of 50", "42"),
        ("The answer is: **$1,250** of 1,300", "1250"),
        ("The answer is \\(42\\) of 50", "42"),
        ("The answer to question 2 is 42 of 50", "42"),
        ("The answer is x = 42, of 50", "42"),
        ("The answer is 3 + 4 = 7 of 50", "7"),
        ("The answer is 42 (= 6 \u00d7 7).", "42"),
        ("The answer is about 42 of 50", "42"),
        ("The answer is that she has 42 apples. 3 more", "42"),
        ("Answer: She has 42 apples. 3 more", "42"),
        ('{"answer": 42, "n": 50}', "42"),
        ("Answer = 1/3 of 50", "1/3"),
        ("\u7b54\u6848\u662f \uff14\uff12\uff0c\u517150", "42"),
        ("\u7b54\u6848\u4e3a 42\u3002\u517150", "42"),
        ("\u7b54\u6848\uff1a42\uff0c\u517150", "42"),
        ("\u6700\u7ec8\u7b54\u6848\uff1a**42**\uff0c\u517150", "42"),
        ("\u7b54\uff1a\u5c0f\u660e\u5171\u670942\u4e2a\u82f9\u679c\u3002\u8fd8\u67093\u4e2a", "42"),
    ],
)
def test_an_answer_phrase_marks_the_number_next_to_it(text, expected):
    """English and Chinese answer phrases, in any markup; after a colon the number may stand within the sentence."""
    found = numeric_v1(text)
    assert (found.method, found.value, found.marker) == ("phrase", expected, True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The answer is not 5 but 6.", "6"),
        ("\u7b54\u6848\u4e0d\u662f5\uff0c\u800c\u662f6", "6"),
        ("The answer isn't 5. So 6", "6"),
        ("The answer would be: 5. So 6", "6"),
        ("The answer is found by adding 3 and 4. So 6", "6"),
        ("The answer is between 3 and 4. So 6", "6"),
        ("The answers of 5 pupils. So 6", "6"),
        ("\u56de\u7b54: 5\u4e2a\u95ee\u9898\u3002\u51716", "6"),
    ],
)
def test_a_phrase_that_states_no_number_marks_nothing(text, expected):
    """A negation, a condition or a way to find the answer isn't the answer."""
    found = numeric_v1(text)
    assert (found.value, found.marker) == (expected, False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The total is 12,450 dollars.", ("statement", "12450")),
        ("Total = 48km", ("statement", "48")),
        ("It takes 360/30 = 12 days to be 600 inches.", ("statement", "12")),
        ("The total is 12 for 3, so each gets 4.", ("last", "4")),
        ("The total is 50. She keeps 30.", ("last", "30")),
        ("So 84 pages remain, all told, I think,", ("last", "84")),
    ],
)
def test_a_statement_in_the_last_sentence_goes_before_what_qualifies_it(text, expected):
    """What a total `is` or an equation gives beats a later number of its clause, never one of a later clause."""
    assert read(text) == expected


@pytest.mark.parametrize(
    "after",
    ["\nStep 2:", "\n2. Then", "\n(2) Then", "\n**2.** Then", " in 3 days.", " on 2024-05-01.", " on 5/12/2024.",
     " by May 5, 2024.", " by 5 May.", " at 10:30.", ", ratio 3:4.", ", version 1.2.3.", ", the 3rd.", " in x2.",
     " of H2O.", " (Question 7).", " in Chapter 7.", ", see #7.", " in 2024.", ", 10-20.", ", 10\u201320.", ", x_{12}.",
     ", \u00b15.", ", 3^7.", "\u3002\u7b2c3\u5929", "\u30022024\u5e745\u67081\u65e5"],
)  # fmt: skip
def test_labels_dates_and_times_are_no_answers(after):
    """Without a marker, the last number that counts something is taken, not one that names, dates or orders."""
    assert read(f"She has 48{after}") == ("last", "48")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Step 2:", ("last_label", "2")),
        ("the 3rd", ("last_label", "3")),
        ("10-20", ("last_label", "20")),
        ("She finishes in 3 days.", ("last", "3")),
        ("42. ", ("last", "42")),
        ("So it is\n42.", ("last", "42")),
    ],
)
def test_a_label_counts_where_nothing_else_stands(text, expected):
    """A text's only number is found, under a method that says how weak it is."""
    assert read(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", " ", "I cannot solve this.", "\\boxed{\\text{no solution}} after 5", "The answer is undefined, not 5",
     "#### none of 5", "Answer: cannot be determined from 5", "\u7b54\u6848\uff1a\u65e0\u89e3 5", "10:30",
     "1e999999999", "2024-05-01", "2^10", "\\frac{1}{0}", "1/0", "-", ",,", "\x00", "\ud800"],
)  # fmt: skip
def test_nothing_is_missing(text):
    """No number, a marker that says there is no answer, and only dates, times, powers or zero division: missing."""
    assert read(text) is None


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("\u200b#### \u200b\u221214", "\u221214"),
        ("\U0001f9ee $-\u200b5 now", "-\u200b5"),
        ("\\boxed{7{,}250}", "7{,}250"),
        ("\\boxed{\\frac{84}{2}}", "\\frac{84}{2}"),
        ("The total is $1,250 for 3", "1,250"),
    ],
)
def test_the_span_is_the_number_as_written(text, span):
    """Positions are those of the text as given, whatever was folded or dropped to read it."""
    found = numeric_v1(text)
    assert text[found.start : found.end] == span


@pytest.mark.parametrize(
    ("text", "marker"),
    [
        ("\\boxed{4}", True),
        ("#### 4", True),
        ("<answer>4</answer>", True),
        ("Answer: 4", True),
        ("\\boxed{4", False),
        ("The total is 4", False),
        ("So 4", False),
        ("Step 4", False),
    ],
)
def test_only_a_whole_marker_is_a_marker(text, marker):
    """A box that never closes may be cut off, a total may be halfway: neither claims a final answer."""
    assert numeric_v1(text).marker is marker
