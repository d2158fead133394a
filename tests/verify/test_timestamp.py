"""Anchors in time against an authority of the tests' own: by network, by hand, and every token that mustn't hold."""

import json
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID
from pregate_support.authority import Authority, make_authority, served
from pregate_support.revising import PROTOCOL, amended, nano_tree, propose
from typer.testing import CliRunner

from harness.__main__ import app
from harness.canon import canonical_bytes
from harness.cli.authority import ask
from harness.errors import ProtocolError, SessionError, TimestampError
from harness.places import Places
from harness.protocols.anchor import ASKED, OWED, anchor_of, anchor_words
from harness.protocols.load import load_line, load_protocol
from harness.records.base import decode_json
from harness.records.verbs import AnchoredProtocol, FrozenProtocol
from harness.verify.rfc3161 import make_request, nonce_of, stamped
from harness.verify.timestamp import keep, request_for, timestamp_line

pytestmark = pytest.mark.openssl
DAY = timedelta(days=1)
NOW = datetime.now(UTC)
SIGNERS = {
    "expired": {"until": NOW - DAY},
    "not yet valid": {"until": NOW + 15 * DAY},
    "another usage": {"until": NOW + DAY, "usage": ExtendedKeyUsageOID.SERVER_AUTH},
    "usage not critical": {"until": NOW + DAY, "critical": False},
    "fit": {"until": NOW + DAY},
}


@pytest.fixture(scope="session")
def authority(tmp_path_factory) -> Authority:
    """Who is trusted, with further signers that its root has certified."""
    made = make_authority(tmp_path_factory.mktemp("tsa") / "trusted")
    for name, fields in SIGNERS.items():
        made.certify(name, **fields)
    return made


@pytest.fixture(scope="session")
def stranger(tmp_path_factory) -> Authority:
    """Who isn't."""
    return make_authority(tmp_path_factory.mktemp("tsa") / "stranger")


@pytest.fixture
def tree(tmp_path, monkeypatch) -> Places:
    """The tree in use, with one frozen protocol."""
    made = nano_tree(tmp_path / "tree")
    monkeypatch.setenv("HARNESS_ROOT", str(made.root))
    return made


@pytest.fixture
def loaded(tree):
    """Its protocol."""
    return load_protocol(PROTOCOL, tree)


@pytest.fixture
def anchored(tree, loaded, authority):
    """The same, anchored."""
    keep(loaded, authority.answer(request_for(loaded)), authority.root.read_bytes())
    return load_protocol(PROTOCOL, tree)


