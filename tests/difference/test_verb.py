"""`python -m harness compare`: exit codes, one screen, a record, and nothing that a terminal would obey."""

import json
import os
import subprocess
import sys

import pytest
from pregate_support.absent import ABSENT
from typer.testing import CliRunner

from harness.__main__ import app
from harness.canon import canonical_bytes, digest
from harness.cli import show
from harness.errors import JournalError
from harness.places import places
from harness.records.base import decode_json
from harness.records.difference import SideComparison

UNIT = "code-00-*-greedy.json"


def harness(*words, **env):
    """The verb in a fresh interpreter without model, engine and network: exit code, output, errors."""
    environment = os.environ | {"PYTHONIOENCODING": "ascii"} | env
    done = subprocess.run(
        [sys.executable, "-c", ABSENT, "compare", *map(str, words)], env=environment, capture_output=True, check=False
    )
    return done.returncode, done.stdout, done.stderr.decode()


@pytest.fixture
def parted(frozen, said):
    """A copy of nano-behavior's frozen results in which every cell of one unit says another token."""
    copy = frozen("nano-behavior")

    def change(unit):
        for at, cell in enumerate(unit["cells"]):
            said(cell, [*cell["generated_ids"][:at], 300, *cell["generated_ids"][at + 1 :]])

    copy.change(UNIT, change)
    return copy


def test_equal_exits_with_0(frozen):
    """Fractions first, then the two sides."""
    copy = frozen("nano-behavior")
    code, out, errors = harness(copy.seal({}), copy.original)
    assert (code, errors) == (0, "")
    lines = out.decode("ascii").splitlines()
    assert lines[0] == "equal: 128 of 128 cells equal"
    assert lines[1].startswith("A  frozen results of nano-behavior 0995f2ea3c828229, grid formal, 128 tokens")
    assert lines[2].startswith("B  ")
    held = "is frozen results, which hold the audit record's digest alone"
    assert lines[3] == f"judged by: unknown (A {held}; B {held})"


def test_different_exits_with_1_and_names_the_cells(parted):
    """Verdict, domains and conditions that aren't whole, then each cell: step, IDs and texts, how both ended."""
    code, out, _ = harness(parted.original, parted.folder)
    text = out.decode("ascii")
    assert code == 1
    assert text.splitlines()[0] == "different: 120 of 128 cells equal, 8 differ"
    assert "by domain: code 24/32" in text
    assert "by condition: s0_eos 15/16, " in text
    assert "Differing cells, 8 of 8; steps count from 0" in text
    (line,) = [one for one in text.splitlines() if "nano-code/004 greedy s1_eos" in one]
    assert "\tfrom step 1\tA: 286 ' is' (72 tokens, natural_eos)\tB: 300 'Add' (" in line


def test_the_cells_that_are_shown_are_limited(parted):
    """Ten by default, none left out with 0, and how many there are is always said."""
    for words, shown in ((("--limit", 3), 3), (("--limit", 0), 8), ((), 8)):
        code, out, _ = harness(parted.original, parted.folder, *words)
        text = out.decode("ascii")
        assert (code, text.count("from step")) == (1, shown)
        assert f"Differing cells, {shown} of 8" in text
    assert harness(parted.original, parted.folder, "--limit", "-1")[0] == 2


def test_a_machine_reads_all_cells(parted):
    """One strict record in canonical bytes, whatever the limit, with the verb's exit code."""
    code, out, errors = harness(parted.original, parted.folder, "--json", "--limit", 1)
    record = decode_json(out, SideComparison, where="stdout", error=JournalError, todo="")
    assert (code, errors, canonical_bytes(record) == out) == (1, "", True)
    assert len(record.cells) == record.equal.of == 128


def test_what_cannot_be_compared_exits_with_2(parted, tmp_path):
    """One line on stderr and nothing on stdout: one folder twice, another kind, nothing there."""
    for other in (parted.folder, places().snapshots / "nano-depth", tmp_path / "nothing"):
        code, out, errors = harness(parted.folder, other, "--json")
        assert (code, out, len(errors.splitlines())) == (2, b"", 1)


def test_a_terminal_gets_tables(parted, monkeypatch):
    """The same in columns."""
    monkeypatch.setattr(show, "is_terminal", lambda _stream: True)
    monkeypatch.setenv("COLUMNS", "200")
    done = CliRunner().invoke(app, ["compare", str(parted.original), str(parted.folder)])
    assert done.exit_code == 1
    assert "differs in" in done.stdout
    assert "\x1b[" in done.stdout


def test_words_of_a_record_are_shown_and_not_obeyed(frozen):
    """A processor whose name would clear the screen, and one in Chinese."""
    copy = frozen("nano-depth")
    environment = json.loads((copy.folder / "formal/environment.json").read_bytes())
    for name, shown in (("\x1b[2J", rb"\x1b[2J"), ("\u4e2d", rb"\u4e2d")):
        copy.change("environment.json", lambda plain, name=name: plain.update(cpu=name))
        copy.seal({}, environment_sha256=digest(environment | {"cpu": name}))
        code, out, _ = harness(copy.original, copy.folder)
        assert code == 0
        assert b"B: " + shown in out
        assert b"\x1b" not in out


def test_no_table_hides_the_next(frozen):
    """Of a field with many members a few are shown, and how many more there are; what comes after it is there."""
    copy = frozen("nano-depth")
    environment = json.loads((copy.folder / "formal/environment.json").read_bytes())
    many = {"kernels": {f"kernel-{at}": "on" for at in range(30)}, "threads": 8}
    copy.change("environment.json", lambda plain: plain.update(many))
    copy.seal({}, environment_sha256=digest(environment | many))
    text = harness(copy.original, copy.folder)[1].decode("ascii")
    assert text.count("kernels.") == 3
    assert "and 31 more of kernels" in text
    assert "environment\tthreads\tA: 1\tB: 8" in text


def test_the_verb_is_in_the_help():
    """With its exit codes."""
    code, out, _ = harness("--help")
    assert code == 0
    assert b"Exit 0" in out
