"""How often a run was tried, in a write-up: what isn't on record is named."""

import pytest

from harness.claims.attempted import Tried, overstated, tried
from harness.claims.judge import claims_of
from harness.claims.writeup import check_text
from harness.journal.attempts_file import NAME, AttemptsFile
from harness.records.attempts_file import Begun, Refused

COMMON = {"schema": 1, "at_us": 1_700_000_000_000_000, "protocol": "p", "protocol_digest": "d", "port": False}
ONLY = [
    "We ran the protocol once and it passed.",
    "The experiment was run exactly once.",
    "This was our only attempt.",
    "There was no earlier attempt.",
    "协议只运行了一次。",
    "没有失败的尝试。",
]
FIRST = [
    "The result was obtained at the first attempt.",
    "Every gate passed on the first run.",
    "一次运行即通过。",
    "首次尝试即通过。",
]


def said(text: str, number: int, of: int) -> list[str]:
    """What a sentence says of attempts that isn't on record."""
    return [text[start:end] for start, end in overstated(text, Tried(number, of))]


@pytest.mark.parametrize("text", ONLY)
def test_an_only_attempt_is_one_of_one(text):
    """Also the first of two wasn't the only one, and a run that isn't on record says nothing of it."""
    assert said(text, 1, 1) == []
    assert len(said(text, 1, 2)) == 1
    assert len(said(text, 0, 0)) == 1


@pytest.mark.parametrize("text", FIRST)
def test_a_first_attempt_is_number_one(text):
    """Whatever came after it."""
    assert said(text, 1, 2) == []
    assert len(said(text, 2, 2)) == 1


@pytest.mark.parametrize("text", ["This is attempt 2 of 3 on record.", "There were 3 attempts.", "共 3 次尝试。"])
def test_numbers_of_attempts_are_those_on_record(text):
    """Which one, and how many."""
    assert said(text, 2, 3) == []
    assert len(said(text, 2, 4)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "Each program ran once in its own container.",
        "At once.",
        "One session per worker.",
        "The first 3 lines.",
        "程序运行一次。",
    ],
)
def test_other_firsts_and_onces_are_left_alone(text):
    """Nothing is said of attempts."""
    assert said(text, 2, 3) == []


def test_a_run_is_counted_by_the_file_beside_it(make_view, registration):
    """A refusal, then this run; its write-up is held against both."""
    view = make_view()
    file = AttemptsFile(view.folder.path.parent / NAME)
    text = "We ran the protocol once. This was not our first attempt."
    assert tried(view) == Tried(0, 0)
    file.append(
        lambda number, previous: Refused(**COMMON, number=number, previous_sha256=previous, run_id="x", reason="y")
    )
    lines = file.append(
        lambda number, previous: Begun(
            **COMMON, number=number, previous_sha256=previous, run_id=view.audit.run_id, how="new", units_there=0
        )
    )
    view.folder.file(NAME).write_bytes(lines)
    assert tried(view) == Tried(2, 2)
    found = check_text(text, view, claims_of(view, registration), registration)
    assert [(one.what, one.expected, one.found) for one in found] == [
        ("attempts", "attempt 2 of 2 on record", "ran the protocol once")
    ]
