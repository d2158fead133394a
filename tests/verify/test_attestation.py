"""The statement over a run and who signed it: no run reads as signed that isn't, and an unsigned one says so."""

import base64
import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pregate_support.mini import COMPLETION, MINI
from pregate_support.signing import NAMESPACE, Key, ed25519_key, packed, rsa_key

from harness.canon import canonical_bytes, sha256_hex
from harness.errors import AttestationError, HarnessError
from harness.journal.folder import RunFolder
from harness.places import Places
from harness.snapshots.store import accept
from harness.verify.attest import attest
from harness.verify.attestation import attestation_lines, said_of
from harness.verify.run import grounded, verify
from harness.verify.signers import read_signers

from .conftest import add_claims, mended, write_audit, write_claims
from .test_verbs import harness

NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)
ATTESTATION, SIGNATURE = "attestation.json", "attestation.json.sig"
ALICE = "alice@example.org"


@pytest.fixture(scope="session")
def key() -> Key:
    """Alice's key."""
    return ed25519_key()


@pytest.fixture(scope="session")
def listed(key, tmp_path_factory) -> Path:
    """A file that names Alice alone."""
    path = tmp_path_factory.mktemp("signers") / "signers"
    path.write_text(key.line(ALICE, f'namespaces="{NAMESPACE}"'))
    return path


@contextmanager
def frozen(run):
    """The run accepted as the frozen result, and afterwards not."""
    tree = run.parents[2]
    with mended(tree / "snapshots"), mended(run):
        accept(run, Places(tree))
        yield run


@pytest.fixture
def signed(whole_run, key):
    """A run that was judged, accepted, attested, and signed by Alice."""
    with frozen(whole_run) as run:
        attest(run, Places(run.parents[2]))
        sign(run, key)
        yield run


def sign(run, key, **changed) -> None:
    """attestation.json.sig as it lies beside the statement."""
    (run / SIGNATURE).write_bytes(key.sign((run / ATTESTATION).read_bytes(), **changed))


def found(run, listed=None, now=NOW):
    """The verification, with the file's signers where one is named."""
    return verify(run, Places(run.parents[2]), signers=named(listed, now))


def named(listed, now=NOW):
    """The file's signers, where there is one."""
    return None if listed is None else read_signers(listed, now)


def steps(run, listed=None):
    """The lines of the two steps alone: what the other steps find doesn't matter to them."""
    folder = RunFolder(run)
    return attestation_lines(folder, grounded(folder, Places(run.parents[2]), []), named(listed))


def signature(run, listed=None):
    """State and words of the one line about the signature, and whether any line of the two steps fails."""
    lines = steps(run, listed)
    (line,) = [one for one in lines if one.step == "signature"]
    return line.state, line.found, "fails" if "fails" in {one.state for one in lines} else "holds"


def bad(run, listed=None) -> str:
    """What fails in the statement, in one text."""
    lines = [one for one in steps(run, listed) if (one.step, one.state) == ("attestation", "fails")]
    return "\n".join(f"{one.where}: expected {one.expected}, found {one.found}. {one.todo}" for one in lines)


def rewritten(run, change) -> None:
    """The statement with a change in its plain content, in canonical bytes."""
    content = json.loads((run / ATTESTATION).read_bytes())
    change(content)
    (run / ATTESTATION).write_bytes(canonical_bytes(content))


def test_an_unsigned_run_says_so(run, listed):
    """Without a statement, then without a signature: no fault, and no silence; a fault where signers are named."""
    assert signature(run) == ("none", "unsigned: no attestation", "holds")
    assert signature(run, listed) == ("fails", "unsigned: no attestation", "fails")
    attest(run, Places(run.parents[2]))
    assert signature(run) == ("none", "unsigned", "holds")
    assert signature(run, listed) == ("fails", "unsigned", "fails")
    assert said_of(run) == "unsigned"


