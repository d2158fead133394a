"""SSH signatures and files of signers: what ssh-keygen writes is read, and nothing else is."""

import base64
import random
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pregate_support.signing import NAMESPACE, Key, armoured, ecdsa_key, ed25519_key, packed, rsa_key

from harness.errors import AttestationError
from harness.verify.keys import key_type, made_by
from harness.verify.signers import read_signers
from harness.verify.sshsig import fingerprint, read_signature

SSH = Path(__file__).parent / "ssh"  # five keys' signatures over message.txt, by OpenSSH 9.2's ssh-keygen -Y sign
MESSAGE = (SSH / "message.txt").read_bytes()
NAMES = ("ed25519", "rsa3072", "ecdsa256", "ecdsa384", "ecdsa521")
NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)
MAKERS = {"ed25519": ed25519_key, "rsa": rsa_key, "ecdsa": ecdsa_key}


@pytest.fixture(scope="module")
def key() -> Key:
    """One Ed25519 key."""
    return ed25519_key()


def verified(data: bytes, message: bytes = MESSAGE) -> bool:
    """Whether the file's own key made it over the message; an AttestationError counts as no."""
    try:
        return made_by(read_signature(data, where="sig"), message, where="sig")
    except AttestationError:
        return False


@pytest.mark.parametrize("name", NAMES)
def test_what_ssh_keygen_signed_is_verified(name):
    """Real signatures of five kinds: over these bytes, by this key, in this namespace, and over no others."""
    data = (SSH / f"{name}.sig").read_bytes()
    found = read_signature(data, where=name)
    kind, blob = (SSH / f"{name}.pub").read_text().split()
    assert (found.key, key_type(found.key).decode()) == (base64.b64decode(blob), kind)
    assert found.namespace == NAMESPACE.encode()
    assert verified(data)
    assert not verified(data, MESSAGE + b"\n")
    assert not verified(data, MESSAGE[:-1])


@pytest.mark.parametrize("name", NAMES)
def test_another_byte_anywhere_is_no_signature(name):
    """Every byte of the file, changed in one bit: another reading or none, and never verified."""
    data = (SSH / f"{name}.sig").read_bytes()
    end = len(data) - 1  # the last newline may be missing, not another byte
    held = []
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 1 << random.Random(at).randrange(8)
        held += [at] if verified(bytes(changed)) else []
    assert held == []
    assert verified(data[:end])


@pytest.mark.parametrize("kind", MAKERS)
def test_the_written_signatures_are_verified(kind):
    """The control of what follows: signatures made here are like ssh-keygen's."""
    made = MAKERS[kind]()
    assert verified(made.sign(MESSAGE))
    assert verified(made.sign(MESSAGE, hash_name="sha256"))
    assert fingerprint(made.blob) == made.fingerprint


@pytest.mark.parametrize(("changed", "words"), [
    ({"hash_name": "md5"}, "sha256 or sha512"),
    ({"hash_name": "sha1"}, "sha256 or sha512"),
    ({"version": 2}, "SSHSIG version 1"),
    ({"reserved": b"x"}, "an empty reserved field"),
    ({"after": b"x"}, "1 bytes after them"),
    ({"algorithm": b"ssh-rsa"}, "expected ssh-ed25519, found b'ssh-rsa'"),
    ({"algorithm": b"ssh-ed25519-cert-v01@openssh.com"}, "expected ssh-ed25519"),
])  # fmt: skip
def test_a_signature_of_another_form_is_refused(changed, words, key):
    """Signed correctly, and still not what ssh-keygen writes for such a key."""
    with pytest.raises(AttestationError, match=re.escape(words)):
        made_by(read_signature(key.sign(MESSAGE, **changed), where="sig"), MESSAGE, where="sig")


