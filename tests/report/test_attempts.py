"""Attempts in the page: all that are on record, also those that didn't pass; and it can be made again after others."""

import shutil

import msgspec
import pytest

from harness.claims.view import RunView, judged_view
from harness.journal.attempts_file import NAME, AttemptsFile
from harness.journal.folder import RunFolder
from harness.places import places
from harness.records.attempts_file import Begun, Ended, Refused
from harness.report.attempts import attempts
from harness.report.make import page_of, report_bytes, write_report
from harness.snapshots.store import read_audit, run_files
from harness.verify.ground import Ground
from harness.verify.page import report_holds

from .conftest import write_audit

COMMON = {"schema": 1, "at_us": 1_700_000_000_000_000, "protocol": "nano-completion", "protocol_digest": "d"}
REASON = "<script>alert(1)</script> no input"


def begun(run: str):
    """A maker of a beginning."""
    return lambda number, previous: Begun(
        **COMMON, number=number, previous_sha256=previous, run_id=run, port=False, how="new", units_there=0
    )


def refused(number: int, previous: str) -> Refused:
    """A refusal with hostile words."""
    return Refused(**COMMON, number=number, previous_sha256=previous, run_id="formal-0", port=True, reason=REASON)


def ended(number: int, previous: str) -> Ended:
    """The run's end."""
    return Ended(
        **COMMON,
        number=number,
        previous_sha256=previous,
        run_id="formal-1",
        outcome="failed",
        placements=("nano-resident", "nano-disk"),
        audit_sha256="a",
        reason="a gate",
    )


@pytest.fixture
def entered(hand_run, tmp_path):
    """The run, third on record after a killed and a refused one, with its end; and the file beside it."""
    run, file = shutil.copytree(hand_run, tmp_path / "formal-1"), AttemptsFile(tmp_path / NAME)
    for make in (begun("formal-killed"), refused):
        file.append(make)
    (run / NAME).write_bytes(file.append(begun("formal-1")))
    file.append(ended)
    resealed(run)
    return run, file


def held(run):
    """State of the page in a verification."""
    view = judged_view(run)
    (line,) = report_holds(Ground(view.loaded, view.folder, view.audit, places()))
    return line.state


def test_every_attempt_is_in_the_page(entered, reading):
    """Killed, refused and failed ones, with reason and placements; the page says how many lines there were."""
    run, _ = entered
    html = write_report(run).read_text()
    section = reading.text_in(reading.parsed(html).find(".//section[@id='attempts']"))
    for said in ("formal-killed", "no end on record", "formal-0 (port)", "refused", "nano-resident, nano-disk", REASON):
        assert said in section
    assert "first 4 lines; this run begins on line 3" in section
    assert '<meta name="attempts" content="4">' in html
    assert "<script>alert" not in html


def test_a_page_is_made_again_after_later_attempts(entered):
    """From as many lines as it says that it shows; written anew it shows the later ones."""
    run, file = entered
    first = write_report(run).read_bytes()
    assert held(run) == "holds"
    file.append(begun("formal-2"))
    assert held(run) == "holds"
    assert write_report(run).read_bytes() != first
    assert held(run) == "holds"


def test_a_page_that_hides_an_attempt_is_found(entered):
    """A row taken out, or fewer lines said than shown."""
    run, _ = entered
    data = write_report(run).read_bytes()
    (run / "report.html").write_bytes(data.replace(b'content="4"', b'content="3"', 1))
    assert held(run) == "fails"
    (run / "report.html").write_bytes(data.replace(b"formal-killed", b"formal-kilied", 1))
    assert held(run) == "fails"


def test_a_page_of_lines_that_are_not_here_cannot_be_checked(entered):
    """The attempts file wasn't sent along."""
    run, file = entered
    write_report(run)
    file.path.unlink()
    assert held(run) == "not checkable"


def test_a_page_of_fewer_lines_than_the_run_keeps_is_found(entered):
    """Made from too few on purpose: those before the run aren't in it."""
    run, _ = entered
    for shown in (0, 2):
        (run / "report.html").write_bytes(report_bytes(judged_view(run), places(), shown))
        assert held(run) == "fails"
    (run / "report.html").write_bytes(report_bytes(judged_view(run), places(), 3))
    assert held(run) == "holds"


def test_a_broken_list_is_named_and_the_rest_is_shown(entered):
    """The run's own lines no longer hold: the page says so at its top."""
    run, file = entered
    file.path.unlink()
    (run / NAME).write_bytes((run / NAME).read_bytes().replace(b'"number":2', b'"number":7', 1))
    view = resealed(run)
    page = page_of(view)
    assert page.attempts is None
    assert any(one.startswith("attempts: expected number 2") for one in page.absent)


def resealed(run) -> RunView:
    """The run under an audit record over its files as they are."""
    folder = RunFolder(run)
    write_audit(folder, msgspec.structs.replace(read_audit(folder), files=run_files(folder)))
    return judged_view(run)


def test_a_smoke_page_says_that_it_is_not_entered(hand_view):
    """Only formal runs are."""
    smoke = RunView(hand_view.loaded, hand_view.folder, msgspec.structs.replace(hand_view.audit, tier="smoke"))
    section, count = attempts(smoke, None)
    assert count == 0
    assert "this is a smoke run" in section.blocks[0].text
    assert "isn't among them" in attempts(hand_view, None)[0].blocks[0].text
