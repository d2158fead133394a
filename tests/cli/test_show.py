"""What is printed where: rows in both forms, nothing taken for markup, nothing cut, and a reader that stops."""

import errno
import os
import subprocess
import sys

import pytest
import typer

from harness.cli import show
from harness.cli.working import working
from harness.records.verbs import WrittenReport

HOSTILE = "[red]a[/red] \x1b[31mb\x1b[0m c\td\ne \u202egpj"
SHOWN = r"[red]a[/red] \x1b[31mb\x1b[0m c\td\ne \u202egpj"
WIDE = "f" * 64 + "/" + "long-folder/" * 40


@pytest.fixture
def terminal(monkeypatch):
    """A terminal of 40 columns."""
    monkeypatch.setattr(show, "is_terminal", lambda _stream: True)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")


class Screen:
    """A stream that says of itself that it is a terminal."""

    def isatty(self):
        """It is."""
        return True


@pytest.mark.parametrize(
    ("variables", "expected"),
    [({"TERM": "xterm"}, True), ({"TERM": "dumb"}, False), ({}, False), ({"TERM": "xterm", "NO_COLOR": "1"}, False),
     ({"TERM": "xterm", "CI": "true"}, False)],
)  # fmt: skip
def test_what_is_a_terminal(variables, expected, monkeypatch):
    """Not a dumb one, not under CI, not where no colour is wanted."""
    for name in ("TERM", "NO_COLOR", "CI"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert show.is_terminal(Screen()) is expected


def test_no_variable_makes_a_pipe_a_terminal(monkeypatch, capsys):
    """FORCE_COLOR and its like are for colours."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    assert not show.is_terminal(sys.stdout)


def test_plain_rows_are_tab_separated_and_whole(capsys, monkeypatch):
    """One line a row at any width; what acts or breaks a line is its escape."""
    monkeypatch.setenv("COLUMNS", "20")
    show.table(("a", "b"), [(HOSTILE, WIDE), ("x", "y")])
    assert capsys.readouterr().out == f"{SHOWN}\t{WIDE}\nx\ty\n"


def test_a_table_has_the_same_cells(terminal, capsys):
    """Folded, with headings; no style and no control of a cell's own."""
    show.table(("name", "where"), [(HOSTILE, WIDE)], {"name": "red"})
    out = capsys.readouterr().out
    assert "name" in out
    assert "\x1b[31m" not in out
    show.table(("where",), [(WIDE,)])
    assert "".join(capsys.readouterr().out.split()).endswith(WIDE)


def test_a_line_has_the_same_words_in_both(terminal, capsys, monkeypatch):
    """A style of ours is a terminal's alone; markup in a text is text."""
    show.line((HOSTILE, "green"), " end")
    styled = capsys.readouterr().out
    assert styled == f"\x1b[32m{SHOWN}\x1b[0m end\n"
    monkeypatch.setattr(show, "is_terminal", lambda _stream: False)
    show.line((HOSTILE, "green"), " end")
    assert capsys.readouterr().out == f"{SHOWN} end\n"


def test_a_message_is_on_stderr(capsys):
    """With nothing that acts."""
    show.tell(HOSTILE)
    assert capsys.readouterr() == ("", f"{SHOWN}\n")


def test_a_path_of_any_bytes_has_a_document(capsys):
    """A byte that isn't UTF-8 is its escape, and the rest is JSON's."""
    path = os.fsdecode(b"/a/\xff[red]\x1b.html")
    show.document(WrittenReport(schema=1, path=show.valid(path), bytes=1, sha256="0" * 64))
    assert r'"path":"/a/\\xff[red]\u001b.html"' in capsys.readouterr().out


def test_short_work_says_nothing_without_a_terminal(capsys):
    """A step is said where ten seconds passed since the last, on stderr."""
    times = iter([0.0, 1.0, 9.9, 10.0, 10.0, 12.0, 20.0, 20.0])
    with working("verify", clock=lambda: next(times)) as note:
        for step in ("files", "junit", "records\x1b[31m", "parts", "smoke"):
            note(step)
    assert capsys.readouterr() == ("", "verify: records\\x1b[31m\nverify: smoke\n")


def in_a_terminal(*words):
    """(exit code, stdout, what a terminal on stderr was sent) of a verb whose stdout is a pipe."""
    ours, theirs = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    for name in ("CI", "NO_COLOR"):
        environment.pop(name, None)
    command = [sys.executable, "-m", "harness", *words]
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs, env=environment)
    os.close(theirs)
    with child.stdout:
        out = child.stdout.read()
    said = b""
    while data := drained(ours):
        said += data
    os.close(ours)
    return child.wait(), out, said


def drained(terminal):
    """What is left to read; nothing at the end, which some systems say by an error."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


def test_progress_is_on_stderr_alone():
    """A spinner with the step on stderr's terminal, which leaves nothing; plain rows in stdout's pipe."""
    code, out, said = in_a_terminal("inputs", "verify", "fixtures", "--protocol", "nano-behavior")
    assert code == 0
    assert b"inputs verify" in said
    assert said.rstrip().endswith(b"\x1b[2K")
    assert b"\x1b" not in out
    assert {line.split(b"\t")[2] for line in out.splitlines()} == {b"present"}


PROGRAM = """
from harness.cli import show
for number in range(20_000):
    show.line(f"line {number}")
raise SystemExit(7)
"""


def test_a_reader_that_stops_changes_no_exit_code():
    """Like `| head -1`: no traceback, nothing on stderr, the verb's own code."""
    child = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout.readline() == b"line 0\n"
    child.stdout.close()
    assert child.stderr.read() == b""
    child.stderr.close()
    assert child.wait() == 7


@pytest.mark.parametrize("words", [["--help"], ["inputs", "verify", "--help"], ["prompts", "nano-behavior"]])
def test_a_closed_stdout_has_no_traceback(words):
    """Closed before the first byte."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "harness", *words]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_full_disk_is_said(monkeypatch, capsys):
    """Exit 2, one line on stderr."""
    echo = typer.echo

    def full(data, *, nl=True, err=False):
        if not err:
            raise OSError(errno.ENOSPC, "No space left on device")
        echo(data, nl=nl, err=err)

    monkeypatch.setattr(typer, "echo", full)
    with pytest.raises(typer.Exit) as raised:
        show.line("x")
    assert raised.value.exit_code == 2
    assert capsys.readouterr().err.startswith("standard output: expected room for the result, found No space left")
