"""`--json` of every verb: one canonical document on stdout, a strict record, and the exit code of the plain form."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.__main__ import app
from harness.canon import canonical_bytes, sha256_hex
from harness.errors import JournalError
from harness.export.columns import COLUMNS
from harness.inputs.fetch import NotFetched
from harness.places import Places, places
from harness.protocols.load import load_protocol
from harness.records.audit import SnapshotIndex
from harness.records.base import decode_json
from harness.records.claims import Claims
from harness.records.verbs import (
    CheckedWriteUp,
    CheckpointList,
    FrozenProtocol,
    InputList,
    PromptList,
    WrittenReport,
    WrittenTable,
)
from harness.records.verification import Verification

from ..report.conftest import hand_run  # noqa: F401, TID252 - a judged run that costs no generation

CHECKPOINT = ("fixtures/models/nano/checkpoint", "--profile", "nano")


def call(*words):
    """A verb in this process."""
    done = CliRunner().invoke(app, [str(one) for one in words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def record(done, kind):
    """The one document on stdout, which is canonical and strict."""
    made = decode_json(done.stdout_bytes, kind, where="stdout", error=JournalError, todo="")
    assert canonical_bytes(made) == done.stdout_bytes
    return made


@pytest.fixture
def run(hand_run, tmp_path):  # noqa: F811 - pytest's way
    """A copy of the run."""
    return shutil.copytree(hand_run, tmp_path / "[red]formal-1")


def rows(done):
    """The plain form's cells."""
    return [line.split("\t") for line in done.stdout.splitlines()]


def test_prompts():
    """Every cell agrees; the plain form has the same cells."""
    made = record(done := call("prompts", "nano-behavior", "--json"), PromptList)
    assert (done.exit_code, done.stderr, made.agrees, made.unchecked) == (0, "", True, ())
    plain = call("prompts", "nano-behavior")
    shown = [
        [one.domain, one.source_id, one.condition, str(one.length), one.sha256, "as registered"] for one in made.cells
    ]
    assert rows(plain) == shown
    assert plain.stderr.startswith("Each prompt holds the whole source text.")


def test_prompts_that_cannot_be_built(tmp_path, monkeypatch):
    """The domains' errors are in the record and on stderr; exit 1 with a document."""
    monkeypatch.setattr("harness.inputs.find.EMBEDDED", "nothing is")
    done = call("prompts", "nano-behavior", "--json")
    made = record(done, PromptList)
    assert (done.exit_code, made.agrees) == (1, False)
    assert len(made.unchecked) == len(load_protocol("nano-behavior").domains)
    assert done.stderr.splitlines() == list(made.unchecked)


@pytest.mark.parametrize("protocol", ["nano-behavior", "deepseek-behavior"])
def test_inputs_verify(protocol, tmp_path):
    """Embedded files are there; registered ones of others aren't."""
    words = ("inputs", "verify", tmp_path, "--protocol", protocol)
    done = call(*words, "--json")
    made = record(done, InputList)
    assert made.complete is (done.exit_code == 0) is protocol.startswith("nano")
    plain = call(*words)
    assert plain.exit_code == done.exit_code
    assert rows(plain) == [[one.protocol, one.input, one.state, one.registered, one.where] for one in made.inputs]


def test_inputs_fetch(tmp_path, monkeypatch):
    """What can't be fetched is a state of the record."""
    nothing = [NotFetched(name="x", why="no address", location="a letter")]
    monkeypatch.setattr("harness.inputs.fetch.fetch_inputs", lambda *_: nothing)
    done = call("inputs", "fetch", tmp_path, "--protocol", "deepseek-behavior", "--json")
    assert done.exit_code == 1
    assert {one.state for one in record(done, InputList).inputs} == {"not fetched"}


def test_profile_record():
    """Every file with its state; the plain form is lines for profile.toml."""
    folder = places().root / CHECKPOINT[0]
    made = record(done := call("profile", "record", folder, *CHECKPOINT[1:], "--json"), CheckpointList)
    assert done.exit_code == 0
    assert {one.state for one in made.files} == {"as registered"}
    plain = call("profile", "record", folder, *CHECKPOINT[1:]).stdout.splitlines()
    assert [one.sha256 in line for one, line in zip(made.files, plain, strict=True)] == [True] * len(made.files)


def test_profile_record_of_another_checkpoint(tmp_path):
    """One file differs: exit 1, in words and in the record."""
    folder = shutil.copytree(places().root / CHECKPOINT[0], tmp_path / "checkpoint")
    (folder / "config.json").write_bytes(b"{}")
    done = call("profile", "record", folder, *CHECKPOINT[1:], "--json")
    states = {one.name: one.state for one in record(done, CheckpointList).files}
    assert (done.exit_code, states["config.json"]) == (1, "differs")
    assert "# DIFFERS" in call("profile", "record", folder, *CHECKPOINT[1:]).stdout


