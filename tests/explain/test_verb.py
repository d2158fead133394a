"""`python -m harness explain`: exit codes, sources, a record, one sentence at the end, and a model only for --rerun."""

import json
import os
import subprocess
import sys

import pytest
from pregate_support.absent import ABSENT
from typer.testing import CliRunner

from harness.__main__ import app
from harness.canon import canonical_bytes
from harness.cli import show
from harness.errors import JournalError
from harness.places import places
from harness.records.base import decode_json
from harness.records.explanation import Divergence, Explanation, NoSearch, SideRerun

UNIT = "code-00-*-greedy.json"
SOURCES = {"record", "rerun"}


def harness(*words, program=ABSENT):
    """The verb in a fresh interpreter without model, engine and network: exit code, output, errors."""
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [sys.executable, "-c", program, "explain", *map(str, words)], env=environment, capture_output=True, check=False
    )
    return done.returncode, done.stdout, done.stderr.decode()


def record_of(out):
    """The one document on stdout, strict and canonical."""
    record = decode_json(out, Explanation, where="stdout", error=JournalError, todo="")
    assert canonical_bytes(record) == out
    return record


@pytest.fixture
def parted(frozen, token):
    """A copy of nano-behavior's frozen results in which two cells say another token."""
    copy = frozen("nano-behavior")
    copy.change(UNIT, lambda unit: [token(5, cell=0)(unit), token(2, cell=3)(unit)])
    return copy


def test_equal_exits_with_0(frozen):
    """No row, and the sentence says so."""
    copy = frozen("nano-behavior")
    code, out, errors = harness(copy.seal({}), copy.original)
    lines = out.decode("ascii").splitlines()
    assert (code, errors, len(lines)) == (0, "", 4)
    assert lines[0] == "equal: 128 of 128 cells equal"
    assert "are equal in 128 of 128 cells; not compared: placement" in lines[-1]


def test_different_exits_with_1_and_every_line_has_its_source(parted):
    """The sides, then rows that begin with `record` or `rerun`, then one sentence with the cell and both tokens."""
    code, out, errors = harness(parted.original, parted.folder)
    first, a, b, *rows, sentence = out.decode("ascii").splitlines()
    assert (code, errors) == (1, "")
    assert first == "different: 126 of 128 cells equal, 2 differ"
    assert (a[:3], b[:3]) == ("A  ", "B  ")
    assert {row.split("\t")[0] for row in rows} == SOURCES
    assert "record\tfirst cell in the grid's order: nano-code/004 greedy s0_eos\tfrom step 5\tA: " in "\n".join(rows)
    assert "rerun\tstep\tnot made\tnot asked for: --rerun" in "\n".join(rows)
    assert "nano-code/004 greedy s1_bos at step 2, counted from 0: A has " in sentence
    assert "B has 300 'Add'" in sentence
    assert sentence.endswith("nothing was made again (not asked for: --rerun).")


def test_a_machine_reads_the_record(parted, tmp_path):
    """On stdout and in the file the same bytes; with a cell named it is that one."""
    file = tmp_path / "folder" / "explained.json"
    words = (parted.original, parted.folder, "--json", "--out", file, "--cell", "nano-code/004", "greedy", "s0_eos")
    code, out, errors = harness(*words)
    record = record_of(out)
    assert (code, errors, file.read_bytes() == out) == (1, "", True)
    assert isinstance(record.found, Divergence)
    assert record.found.explained == record.found.first != record.found.earliest


def test_what_cannot_be_explained_exits_with_2(parted, tmp_path):
    """One line on stderr and nothing on stdout: one folder twice, another kind, nothing there, a cell that is equal."""
    equal = ("--cell", "nano-code/004", "greedy", "s1_eos")
    for words in (
        (parted.folder, parted.folder),
        (parted.folder, places().snapshots / "nano-depth"),
        (parted.folder, tmp_path / "nothing"),
        (parted.original, parted.folder, *equal),
    ):
        code, out, errors = harness(*words, "--json")
        assert (code, out, len(errors.splitlines())) == (2, b"", 1)


def test_a_file_that_cannot_be_written_is_said(parted, tmp_path):
    """Exit 2, and nothing is shown that isn't kept."""
    (tmp_path / "file").write_text("")
    code, out, errors = harness(parted.original, parted.folder, "--out", tmp_path / "file" / "x.json")
    assert (code, out) == (2, b"")
    assert errors


def test_a_terminal_gets_a_table(parted, monkeypatch):
    """The same in columns."""
    monkeypatch.setattr(show, "is_terminal", lambda _stream: True)
    monkeypatch.setenv("COLUMNS", "200")
    done = CliRunner().invoke(app, ["explain", str(parted.original), str(parted.folder)])
    assert done.exit_code == 1
    assert "source" in done.stdout
    assert "\x1b[" in done.stdout


def test_words_of_a_record_are_shown_and_not_obeyed(run, copied, token):
    """A processor whose name would clear the screen, in the rows and in the sentence."""
    other = copied(run, unit=token(3), environment=lambda one: one.update(cpu="\x1b[2J"))
    code, out, _ = harness(run, other)
    assert code == 1
    assert b"\x1b" not in out
    assert out.count(b"\\x1b[2J") == 2


def test_a_step_is_made_again_by_the_verb(run, copied, token):
    """In a process of its own: both sides' conditions, read back, and nothing tried where neither is reproduced."""
    a, b = (copied(run, unit=token(3, number)) for number in (301, 302))
    program = "from harness.__main__ import main; main()"
    code, out, errors = harness(a, b, "--rerun", "--json", program=program)
    record = record_of(out)
    assert code == 1, errors
    usual = json.loads(sorted((run / "journal").glob("*.json"))[0].read_bytes())["evidence"]["cells"][0]
    for side in (record.rerun.a, record.rerun.b):
        assert isinstance(side, SideRerun)
        assert (side.outcome.token.id, side.outcome.gives) == (usual["generated_ids"][3], "other")
    assert isinstance(record.rerun.search, NoSearch)


def test_frozen_results_alone_have_no_prompts_to_make_again(parted):
    """Said on both sides: a digest is no prompt."""
    code, out, _ = harness(parted.original, parted.folder, "--rerun", "--json")
    record = record_of(out)
    assert code == 1
    for side in (record.rerun.a, record.rerun.b):
        assert "expected its token IDs, found a digest" in side.reason


def test_the_verb_is_in_the_help():
    """With its exit codes."""
    code, out, _ = harness("--help")
    assert code == 0
    assert b"Exit 0" in out