def call(*words):
    """A verb's result."""
    done = CliRunner().invoke(app, [str(one) for one in words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def test_without_a_token_the_timestamp_is_owed(loaded):
    """Which is said, and no fault."""
    line = timestamp_line(loaded)
    assert (line.step, line.state, line.found) == ("timestamp", "none", OWED)
    done = call("anchor", PROTOCOL)
    assert (done.exit_code, done.stdout) == (0, f"{PROTOCOL}: none: {OWED}\n")


def test_over_the_network(tree, authority):
    """Asked for, verified, kept beside the digest; then it holds offline, by certificates beside it or named."""
    with served(authority.answer) as url:
        done = call("anchor", PROTOCOL, "--tsa", url, "--authority", authority.root, "--json")
    made = decode_json(done.stdout_bytes, AnchoredProtocol, where="stdout", error=ProtocolError, todo="")
    loaded = load_protocol(PROTOCOL, tree)
    assert (done.exit_code, made.state, made.protocol_digest) == (0, "holds", loaded.digest)
    assert "by CN=tests' tsa" in made.said
    anchor = anchor_of(loaded)
    assert anchor.protocol_digest == loaded.digest
    assert timestamp_line(loaded).state == "holds"
    assert "certificates.pem, which lies beside it" in timestamp_line(loaded).found
    named = timestamp_line(loaded, authority.root.read_bytes())
    assert (named.state, named.found) == ("holds", named.expected)
    assert anchor.at in anchor_words(loaded)


def test_by_hand(tree, loaded, authority, tmp_path):
    """The request is a file that an authority answers elsewhere; its answer is brought back as a file."""
    done = call("anchor", PROTOCOL, "--request")
    path = loaded.folder / "anchor/request.tsq"
    assert done.exit_code == 0
    assert str(path) in done.stdout
    assert ASKED in done.stdout
    assert anchor_words(loaded) == ASKED
    request = path.read_bytes()
    assert call("anchor", PROTOCOL, "--request").exit_code == 0
    assert path.read_bytes() == request  # asking again is asking the same
    (tmp_path / "answer.tsr").write_bytes(authority.answer(request))
    done = call("anchor", PROTOCOL, "--response", tmp_path / "answer.tsr", "--authority", authority.root)
    assert (done.exit_code, timestamp_line(load_protocol(PROTOCOL, tree)).state) == (0, "holds")


def test_openssl_agrees(anchored, authority):
    """The kept files are what `openssl ts -verify` takes: the data is PROTOCOL.sha256."""
    folder = anchored.folder
    command = ["openssl", "ts", "-verify", "-data", folder / "PROTOCOL.sha256", "-in", folder / "anchor/response.tsr"]
    done = subprocess.run([*command, "-CAfile", authority.root], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (folder / "PROTOCOL.sha256").write_text("other")
    assert subprocess.run([*command, "-CAfile", authority.root], capture_output=True, check=False).returncode != 0


def test_a_protocol_is_frozen_and_anchored_in_one_step(tree, authority):
    """`freeze --anchor`: the record says when and by whom."""
    with served(authority.answer) as url:
        done = call("freeze", PROTOCOL, "--anchor", url, "--authority", authority.root, "--json")
    made = decode_json(done.stdout_bytes, FrozenProtocol, where="stdout", error=ProtocolError, todo="")
    assert made.timestamp == anchor_words(load_protocol(PROTOCOL, tree))
    assert made.timestamp.startswith("anchored at 20")
    again = call("freeze", PROTOCOL)
    assert (again.exit_code, "and no revision or anchor" in again.stderr) == (1, True)


@pytest.mark.parametrize("option", ["--anchor", "--authority"])
def test_an_authority_is_named_with_its_certificates(option, tree):
    """Before anything is frozen."""
    done = call("freeze", PROTOCOL, option, "http://127.0.0.1:9/")
    assert (done.exit_code, "expected --anchor with --authority" in done.stderr) == (1, True)
    assert call("anchor", PROTOCOL, "--tsa", "http://127.0.0.1:9/").exit_code == 1


def test_a_token_of_another_digest_is_refused(tree, loaded, authority):
    """An answer over other bytes, whoever signed it."""
    request_for(loaded)
    answer = authority.answer(make_request(b"another protocol"))
    with pytest.raises(TimestampError, match="imprint: expected SHA-256"):
        keep(loaded, answer, authority.root.read_bytes())
    assert anchor_of(loaded) is None


def test_an_answer_to_another_request_is_refused(loaded, authority):
    """The same bytes, another nonce: an old answer isn't passed off as this one."""
    request_for(loaded)
    answer = authority.answer(make_request(f"{loaded.digest}  protocol\n".encode()))
    with pytest.raises(TimestampError, match="nonce: expected"):
        keep(loaded, answer, authority.root.read_bytes())


def test_an_untrusted_authority_is_refused(loaded, authority, stranger):
    """Its token is whole, and its root is nobody's that was named."""
    answer = stranger.answer(request_for(loaded))
    with pytest.raises(TimestampError, match=r"token: .*unable to get local issuer certificate"):
        keep(loaded, answer, authority.root.read_bytes())


@pytest.mark.parametrize(
    ("signer", "words"),
    [
        ("expired", "certificate has expired"),
        ("not yet valid", "certificate is not yet valid"),
        ("another usage", "unsuitable certificate purpose"),
        ("usage not critical", "unsuitable certificate purpose"),
    ],
)
def test_a_certificate_that_may_not_stamp_is_refused(signer, words, loaded, authority):
    """By validity at the token's own time, and by a critical usage for time stamps and nothing else."""
    answer = authority.answer_by(request_for(loaded), signer)
    with pytest.raises(TimestampError, match=words):
        keep(loaded, answer, authority.root.read_bytes())


def test_the_same_way_of_signing_holds_by_a_fit_certificate(loaded, authority):
    """The control of the refusals above."""
    assert keep(loaded, authority.answer_by(request_for(loaded), "fit"), authority.root.read_bytes()).serial


def test_a_certificate_must_have_been_valid_then_and_not_today(loaded, authority):
    """A token outlives the certificate that signed it."""
    then = NOW - 3 * DAY
    answer = authority.answer_by(request_for(loaded), "expired", at=then)
    assert keep(loaded, answer, authority.root.read_bytes()).at == then.strftime("%Y-%m-%dT%H:%M:%SZ")


def test_no_altered_signature_or_content_holds(authority):
    """Every byte of the stamped content, of the certificate and of the signature, flipped."""
    message = b"digest"
    request = make_request(message)
    answer, roots = authority.answer(request), authority.root.read_bytes()
    found = {"request": request, "message": message, "certificates": roots, "where": "token"}
    good = stamped(answer, **found)
    passed = []
    for at in range(len(answer)):
        other = bytearray(answer)
        other[at] ^= 1
        try:
            if stamped(bytes(other), **found) != good:
                passed.append(at)
        except TimestampError:
            continue
    assert passed == []  # what no signature covers says nothing else: anchor.json has the digest of every byte


@pytest.mark.parametrize("data", [b"", b"garbage", b"\x30\x03\x02\x01\x00", b"\x30\x05\x30\x03\x02\x01\x02"])
def test_what_is_no_response_is_refused(data, loaded, authority):
    """Other bytes, and a response without a token."""
    request_for(loaded)
    with pytest.raises(TimestampError):
        keep(loaded, data, authority.root.read_bytes())


@pytest.mark.parametrize("name", ["request.tsq", "response.tsr", "certificates.pem", "anchor.json"])
def test_an_altered_file_of_an_anchor_fails(name, anchored, tree):
    """In verify's words, and in every command that reads it."""
    path = anchored.folder / "anchor" / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert timestamp_line(anchored).state == "fails"
    assert call("anchor", PROTOCOL).exit_code == 1


@pytest.mark.parametrize("name", ["request.tsq", "response.tsr", "certificates.pem", "anchor.json"])
def test_a_missing_file_of_an_anchor_fails(name, anchored):
    """An anchor is whole, or there is none."""
    (anchored.folder / "anchor" / name).unlink()
    assert timestamp_line(anchored).state == "fails"


def test_a_forged_record_fails(anchored):
    """Another time in anchor.json, in canonical bytes: the token's own words are compared."""
    path = anchored.folder / "anchor/anchor.json"
    path.write_bytes(canonical_bytes(json.loads(path.read_bytes()) | {"at": "2001-01-01T00:00:00Z"}))
    line = timestamp_line(anchored)
    assert (line.state, "2001-01-01" in line.found) == ("fails", True)


def test_certificates_of_ones_own_make_no_token_hold(anchored, stranger):
    """Whoever holds the repository may put a root beside the token; who verifies names the one that they trust."""
    line = timestamp_line(anchored, stranger.root.read_bytes())
    assert (line.state, line.found) == ("fails", "unable to get local issuer certificate")


def test_an_anchor_of_another_protocol_fails(tmp_path, anchored):
    """A whole anchor, moved beside another digest."""
    tree = nano_tree(tmp_path / "other", "nano-depth")
    other = load_protocol("nano-depth", tree)
    shutil.copytree(anchored.folder / "anchor", other.folder / "anchor")
    line = timestamp_line(other)
    assert (line.state, line.expected) == ("fails", other.digest)


def test_an_anchor_stays(anchored, authority):
    """One digest, one anchor."""
    with pytest.raises(TimestampError, match="expected no anchor yet"):
        request_for(anchored)
    done = call("anchor", PROTOCOL, "--response", authority.root, "--authority", authority.root)
    assert done.exit_code == 1


def test_a_revision_takes_its_anchor_along(anchored, tree):
    """The superseded digest stays anchored; the new one owes its own."""
    amended(tree, "Second title")
    first, second = load_line(tree.protocols / PROTOCOL, tree)
    assert (timestamp_line(first).state, timestamp_line(second).state) == ("holds", "none")
    assert anchor_words(second) == OWED


def test_no_anchor_is_proposed_with_an_amendment(anchored, tree):
    """amendment/ holds what an author writes."""
    propose(tree, "Second title")
    shutil.copytree(anchored.folder / "anchor", anchored.folder / "amendment/anchor")
    done = call("amend", PROTOCOL, "--reason", "why")
    assert (done.exit_code, "found anchor" in done.stderr) == (1, True)


def test_without_the_package_a_token_cannot_be_checked(anchored, monkeypatch):
    """Which is exit code 2, and owed is still owed."""
    monkeypatch.setattr("harness.verify.rfc3161.importlib.util.find_spec", lambda _: None)
    line = timestamp_line(anchored)
    assert (line.state, "'.[anchor]'" in line.todo) == ("not checkable", True)
    assert call("anchor", PROTOCOL).exit_code == 2
    shutil.rmtree(anchored.folder / "anchor")
    assert call("anchor", PROTOCOL).exit_code == 0
    with pytest.raises(SessionError):
        request_for(anchored)


@pytest.mark.parametrize(
    ("answer", "words"),
    [(lambda _: b"", "expected application/timestamp-reply"), (lambda _: b"x" * (2 << 20), "of at most 1048576 bytes")],
)
def test_what_a_server_may_not_answer(answer, words):
    """Another kind of document, or one without end."""
    with served(answer) as url, pytest.raises(TimestampError, match=words):
        ask(url, b"request")


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://127.0.0.1/", "127.0.0.1"])
def test_only_http_is_asked(url):
    """No address of another kind is opened."""
    with pytest.raises(TimestampError, match="expected an http or https address"):
        ask(url, b"request")


def test_nobody_there(loaded):
    """The request stays, to be taken there by other means."""
    with pytest.raises(TimestampError, match="expected an answer"):
        ask("http://127.0.0.1:9/", request_for(loaded))


@pytest.mark.parametrize("words", [("--request", "--tsa", "http://127.0.0.1:9/"), ("--request", "--response", "x")])
def test_a_token_is_had_in_one_way(words, tree):
    """Not in two at once."""
    done = call("anchor", PROTOCOL, *words)
    assert (done.exit_code, "expected one of --tsa, --response, --request" in done.stderr) == (1, True)


def test_an_answer_needs_a_request(tree, authority):
    """Nothing was asked, so nothing can be an answer."""
    done = call("anchor", PROTOCOL, "--response", authority.root, "--authority", authority.root)
    assert (done.exit_code, "Write the request first" in done.stderr) == (1, True)


@pytest.mark.parametrize("data", [b"", b"zz", b"\x30\x00", b"\x30\x03\x02\x01\x01", b"\x30\x82\xff\xff\x02"])
def test_a_request_without_a_nonce_is_none(data):
    """Its two integers are the version and the nonce."""
    with pytest.raises(TimestampError, match="request: expected"):
        nonce_of(data, where="token")


def test_a_nonce_is_read_as_openssl_reads_it(tmp_path: Path):
    """`openssl ts -query -text` prints it."""
    request = make_request(b"x")
    (tmp_path / "request.tsq").write_bytes(request)
    command = ["openssl", "ts", "-query", "-in", tmp_path / "request.tsq", "-text"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (shown,) = [line.split("0x")[1] for line in text.splitlines() if line.startswith("Nonce: 0x")]
    assert nonce_of(request, where="x") == int(shown, 16)