def test_freeze(monkeypatch, tmp_path):
    """The digest and what is owed, in a tree of the test's own."""
    tree = Places(tmp_path)
    shutil.copytree(places().protocols / "deepseek-behavior", tree.protocols / "deepseek-behavior")
    shutil.copytree(places().models / "deepseek-v2-lite-chat", tree.models / "deepseek-v2-lite-chat")
    (tree.protocols / "deepseek-behavior" / "manifest.json").unlink()  # sources that were frozen aren't given up
    monkeypatch.setenv("HARNESS_ROOT", str(tmp_path))
    made = record(call("freeze", "deepseek-behavior", "--json"), FrozenProtocol)
    loaded = load_protocol("deepseek-behavior", tree)
    assert (made.protocol_digest, made.unfrozen) == (loaded.digest, loaded.unfrozen)
    assert made.unfrozen
    assert made.frozen + len(made.unfrozen) == len(loaded.manifest.sources)


def test_snapshots_accept(monkeypatch):
    """index.json, byte for byte."""
    data = (places().snapshots / "nano-behavior" / "formal" / "index.json").read_bytes()
    index = decode_json(data, SnapshotIndex, where="index.json", error=JournalError, todo="")
    monkeypatch.setattr("harness.cli.snapshots.accept_run", lambda _run: index)
    assert call("snapshots", "accept", "RUN", "--json").stdout_bytes == data
    assert index.run_sha256 in call("snapshots", "accept", "RUN").stdout


def test_report(run):
    """Path, size and digest are the file's; brackets in a path are brackets."""
    made = record(call("report", run, "--json"), WrittenReport)
    data = (run / "report.html").read_bytes()
    assert (made.path, made.bytes, made.sha256) == (str(run / "report.html"), len(data), sha256_hex(data))
    assert call("report", run).stdout == f"{made.path}\n"


def test_export(run, tmp_path):
    """The same of a table, with its rows and columns."""
    made = record(call("export", run, "--to", "csv", "--out", tmp_path / "x.csv", "--json"), WrittenTable)
    data = Path(made.path).read_bytes()
    assert (made.bytes, made.sha256, made.format) == (len(data), sha256_hex(data), "csv")
    assert data.count(b"\n") == made.rows + 1
    assert made.columns == tuple(one.name for one in COLUMNS)


def test_verify(run):
    """The verdict is the exit code; the plain form has a line for each."""
    done = call("verify", run, "--json")
    made = record(done, Verification)
    assert done.exit_code == {"holds": 0, "fails": 1, "not checkable": 2}[made.verdict]
    plain = call("verify", run)
    assert plain.exit_code == done.exit_code
    starts = [f"{one.step}: {one.state}: " for one in made.lines]
    assert [line.startswith(start) for line, start in zip(plain.stdout.splitlines(), starts, strict=False)] == [
        True for _ in starts
    ]


def test_claims_and_a_write_up(run, tmp_path):
    """Claims, or the findings alone; the same findings in plain lines."""
    assert record(call("claims", run, "--json"), Claims).run_id == "formal-1"
    page = tmp_path / "page[bold].md"
    page.write_text("# Results\n\n999/999 reproduced.\n", encoding="utf-8")
    done = call("claims", run, "--check", page, "--json")
    made = record(done, CheckedWriteUp)
    assert done.exit_code == 1
    (finding,) = made.findings
    plain = call("claims", run, "--check", page)
    assert finding.expected == "32/32 (audit.independent_replay)"
    assert plain.stdout.startswith(f"{page}:{finding.line}: {finding.what}: expected 32/32 (replay), found 999/999\n")
    assert plain.stderr.startswith("1 finding under ")
    assert "Correct or remove what is named" in plain.stderr
    page.write_text("Nothing.", encoding="utf-8")
    assert record(call("claims", run, "--check", page, "--json"), CheckedWriteUp).findings == ()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("prompts", "nothing"), 1),
        (("inputs", "verify", "/nowhere"), 1),
        (("profile", "record", "/nowhere", "--profile", "nano"), 1),
        (("freeze", "nothing"), 1),
        (("snapshots", "accept", "/nowhere"), 1),
        (("report", "/nowhere"), 1),
        (("export", "/nowhere", "--to", "csv"), 1),
        (("claims", "/nowhere"), 2),
    ],
    ids=lambda one: " ".join(one[:2]) if isinstance(one, tuple) else "",
)
def test_an_error_is_the_plain_line(words, code):
    """On stderr, the same with and without --json; nothing on stdout."""
    plain, machine = call(*words), call(*words, "--json")
    assert (plain.exit_code, machine.exit_code, machine.stdout) == (code, code, "")
    assert plain.stderr == machine.stderr
    assert machine.stderr.count("\n") == 1
    with pytest.raises(json.JSONDecodeError):
        json.loads(machine.stderr)