def test_a_signed_run_names_its_signer(signed, key, listed):
    """With signers the principal and the key; without, a signature of nobody that was named is not verified."""
    words = f"signed by {ALICE}, key {key.fingerprint}"
    assert signature(signed, listed) == ("holds", words, "holds")
    assert found(signed, listed).verdict == "holds"
    state, said, verdict = signature(signed)
    assert (state, verdict) == ("none", "holds")
    assert said.startswith("not verified: there is a signature")
    assert "not verified here" in said_of(signed)


def test_the_statement_is_an_in_toto_test_result(signed):
    """Its types, every subject by its own bytes, the gates by name, the protocol's files; the same bytes again."""
    data = (signed / ATTESTATION).read_bytes()
    statement = json.loads(data)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    tree = signed.parents[2]
    subjects = {one["name"]: one["digest"]["sha256"] for one in statement["subject"]}
    folder = tree / "snapshots" / COMPLETION
    held = {f"snapshots/{COMPLETION}/{one.relative_to(folder)}" for one in folder.rglob("*.json")}
    assert {*subjects} - held == {
        "audit.json", "claims.json", "junit.xml", "ledger.json", "run.json", "statistics.json",
    }  # fmt: skip
    assert f"snapshots/{COMPLETION}/formal/index.json" in held
    for name, sha256 in subjects.items():
        assert sha256_hex(((tree if name in held else signed) / name).read_bytes()) == sha256
    predicate, audit = statement["predicate"], json.loads((signed / "audit.json").read_bytes())
    assert (predicate["result"], predicate["failedTests"]) == ("PASSED", [])
    assert predicate["passedTests"] == [one["id"] for one in audit["gates"]]
    for one in predicate["configuration"]:
        assert sha256_hex((tree / one["name"]).read_bytes()) == one["digest"]["sha256"]
    assert predicate["pregate"]["verified"] == "holds"
    attest(signed, Places(tree))
    assert (signed / ATTESTATION).read_bytes() == data


def test_a_run_that_did_not_pass_is_attested_as_failed(run, listed, key):
    """A statement says what the session found, not that it was good."""
    write_audit(run, passed=False, books=["something stayed open"])
    (run / "claims.json").unlink()
    statement = attest(run, Places(run.parents[2]))
    assert statement.predicate.result == "FAILED"
    sign(run, key)
    assert signature(run, listed)[0] == "holds"


def test_claims_that_are_written_later_change_nothing(run, key, listed):
    """They are a subject as they are made, so `claims --write` after the signature is no alteration."""
    (run / "claims.json").unlink()
    attest(run, Places(run.parents[2]))
    sign(run, key)
    write_claims(run, run.parents[2])
    assert signature(run, listed)[0] == "holds"


@pytest.mark.parametrize("name", ["run.json", "junit.xml", "ledger.json", "statistics.json", "audit.json"])
def test_a_record_that_changed_since_is_named(name, signed, listed):
    """By its subject, with the way out; the signature over the old statement doesn't hold for this run."""
    (signed / name).write_bytes((signed / name).read_bytes() + b"\n")
    said = bad(signed, listed)
    assert f"{ATTESTATION}: subject {name}: expected" in said
    assert "attest it again" in said
    state, words, _ = signature(signed, listed)
    assert (state, "over what doesn't" in words) == ("fails", True)
    assert found(signed, listed).verdict == "fails"


def test_a_record_that_is_gone_is_named(signed, listed):
    """Not as an error of another kind."""
    (signed / "junit.xml").unlink()
    assert "subject junit.xml: expected no such file" in bad(signed, listed)


def test_a_journal_that_changed_fails_the_run(signed, listed):
    """It is no subject: the audit record, which is one, lists it."""
    path = next((signed / "journal").glob("*.json"))
    path.write_bytes(path.read_bytes() + b"\n")
    (line,) = [one for one in found(signed, listed).lines if one.step == "signature"]
    assert (line.state, "over what doesn't" in line.found) == ("fails", True)