@pytest.mark.parametrize("changed", [
    pytest.param(lambda data: b"x" + data, id="text before"),
    pytest.param(lambda data: data + b"x", id="text after"),
    pytest.param(lambda data: data + data, id="twice"),
    pytest.param(lambda data: data.replace(b"\n", b"\r\n"), id="other line ends"),
    pytest.param(lambda data: data.replace(b"\n", b" \n", 2), id="a space"),
    pytest.param(lambda data: data.replace(b"SSH SIGNATURE", b"PGP SIGNATURE"), id="another kind"),
    pytest.param(lambda data: data[: len(data) // 2], id="half"),
    pytest.param(lambda _data: b"", id="empty"),
    pytest.param(lambda _data: armoured(b"SSHSIG"), id="no fields"),
    pytest.param(lambda _data: armoured(b"SSHSIG\0\0\0\1" + b"\xff\xff\xff\xff"), id="a length beyond the end"),
])  # fmt: skip
def test_armour_is_read_strictly(changed, key):
    """One file has one reading."""
    with pytest.raises(AttestationError):
        read_signature(changed(key.sign(MESSAGE)), where="sig")


def test_rsa_with_sha1_or_a_short_key_is_refused():
    """What OpenSSH no longer makes isn't verified."""
    with pytest.raises(AttestationError, match="rsa-sha2-256 or rsa-sha2-512"):
        made_by(read_signature(rsa_key().sign(MESSAGE, algorithm=b"ssh-rsa"), where="sig"), MESSAGE, where="sig")
    with pytest.raises(AttestationError, match="2048 bits or more"):
        made_by(read_signature(rsa_key(1024).sign(MESSAGE), where="sig"), MESSAGE, where="sig")


def test_a_key_that_is_none_is_refused(key):
    """Of a known type, with other bytes inside, or bytes after."""
    for blob in (packed(b"ssh-ed25519", b"short"), key.blob + b"\0", packed(b"ssh-rsa", b"\3", b"\1")):
        found = read_signature(key.sign(MESSAGE, public=blob), where="sig")
        with pytest.raises(AttestationError):
            made_by(found, MESSAGE, where="sig")


def signers(tmp_path, text, now=NOW):
    """The file, read."""
    path = tmp_path / "signers"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_signers(path, now)


def test_signers_are_read_line_by_line(tmp_path, key):
    """Comments, empty lines, quotes, options in any case, comments after a key."""
    text = (
        f"# who\n\n{key.line()}"
        f'"bob smith" {key.public} a comment\n'
        f'carol,dave NAMESPACES="git,{NAMESPACE}",valid-after="20260101",valid-before="20261231235959Z" {key.public}\n'
    )
    found = signers(tmp_path, text).lines
    assert [(one.principals, one.line) for one in found] == [
        ("alice@example.org", 3), ("bob smith", 4), ("carol,dave", 5),
    ]  # fmt: skip
    assert {one.key for one in found} == {key.blob}
    assert [one.refuses(NAMESPACE, NOW) for one in found] == [None, None, None]


@pytest.mark.parametrize(("options", "refused"), [
    ('namespaces="git"', True),
    ('namespaces="attestation@*"', False),
    ('namespaces="*,!attestation@pregate"', True),
    ('namespaces="attestation?pregate"', False),
    ('namespaces="ATTESTATION@PREGATE"', True),
    ('namespaces="attestation@pregate.org"', True),
    ('namespaces="[a]ttestation@pregate"', True),
    ('valid-after="20260615120000Z"', False),
    ('valid-after="20260615120001Z"', True),
    ('valid-before="20260615120000Z"', False),
    ('valid-before="20260615115959Z"', True),
    ('valid-before="20260614"', True),
    ('cert-authority', True),
    (f'cert-authority,namespaces="{NAMESPACE}"', True),
])  # fmt: skip
def test_options_are_openssh_s(options, refused, tmp_path, key):
    """Namespaces by pattern, the exception before the rule; both ends of the validity belong to it."""
    (one,) = signers(tmp_path, key.line(options=options)).lines
    assert (one.refuses(NAMESPACE, NOW) is not None) == refused


def test_a_time_without_z_is_the_machines(tmp_path, key):
    """As OpenSSH reads it."""
    now = datetime(2026, 6, 15, 12, 30).astimezone()
    (one,) = signers(tmp_path, key.line(options='valid-after="202606151230"')).lines
    assert one.refuses(NAMESPACE, now) is None
    assert one.refuses(NAMESPACE, now - timedelta(seconds=1)) is not None


@pytest.mark.parametrize("line", [
    "alice@example.org",
    "alice@example.org ssh-ed25519",
    "alice@example.org ssh-ed25519 ????",
    "alice@example.org ssh-ed25519 QUJD",
    "alice@example.org ssh-rsa {blob}",
    'alice@example.org unknown="x" {key}',
    'alice@example.org no-touch-required {key}',
    'alice@example.org namespaces="x {key}',
    'alice@example.org namespaces=x {key}',
    'alice@example.org namespaces="x",namespaces="y" {key}',
    'alice@example.org namespaces="a\\"b" {key}',
    'alice@example.org valid-before="tomorrow" {key}',
    'alice@example.org valid-before="20261332" {key}',
    '"alice {key}',
    '"" {key}',
    "{key}",
])  # fmt: skip
def test_a_line_that_is_no_signer_is_named(line, tmp_path, key):
    """One error, with its number; no other line is taken meanwhile."""
    text = f"# one\n{key.line()}{line.format(key=key.public, blob=key.public.split()[1])}\n"
    with pytest.raises(AttestationError) as caught:
        signers(tmp_path, text)
    assert f"{tmp_path / 'signers'}: line 3: expected PRINCIPALS" in str(caught.value)


@pytest.mark.parametrize("text", ["", "\n\n", "# nobody\n"])
def test_a_file_that_names_nobody_is_refused(text, tmp_path):
    """It would make every signature fail, and the reason is the file."""
    with pytest.raises(AttestationError, match="at least one signer, found none"):
        signers(tmp_path, text)


def test_bytes_that_are_no_text_are_named(tmp_path):
    """With the line."""
    with pytest.raises(AttestationError, match="line 2"):
        signers(tmp_path, b"# x\n\xff\xfe\n")
