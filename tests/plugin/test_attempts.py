"""Every formal session is entered before it generates, and its end after: passed, failed, killed, resumed, refused."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from pregate_support.faults import faulty
from pregate_support.fixtures import tree_of
from pregate_support.mini import DOMAINS, MINI, copy_tree, run_gates

from harness.canon import canonical_bytes, sha256_hex
from harness.errors import JournalError
from harness.journal.attempts_file import NAME, AttemptsFile, attempt_rows, chained
from harness.journal.folder import RunFolder
from harness.places import Places
from harness.protocols.load import load_protocol
from harness.records.attempts import (
    Attempt,
    Attempts,
    NextPlacement,
    NoPlacement,
    OutOfMemory,
    UnsaidRequest,
    WhileLoading,
)
from harness.run.attempting import enter_beginning, enter_end, enter_refusal, outcome_of, require_enterable


def entered(tree: Path):
    """The entries of a tree's mini protocol."""
    file = AttemptsFile(tree / "reports" / MINI / NAME)
    return chained(file.read(), file.path)


def test_a_formal_session_enters_its_beginning_and_its_end(formal_run: Path) -> None:
    """Two lines; the run keeps the first, its audit record lists that file, the second names the audit record."""
    begun, ended = entered(tree_of(formal_run))
    kept = (formal_run / NAME).read_bytes()
    audit = json.loads((formal_run / "audit.json").read_bytes())
    assert kept == canonical_bytes(begun) + b"\n"
    assert audit["files"][NAME] == sha256_hex(kept)
    assert (begun.run_id, begun.how, begun.units_there, begun.port) == ("formal-1", "new", 0, False)
    assert begun.protocol_digest == audit["protocol_digest"]
    assert (ended.outcome, ended.reason) == ("passed", "")
    assert ended.audit_sha256 == sha256_hex((formal_run / "audit.json").read_bytes())
    spec = json.loads((formal_run / "spec.json").read_bytes())
    assert ended.placements == (spec["placement"],)


def test_the_line_is_there_before_any_unit(formal_run: Path) -> None:
    """By the moments that the records themselves give."""
    begun, _ = entered(tree_of(formal_run))
    journals = [json.loads(path.read_bytes()) for path in (formal_run / "journal").glob("*.json")]
    loaded = [one["observation"]["process"]["model_loaded_us"] for one in journals]
    assert loaded
    assert begun.at_us < min(loaded)


def test_smoke_sessions_are_not_entered(formal_run: Path) -> None:
    """The smoke run that the formal session started has no line of its own."""
    smoke = json.loads((formal_run / "smoke.json").read_bytes())["run_id"]
    assert smoke not in {one.run_id for one in entered(tree_of(formal_run))}
    assert not (formal_run.parent / smoke / NAME).exists()