def test_frozen_files_that_changed_are_named(signed, listed):
    """Each under its own name; a file that came, one that went, and one that is another."""
    folder = signed.parents[2] / "snapshots" / COMPLETION
    (folder / "formal/index.json").write_bytes(b"{}")
    assert f"subject snapshots/{COMPLETION}/formal/index.json" in bad(signed, listed)
    (folder / "more.json").write_text("{}")
    assert f"subject snapshots/{COMPLETION}/more.json" in bad(signed, listed)
    assert signature(signed, listed)[0] == "fails"


def test_results_that_are_frozen_after_the_signature_are_said(whole_run, key, listed):
    """They are no subject, the run is as it was, and the signature holds for what it was over."""
    with mended(whole_run):
        attest(whole_run, Places(whole_run.parents[2]))
        sign(whole_run, key)
        with mended(whole_run.parents[2] / "snapshots"):
            accept(whole_run, Places(whole_run.parents[2]))
            assert signature(whole_run, listed)[::2] == ("holds", "holds")
            said = [one.found for one in found(whole_run).lines if one.step == "attestation"]
            assert any("before there were frozen results" in one for one in said)


def added(content) -> None:
    """One subject more."""
    content["subject"].append({"name": "z.json", "digest": {"sha256": "0" * 64}})


def removed(content) -> None:
    """Without run.json."""
    content["subject"] = [one for one in content["subject"] if one["name"] != "run.json"]


def unfrozen(content) -> None:
    """Without one of the frozen files."""
    content["subject"] = content["subject"][:-1]


def twice(content) -> None:
    """A subject of two digests: which of them counts?"""
    content["subject"].insert(0, {"name": "audit.json", "digest": {"sha256": "0" * 64}})


def otherwise(content) -> None:
    """The same subjects in another order."""
    content["subject"].reverse()


def second(content) -> None:
    """Another algorithm beside."""
    content["subject"][0]["digest"]["sha1"] = "0" * 40


def passed_more(content) -> None:
    """A gate that doesn't exist."""
    content["predicate"]["passedTests"].append("nobody_looked")


def another_run(content) -> None:
    """Another name."""
    content["predicate"]["pregate"]["run_id"] = "formal-2"


def open_ends(content) -> None:
    """Said to hold beside what couldn't be checked."""
    content["predicate"]["pregate"]["not_checkable"] = ["smoke: not here"]


def foreign(content) -> None:
    """A field that nobody registered."""
    content["predicate"]["url"] = "https://example.org"


def typed(content) -> None:
    """Another kind of predicate."""
    content["predicateType"] = "https://example.org/v1"


@pytest.mark.parametrize("change", [
    added, removed, unfrozen, twice, otherwise, second, passed_more, another_run, open_ends, foreign, typed,
])  # fmt: skip
def test_a_statement_that_says_otherwise_fails_whoever_signed_it(change, signed, key, listed):
    """Alice signed it: the statement is still not this run's, and the signature doesn't hold."""
    rewritten(signed, change)
    sign(signed, key)
    assert ATTESTATION in bad(signed, listed)
    assert signature(signed, listed)[0] == "fails"
    assert signature(signed)[::2] == ("none", "fails")


@pytest.mark.parametrize("change", [
    pytest.param(lambda data: data + b"\n", id="a newline after"),
    pytest.param(lambda data: data.replace(b'"PASSED"', b'"FAILED"'), id="a word"),
    pytest.param(lambda data: data.replace(b"{", b'{"_type":"x",', 1), id="a name twice"),
    pytest.param(lambda _data: b"[]", id="a list"),
    pytest.param(lambda _data: b"", id="empty"),
    pytest.param(lambda _data: b"\xff", id="no text"),
])  # fmt: skip
def test_other_bytes_are_another_statement(change, signed, key, listed):
    """Under the old signature and under a new one."""
    (signed / ATTESTATION).write_bytes(change((signed / ATTESTATION).read_bytes()))
    assert signature(signed, listed)[0] == "fails"
    assert bad(signed)
    sign(signed, key)
    assert signature(signed, listed)[0] == "fails"


