"""`python -m harness verify` and `claims`: exit codes and output, where no model, engine or network can be had."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from pregate_support.absent import ABSENT

from harness.canon import canonical_bytes
from harness.cli.verify import verify
from harness.errors import JournalError
from harness.records.base import decode_json
from harness.records.verification import Verification, VerifiedLine
from harness.verify.attestation import SIGNED

from .conftest import reseal


def harness(*words: str, run: Path) -> subprocess.CompletedProcess[bytes]:
    """A verb in a fresh interpreter without model, engine and network, in the run's own tree."""
    environment = os.environ | {"HARNESS_ROOT": str(run.parents[2]), "PYTHONIOENCODING": "ascii"}
    return subprocess.run([sys.executable, "-c", ABSENT, *words], env=environment, capture_output=True, check=False)


def test_a_run_is_verified_without_model_engine_or_network(run):
    """Exit 0, a line a step, and a verdict at the end."""
    done = harness("verify", str(run), run=run)
    assert (done.returncode, done.stderr) == (0, b"")
    lines = done.stdout.decode("ascii").splitlines()
    assert lines[-1].startswith("mini-completion formal-1: holds, and the run passed (audit.json ")
    assert "files: holds: formal-1" in "\n".join(lines)


def test_a_fault_is_one_line_with_what_to_do(run):
    """Exit 1: where, expected, found, and what to do."""
    (run / "gold.json").write_bytes(b"{}")
    done = harness("verify", str(run), run=run)
    assert done.returncode == 1
    (line,) = [one for one in done.stdout.decode().splitlines() if one.startswith("files: fails")]
    assert "gold.json: expected " in line
    assert "Restore the file" in line
    assert "formal-1: fails, and its audit record says that it passed (" in done.stdout.decode().splitlines()[-1]


def test_what_cannot_be_checked_exits_with_2(run):
    """A folder without an audit record, and one that isn't there."""
    (run / "audit.json").unlink()
    done = harness("verify", str(run), run=run)
    assert (done.returncode, b": not checkable, and the run was NOT judged (audit.json none)" in done.stdout) == (
        2,
        True,
    )
    done = harness("verify", str(run / "nothing"), run=run)
    assert (done.returncode, b"whether the run passed is unknown (audit.json none)" in done.stdout) == (2, True)


def test_a_run_that_did_not_pass_is_never_said_to_have(run):
    """Its records agree, so the exit code is 0; the last line says that it didn't pass."""
    reseal(run, passed=False)
    done = harness("verify", str(run), run=run)
    last = done.stdout.decode().splitlines()[-1]
    assert (done.returncode, "formal-1: holds, the records agree, and the run did NOT pass (" in last) == (0, True)
    (run / "gold.json").write_bytes(b"{}")
    last = harness("verify", str(run), run=run).stdout.decode().splitlines()[-1]
    assert "formal-1: fails, and the run did NOT pass, by its audit record (" in last


@pytest.mark.parametrize(
    ("said", "words"),
    [("passed", "holds, and the run passed ("), ("not passed", "holds, the records agree, and the run did NOT pass (")],
)
def test_that_records_agree_is_not_that_the_run_passed(said, words, capsys, monkeypatch):
    """Exit 0 is of the records; the last line has both."""
    signed = VerifiedLine(step=SIGNED, state="none", where="", expected="", found="unsigned", todo="")
    found = Verification(
        schema=1, run="r", protocol="p", protocol_digest="d", audit_sha256="a", said=said, verdict="holds",
        lines=(signed,),
    )  # fmt: skip
    monkeypatch.setattr("harness.cli.verify.verify_run", lambda *given, **named: found)
    with pytest.raises(typer.Exit) as ended:
        verify(Path("r"))
    assert ended.value.exit_code == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"p r: {words}audit.json a); unsigned"


def test_a_machine_reads_a_record(run):
    """--json is one strict record in canonical bytes."""
    done = harness("verify", str(run), "--json", run=run)
    record = decode_json(done.stdout, Verification, where="stdout", error=JournalError, todo="")
    assert (record.verdict, canonical_bytes(record)) == ("holds", done.stdout)


def test_claims_are_listed_without_model_engine_or_network(run):
    """Permitted, diagnostics, prohibited, differences, records; in ASCII where the terminal has no more."""
    done = harness("claims", str(run), run=run)
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode("ascii")
    for part in ("SUPPORTED replay: 16/16", "Diagnostics", "Prohibited", "eos-better", "Differences", "run.json"):
        assert part in text
    assert "apart from its digest" in text


def test_claims_for_a_machine_are_the_file(run):
    """--json prints claims.json byte for byte; --write writes it where none is, and never another over it."""
    stored = (run / "claims.json").read_bytes()
    assert harness("claims", str(run), "--json", run=run).stdout == stored
    (run / "claims.json").unlink()
    assert harness("claims", str(run), "--write", run=run).returncode == 0
    assert (run / "claims.json").read_bytes() == stored
    (run / "claims.json").write_bytes(b"{}")
    assert harness("claims", str(run), "--write", run=run).returncode == 2


@pytest.mark.parametrize(("text", "code", "words"), [
    ("# Results\n\nReplayed: 16/16.\n", 0, ""),
    ("# Results\n\n全部 16 格复现。\n", 0, ""),
    ("# Results\n\n256/256 reproduced.\n", 1, "page.md:3: figure: expected 16/16 (replay), found 256/256"),
    ("# Results\n\nEOS makes the answer better.\n", 1, "page.md:3: prohibited eos-better: expected"),
])  # fmt: skip
def test_a_write_up_is_read(text, code, words, run, tmp_path):
    """Exit 0 clean; 1 with file:line, what was expected and what was found."""
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    done = harness("claims", str(run), "--check", str(page), run=run)
    assert done.returncode == code, done.stdout + done.stderr
    assert words in done.stdout.decode()


def test_a_write_up_that_cannot_be_checked_exits_with_2(run, tmp_path):
    """No file, no UTF-8, an altered run."""
    page = tmp_path / "page.md"
    assert harness("claims", str(run), "--check", str(page), run=run).returncode == 2
    page.write_bytes(b"\xff\xfe\x00")
    assert harness("claims", str(run), "--check", str(page), run=run).returncode == 2
    page.write_text("Nothing.")
    (run / "ledger.json").write_bytes(b"{}")
    done = harness("claims", str(run), "--check", str(page), run=run)
    assert done.returncode == 2
    assert "ledger.json" in done.stderr.decode()


def test_verbs_are_in_the_help(run):
    """Both verbs say what they do."""
    text = harness("--help", run=run).stdout.decode()
    assert "verify" in text
    assert "claims" in text
    assert json.loads((run / "audit.json").read_bytes())["passed"]