@pytest.fixture(scope="module")
def killed(formal_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A second formal run in a copy of the tree, killed after its first unit."""
    tree = copy_tree(tree_of(formal_run), tmp_path_factory.mktemp("attempts") / "tree")
    arguments, env = faulty(tree / "faults", "kill")
    result = run_gates(tree, "-m", "formal", "--run", f"reports/{MINI}/formal-2", *arguments, env=env)
    if result.code != -9:
        pytest.fail(f"the session wasn't killed: {result.code} {result.output}")
    return tree / "reports" / MINI / "formal-2"


def test_a_killed_run_has_no_end_and_is_on_record(killed: Path) -> None:
    """Whoever counts finds two attempts; then it goes on, under the same name, to its end."""
    rows = attempt_rows(entered(tree_of(killed)))
    assert [(row.run_id, row.outcome) for row in rows] == [("formal-1", "passed"), ("formal-2", "no end on record")]
    kept = (killed / NAME).read_bytes()
    result = run_gates(tree_of(killed), "-m", "formal", "--run", str(killed))
    assert result.code == 0, result.output
    first, second = attempt_rows(entered(tree_of(killed)))
    assert (second.run_id, second.outcome, second.resumed) == ("formal-2", "passed", 1)
    assert (killed / NAME).read_bytes() == kept
    assert first.outcome == "passed"


def asked():
    """What a formal session asks for."""
    return SimpleNamespace(tier="formal", port=False, grid="formal", domains=DOMAINS)


def opened(run: Path):
    """What a session knows of a run when it enters it: protocol, folder, request, tree."""
    tree = Places(tree_of(run))
    return load_protocol(MINI, tree), RunFolder(run), asked(), tree


def test_a_run_that_is_judged_again_enters_nothing(fresh_run: Path) -> None:
    """It started nothing, and its end is on record."""
    loaded, folder, request, tree = opened(fresh_run)
    before = entered(tree_of(fresh_run))
    enter_beginning(loaded, folder, request, tree)
    enter_end(loaded, folder, tree, None, ())
    assert entered(tree_of(fresh_run)) == before


def test_an_end_that_was_lost_is_entered_by_the_next_session(fresh_run: Path) -> None:
    """The session was killed between its audit record and its last line."""
    loaded, folder, _, tree = opened(fresh_run)
    file = AttemptsFile(fresh_run.parent / NAME)
    file.path.write_bytes((fresh_run / NAME).read_bytes())
    enter_end(loaded, folder, tree, None, ("killed",))
    assert [one.outcome for one in entered(tree_of(fresh_run))[1:]] == ["failed"]


@pytest.mark.parametrize("damage", ["gone", "cut", "anew"])
def test_a_run_does_not_go_on_without_its_own_lines(fresh_run: Path, damage: str) -> None:
    """Whoever removes attempts can't go on with a run that came after them."""
    loaded, folder, request, tree = opened(fresh_run)
    (fresh_run / "ledger.json").unlink()
    file = AttemptsFile(fresh_run.parent / NAME)
    if damage == "gone":
        file.path.unlink()
    elif damage == "cut":
        file.path.write_bytes(b"")
    else:
        file.path.unlink()
        enter_refusal(loaded, "formal-0", tree, port=False, reason=ValueError("x"))
    with pytest.raises(JournalError, match=f"expected the 1 lines that formal-1/{NAME} holds"):
        enter_beginning(loaded, folder, request, tree)


def test_a_refusal_says_its_reason_in_one_line(fresh_run: Path) -> None:
    """ASCII, at most 500 characters."""
    loaded, _, _, tree = opened(fresh_run)
    enter_refusal(loaded, "formal-9", tree, port=True, reason=ValueError("two\nlines \u202e" + "x" * 900))
    last = entered(tree_of(fresh_run))[-1]
    assert (last.run_id, last.port, last.reason[:22]) == ("formal-9", True, "two lines \\u202exxxxxx")
    assert len(last.reason) == 500


def test_where_nothing_can_be_written_a_refusal_stays_the_first_error(fresh_run: Path) -> None:
    """No second error hides it."""
    loaded, _, _, tree = opened(fresh_run)
    (fresh_run.parent / NAME).unlink()
    (fresh_run.parent / NAME).mkdir()
    enter_refusal(loaded, "formal-9", tree, port=True, reason=ValueError("x"))


def out_of_memory(digest: str) -> OutOfMemory:
    """A failure while the model loaded."""
    return OutOfMemory(
        schema=1,
        protocol_digest=digest,
        placement="one",
        stage=WhileLoading(pid=1, started_us=1),
        requested=UnsaidRequest(),
        message="out of memory",
        memory_bytes={},
    )


@pytest.mark.parametrize("left", ["oom.json", "attempts.json"])
def test_memory_that_ran_out_is_said(fresh_run: Path, left: str) -> None:
    """An attempt that is over, or one that has no placement left; a next placement is no end."""
    loaded, folder, _, tree = opened(fresh_run)
    failure = out_of_memory(loaded.digest)
    assert outcome_of(folder, None) == "failed"
    if left == "oom.json":
        folder.file(left).write_bytes(canonical_bytes(failure))
    else:
        made = [
            Attempt(number=1, placement="one", units_landed=0, out_of_memory=failure, checks=(), next=following)
            for following in (NextPlacement(id="two"), NoPlacement(reason="none"))
        ]
        for attempt in made:
            record = Attempts(schema=1, protocol_digest=loaded.digest, attempts=(attempt,))
            folder.file(left).write_bytes(canonical_bytes(record))
            expected = "failed" if isinstance(attempt.next, NextPlacement) else "out_of_memory"
            assert outcome_of(folder, None) == expected
        AttemptsFile(fresh_run.parent / NAME).path.write_bytes((fresh_run / NAME).read_bytes())
        enter_end(loaded, folder, tree, None, ("memory",))
        last = entered(tree_of(fresh_run))[-1]
        spec = json.loads((fresh_run / "spec.json").read_bytes())
        assert (last.outcome, last.placements) == ("out_of_memory", ("one", spec["placement"]))
    assert outcome_of(folder, None) == "out_of_memory"


def test_units_that_no_session_entered_are_not_judged(fresh_run: Path) -> None:
    """A grid that was made off the record, with a ledger or without, is no run of a formal session."""
    loaded, folder, request, tree = opened(fresh_run)
    (fresh_run / NAME).unlink()
    for name in ("audit.json", "ledger.json", "run.json"):
        with pytest.raises(JournalError, match=f"a run that began on record, found files, and no {NAME}"):
            require_enterable(loaded, folder, request, tree)
        folder.file(name).unlink()


@pytest.mark.parametrize("gone", ["audit.json", "a unit"])
def test_a_ledger_alone_does_not_make_a_run_judged(fresh_run: Path, gone: str) -> None:
    """Units that are made again, or a run that nobody judged, are entered as going on."""
    loaded, folder, request, tree = opened(fresh_run)
    there = sorted((fresh_run / "journal").glob("*.json"))
    (folder.file(gone) if gone == "audit.json" else there.pop()).unlink()
    enter_beginning(loaded, folder, request, tree)
    last = entered(tree_of(fresh_run))[-1]
    assert (last.how, last.units_there) == ("resumed", len(there))


def test_a_name_that_is_on_record_is_not_begun_again(fresh_run: Path) -> None:
    """The folder was removed: its attempt stays, and another needs another name."""
    loaded, folder, request, tree = opened(fresh_run)
    before = entered(tree_of(fresh_run))
    shutil.rmtree(fresh_run)
    folder.lock("session")
    with pytest.raises(JournalError, match="a run name that isn't on record, found formal-1, which began before"):
        enter_beginning(loaded, folder, request, tree)
    assert entered(tree_of(fresh_run)) == before


@pytest.mark.parametrize("how", ["renamed", "another's"])
def test_the_lines_of_another_run_do_not_begin_this_one(fresh_run: Path, how: str) -> None:
    """A folder under a new name, and a new folder with another run's lines."""
    loaded, _, request, tree = opened(fresh_run)
    other = fresh_run.with_name("formal-2")
    if how == "renamed":
        fresh_run.rename(other)
    else:
        other.mkdir()
        shutil.copyfile(fresh_run / NAME, other / NAME)
    with pytest.raises(JournalError, match="that of formal-2 of mini-behavior, found that of formal-1"):
        require_enterable(loaded, RunFolder(other), request, tree)


def test_a_broken_file_does_not_hide_a_refusal(fresh_run: Path) -> None:
    """The session says what refused it."""
    loaded, _, _, tree = opened(fresh_run)
    (fresh_run.parent / NAME).write_bytes(b"{}\n")
    enter_refusal(loaded, "formal-9", tree, port=True, reason=ValueError("x"))
    assert (fresh_run.parent / NAME).read_bytes() == b"{}\n"