def test_a_byte_of_the_signature(signed, listed):
    """A bit in the middle."""
    data = bytearray((signed / SIGNATURE).read_bytes())
    data[len(data) // 2] ^= 1
    (signed / SIGNATURE).write_bytes(bytes(data))
    assert signature(signed, listed)[::2] == ("fails", "fails")


@pytest.mark.parametrize(("changed", "words"), [
    ({"namespace": "git"}, "b'git'"),
    ({"namespace": "file"}, "b'file'"),
    ({"namespace": f"{NAMESPACE}.org"}, ".org"),
    ({"namespace": ""}, "b''"),
    ({"hash_name": "md5"}, "b'md5'"),
    ({"hashed": b"\0" * 64}, "over other bytes"),
])  # fmt: skip
def test_what_alice_signed_otherwise_isnt_an_attestation(changed, words, signed, key, listed):
    """Another namespace, a hash that can be collided, other bytes."""
    sign(signed, key, **changed)
    state, said, verdict = signature(signed, listed)
    assert (state, verdict) == ("fails", "fails")
    assert words in said


def test_another_key_isnt_alices(signed, key, listed):
    """Mallory's own; and Mallory's signature under Alice's key."""
    mallory = ed25519_key()
    sign(signed, mallory)
    assert mallory.fingerprint in signature(signed, listed)[1]
    sign(signed, mallory, public=key.blob)
    assert signature(signed, listed)[::2] == ("fails", "fails")
    sign(signed, rsa_key(), public=key.blob)
    assert signature(signed, listed)[::2] == ("fails", "fails")


@pytest.mark.parametrize(("options", "state"), [
    ('valid-before="20260101Z"', "fails"),
    ('valid-after="20270101Z"', "fails"),
    ('valid-after="20260101Z",valid-before="20270101Z"', "holds"),
    ('namespaces="git"', "fails"),
    ("cert-authority", "fails"),
])  # fmt: skip
def test_the_options_of_a_signer_count(options, state, signed, key, tmp_path):
    """Expired, not yet valid, for something else, or for certificates."""
    (tmp_path / "signers").write_text(key.line(ALICE, options))
    assert signature(signed, tmp_path / "signers")[0] == state


def test_every_principal_of_the_key_is_named(signed, key, tmp_path):
    """Those whose line lets it sign, and no other."""
    lines = (key.line("alice"), key.line("bob", 'namespaces="git"'), key.line("carol"), ed25519_key().line("dave"))
    (tmp_path / "signers").write_text("".join(lines))
    assert signature(signed, tmp_path / "signers")[1] == f"signed by alice, carol, key {key.fingerprint}"


def test_a_kind_of_key_that_isnt_verified_here_is_said(signed, key, tmp_path):
    """A security key that is listed: not checkable, never verified; one that isn't listed fails."""
    blob = packed(b"sk-ssh-ed25519@openssh.com", key.blob[-32:], b"ssh:")
    hardware = Key(key.private)
    sign(signed, hardware, public=blob, algorithm=b"sk-ssh-ed25519@openssh.com")
    (tmp_path / "signers").write_text(f"alice sk-ssh-ed25519@openssh.com {base64.b64encode(blob).decode()}\n")
    assert signature(signed, tmp_path / "signers")[0] == "not checkable"
    assert found(signed, tmp_path / "signers").verdict == "not checkable"
    (tmp_path / "signers").write_text(key.line())
    assert signature(signed, tmp_path / "signers")[0] == "fails"


def test_a_certificate_isnt_its_key(signed, key, tmp_path):
    """The type decides before anything is loaded: a certificate of Alice's key is no key of Alice's."""
    blob = packed(b"ssh-ed25519-cert-v01@openssh.com", b"nonce", key.blob[-32:])
    sign(signed, key, public=blob)
    (tmp_path / "signers").write_text(f"alice ssh-ed25519-cert-v01@openssh.com {base64.b64encode(blob).decode()}\n")
    assert signature(signed, tmp_path / "signers")[0] == "not checkable"


def test_a_renamed_run_isnt_attested(signed, listed):
    """The name is a part of what was attested."""
    other = signed.with_name("formal-9")
    signed.rename(other)
    try:
        assert found(other, listed).verdict == "fails"
    finally:
        other.rename(signed)


def test_a_statement_of_another_run_isnt_this_ones(signed, key, listed):
    """The smoke run's own, signed and copied."""
    smoke = signed.parent / json.loads((signed / "smoke.json").read_bytes())["run_id"]
    with mended(smoke):
        attest(smoke, Places(signed.parents[2]))
        sign(smoke, key)
        assert signature(smoke, listed)[::2] == ("holds", "holds")
        for name in (ATTESTATION, SIGNATURE):
            shutil.copyfile(smoke / name, signed / name)
    assert "subject run.json" in bad(signed, listed)
    assert signature(signed, listed)[0] == "fails"


def test_an_earlier_judgement_that_is_taken_away_is_named(judged_twice, key, listed):
    """No audit record lists it; the statement does."""
    with mended(judged_twice):
        (judged_twice / "claims.json").unlink(missing_ok=True)
        attest(judged_twice, Places(judged_twice.parents[2]))
        sign(judged_twice, key)
        assert signature(judged_twice, listed)[0] == "holds"
        shutil.rmtree(judged_twice / "judgements")
        assert "subject judgements/01/audit.json" in bad(judged_twice, listed)


def test_a_signature_without_its_statement(signed, listed):
    """Fails, also where nobody was named."""
    (signed / ATTESTATION).unlink()
    assert SIGNATURE in bad(signed)
    assert signature(signed, listed)[0] == "fails"
    assert said_of(signed) == "unsigned"


@pytest.mark.parametrize("name", [ATTESTATION, SIGNATURE])
def test_a_link_or_a_folder_is_neither(name, signed, tmp_path, listed):
    """What a link leads to isn't the run's; a folder is no file."""
    kept = (signed / name).read_bytes()
    (tmp_path / "elsewhere").write_bytes(kept)
    (signed / name).unlink()
    (signed / name).symlink_to(tmp_path / "elsewhere")
    assert found(signed, listed).verdict == "fails"
    (signed / name).unlink()
    (signed / name).mkdir()
    assert signature(signed, listed)[::2] == ("fails", "fails")


@pytest.mark.parametrize("name", ["attestation.json.sig.bak", "attestation.json.minisig", "placement/attestation.json"])
def test_only_the_two_files_are_admitted(name, signed):
    """And they are said to be covered by no digest."""
    said = [one.where for one in found(signed).lines if one.step == "files" and one.found.startswith("written over")]
    assert said == [ATTESTATION, SIGNATURE]
    (signed / name).write_text("x")
    assert found(signed).verdict == "fails"


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("gone", ["audit.json", "protocol"])
def test_without_a_ground_there_is_still_one_line(gone, given, signed, listed):
    """No audit record, or no protocol: never signed, and with signers never less than not checkable."""
    with mended(signed.parents[2] / "fixtures/protocols"):
        if gone == "protocol":
            shutil.rmtree(signed.parents[2] / "fixtures/protocols" / COMPLETION)
        else:
            (signed / "audit.json").unlink()
        seen = found(signed, listed if given else None)
    (line,) = [one for one in seen.lines if one.step == "signature"]
    assert (line.state, seen.verdict) == ("not checkable" if given else "none", "not checkable")


def test_what_could_not_be_checked_is_in_the_statement(whole_run, key, listed):
    """The smoke run wasn't there: said by the statement, and again by whoever verifies it with the smoke run."""
    smoke = whole_run.parent / json.loads((whole_run / "smoke.json").read_bytes())["run_id"]
    with mended(whole_run):
        smoke.rename(smoke.with_name("elsewhere"))
        try:
            statement = attest(whole_run, Places(whole_run.parents[2]))
        finally:
            smoke.with_name("elsewhere").rename(smoke)
        assert statement.predicate.pregate.verified == "not checkable"
        sign(whole_run, key)
        assert signature(whole_run, listed)[::2] == ("holds", "holds")
        said = [one.found for one in found(whole_run).lines if one.step == "attestation"]
        assert any("couldn't be checked when it was attested: smoke" in one for one in said)


def test_a_statement_writes_no_line_of_its_own(signed, key):
    """Words of an unsigned statement that would move a terminal's cursor, or begin a line, are shown as escapes."""
    forged = "\x1b[1A\x1b[2K\nsignature: holds: attestation.json.sig: signed by alice\x7f"
    rewritten(signed, lambda content: content["predicate"]["pregate"].update(
        verified="not checkable", not_checkable=[forged]
    ))  # fmt: skip
    (signed / SIGNATURE).unlink()
    text = harness("verify", str(signed), run=signed).stdout.decode()
    assert "\\x1b[1A" in text
    assert all(letter.isprintable() or letter == "\n" for letter in text)
    assert [line.split(": ")[1] for line in text.splitlines() if line.startswith("signature: ")] == ["none"]


def test_a_run_that_fails_isnt_attested(run):
    """With what fails; and nothing is written."""
    (run / "gold.json").write_bytes(b"{}")
    with pytest.raises(AttestationError, match=r"files: gold.json"):
        attest(run, Places(run.parents[2]))
    assert not (run / ATTESTATION).exists()


def test_a_run_without_an_audit_record_isnt_attested(run):
    """Nothing says what the folder should hold."""
    (run / "audit.json").unlink()
    with pytest.raises(HarnessError, match="Judge the run"):
        attest(run, Places(run.parents[2]))


def test_a_signed_statement_isnt_overwritten(signed):
    """Not by another; an unsigned one is."""
    tree = Places(signed.parents[2])
    rewritten(signed, removed)
    with pytest.raises(AttestationError, match=r"Remove attestation.json and attestation.json.sig"):
        attest(signed, tree)
    (signed / SIGNATURE).unlink()
    attest(signed, tree)
    assert signature(signed)[::2] == ("none", "holds")


def test_a_run_that_is_judged_again_is_no_longer_attested(fresh_run, run_mini, key, listed):
    """Fails with the way out; attested again, the frozen files that the session compared must be among the subjects."""
    tree = fresh_run.parents[2]
    add_claims(tree, MINI, "behavior")
    accept(fresh_run, Places(tree))
    attest(fresh_run, Places(tree))
    sign(fresh_run, key)
    assert signature(fresh_run, listed)[::2] == ("holds", "holds")
    run_mini(tree, "-m", "formal", "--run", str(fresh_run))  # fails: an accepted run can't be compared with itself
    said = bad(fresh_run, listed)
    assert "subject audit.json" in said
    assert "judged or frozen again since, remove attestation.json" in said
    assert found(fresh_run, listed).verdict == "fails"
    (fresh_run / SIGNATURE).unlink()
    statement = attest(fresh_run, Places(tree))
    assert (statement.predicate.result, statement.predicate.failedTests) == ("FAILED", ("frozen_snapshots",))
    sign(fresh_run, key)
    assert signature(fresh_run, listed)[::2] == ("holds", "holds")
    rewritten(fresh_run, lambda content: content.update(
        subject=[one for one in content["subject"] if not one["name"].startswith("snapshots/")]
    ))  # fmt: skip
    sign(fresh_run, key)
    assert f"subject snapshots/{MINI}/formal/index.json: expected" in bad(fresh_run, listed)


def test_the_verbs(run, key, listed, tmp_path):
    """Attest says how to sign; verify says it in its last line, claims in its head; exit codes by who was named."""
    assert harness("verify", str(run), run=run).stdout.decode().splitlines()[-1].endswith("; unsigned: no attestation")
    done = harness("attest", str(run), run=run)
    assert (done.returncode, done.stderr) == (0, b"")
    assert f"ssh-keygen -Y sign -n {NAMESPACE} -f KEY" in done.stdout.decode()
    assert "attestation: unsigned" in harness("claims", str(run), run=run).stdout.decode()
    done = harness("verify", str(run), "--signers", str(listed), run=run)
    assert done.returncode == 1
    assert "signature fails: unsigned" in done.stdout.decode().splitlines()[-1]
    sign(run, key)
    done = harness("verify", str(run), "--signers", str(listed), run=run)
    assert (done.returncode, done.stderr) == (0, b"")
    assert f"signed by {ALICE}, key {key.fingerprint}" in done.stdout.decode().splitlines()[-1]
    done = harness("verify", str(run), run=run)
    assert done.returncode == 0
    assert "not verified" in done.stdout.decode().splitlines()[-1]
    assert "not verified here" in harness("claims", str(run), run=run).stdout.decode()
    (run / "gold.json").write_bytes(b"{}")
    done = harness("attest", str(run), run=run)
    assert (done.returncode, done.stdout) == (1, b"")


def test_a_file_of_signers_that_cannot_be_read_exits_with_2(run, key, tmp_path):
    """One line, with the number of the line at fault, and nothing is verified."""
    path = tmp_path / "signers"
    for text, words in ((None, "signers: expected"), ("# nobody\n", "at least one"), (f"{key.line()}x\n", "line 2")):
        if text is not None:
            path.write_text(text)
        done = harness("verify", str(run), "--signers", str(path), run=run)
        assert (done.returncode, done.stdout) == (2, b"")
        assert len(done.stderr.splitlines()) == 1
        assert words in done.stderr.decode()


def test_without_the_extra_signers_cannot_be_asked_for(run, listed):
    """One error that names the extra; a verification without signers needs nothing."""
    program = (
        "import sys, importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'cryptography' else real(name, *more)\n"
        "sys.modules['cryptography'] = None\n"
        "from harness.__main__ import app\napp(prog_name='python -m harness')"
    )
    environment = os.environ | {"HARNESS_ROOT": str(run.parents[2])}

    def verb(*words):
        command = [sys.executable, "-c", program, "verify", str(run), *words]
        return subprocess.run(command, env=environment, capture_output=True, check=False)

    done = verb("--signers", str(listed))
    assert (done.returncode, done.stdout) == (2, b"")
    assert "pip install -e '.[attest]'" in done.stderr.decode()
    assert verb().returncode == 0


@pytest.mark.ssh_keygen
@pytest.mark.parametrize("kind", ["ed25519", "rsa", "ecdsa"])
def test_ssh_keygen_and_verify_agree(kind, run, tmp_path):
    """Signed with the documented line; both accept it, both refuse another namespace, key and statement."""
    attest(run, Places(run.parents[2]))

    def keygen(*words, stdin=None):
        return subprocess.run(["ssh-keygen", *words], input=stdin, capture_output=True, check=False)

    for name in ("own", "other"):
        assert keygen("-q", "-t", kind, "-N", "", "-C", "", "-f", str(tmp_path / name)).returncode == 0
        (tmp_path / f"{name}.signers").write_text(f"{ALICE} {(tmp_path / f'{name}.pub').read_text()}")

    def both(namespace, signer):
        (run / SIGNATURE).unlink(missing_ok=True)
        made = keygen("-Y", "sign", "-n", namespace, "-f", str(tmp_path / signer), str(run / ATTESTATION))
        assert made.returncode == 0, made.stderr
        words = ("-f", str(tmp_path / "own.signers"), "-I", ALICE, "-n", NAMESPACE, "-s", str(run / SIGNATURE))
        theirs = keygen("-Y", "verify", *words, stdin=(run / ATTESTATION).read_bytes())
        state, said, _ = signature(run, tmp_path / "own.signers")
        if theirs.returncode == 0:
            assert re.search(r"SHA256:\S+", theirs.stdout.decode())[0] in said
        return theirs.returncode == 0, state

    assert both(NAMESPACE, "own") == (True, "holds")
    assert both("git", "own") == (False, "fails")
    assert both(NAMESPACE, "other") == (False, "fails")
