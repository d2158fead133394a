"""A time-stamp authority of the tests' own: certificates by `cryptography`, tokens by `openssl ts`, an HTTP server.

`openssl ts` refuses a signer that isn't fit: a token by such a one is signed by `openssl cms` over a real content.
"""

import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

QUERY, REPLY = "application/timestamp-query", "application/timestamp-reply"
TST_INFO = "1.2.840.113549.1.9.16.1.4"
DAY = timedelta(days=1)
CONFIG = """
[tsa]
serial = {folder}/serial
crypto_device = builtin
signer_cert = {folder}/tsa.pem
signer_key = {folder}/tsa.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256, sha512
accuracy = secs:1
ess_cert_id_chain = yes
ess_cert_id_alg = sha256
"""


@dataclass(frozen=True, slots=True)
class Authority:
    """A folder with root.pem (what somebody trusts), the signer's certificate and key, and `openssl ts`'s settings."""

    folder: Path

    @property
    def root(self) -> Path:
        """The root's certificate."""
        return self.folder / "root.pem"

    def answer(self, request: bytes) -> bytes:
        """The response to a request."""
        (self.folder / "request.tsq").write_bytes(request)
        self._openssl("ts", "-reply", "-config", self.folder / "ts.cnf", "-section", "tsa",
                      "-queryfile", self.folder / "request.tsq", "-out", self.folder / "response.tsr")  # fmt: skip
        return (self.folder / "response.tsr").read_bytes()

    def answer_by(self, request: bytes, signer: str, *, at: datetime | None = None) -> bytes:
        """The same content, or one of another time, signed by another certificate, whatever that one is fit for."""
        self.answer(request)
        self._openssl(
            "ts", "-reply", "-in", self.folder / "response.tsr", "-token_out", "-out", self.folder / "token.der"
        )
        self._openssl("cms", "-verify", "-noverify", "-inform", "DER", "-in", self.folder / "token.der",
                      "-out", self.folder / "content.der")  # fmt: skip
        if at is not None:
            path, pattern = self.folder / "content.der", rb"\x18\x0f\d{14}Z"
            moment = b"\x18\x0f" + at.strftime("%Y%m%d%H%M%SZ").encode()
            path.write_bytes(re.sub(pattern, moment, path.read_bytes()))
        self._openssl("cms", "-sign", "-binary", "-nodetach", "-md", "sha256", "-econtent_type", TST_INFO,
                      "-signer", self.folder / f"{signer}.pem", "-inkey", self.folder / f"{signer}.key",
                      "-certfile", self.root, "-outform", "DER", "-in", self.folder / "content.der",
                      "-out", self.folder / "forged.der")  # fmt: skip
        status = b"\x30\x03\x02\x01\x00"
        return _sequence(status + (self.folder / "forged.der").read_bytes())

    def certify(self, name: str, *, usage=ExtendedKeyUsageOID.TIME_STAMPING, critical=True, until: datetime) -> None:
        """Another signer: NAME.pem and NAME.key, valid from ten days before its end."""
        key = rsa.generate_private_key(65537, 2048)
        root = x509.load_pem_x509_certificate(self.root.read_bytes())
        root_key = serialization.load_pem_private_key((self.folder / "root.key").read_bytes(), None)
        made = _builder(f"tests' {name}", key, root.subject, until - 10 * DAY, until)
        made = made.add_extension(x509.ExtendedKeyUsage([usage]), critical=critical)
        made = made.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        made = made.add_extension(_usage(signs=True), critical=True)
        _write(self.folder / name, made.sign(root_key, hashes.SHA256()), key)

    def _openssl(self, *arguments: str | Path) -> None:
        done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"openssl {arguments[0]}: {done.stderr}")


def make_authority(folder: Path) -> Authority:
    """A root, a signer fit for time stamps, and settings."""
    folder.mkdir(parents=True)
    key, now = rsa.generate_private_key(65537, 2048), datetime.now(UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"root of {folder.name}")])
    made = _builder(f"root of {folder.name}", key, subject, now - 20 * DAY, now + 20 * DAY)
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    made = made.add_extension(_usage(signs=False), critical=True)
    _write(folder / "root", made.sign(key, hashes.SHA256()), key)
    (folder / "serial").write_text("01\n")
    (folder / "ts.cnf").write_text(CONFIG.format(folder=folder))
    found = Authority(folder)
    found.certify("tsa", until=now + 5 * DAY)
    return found


@contextmanager
def served(answer) -> Iterator[str]:
    """The address, on this machine alone, of a server that answers requests with `answer(request)`."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = self.rfile.read(int(self.headers["Content-Length"]))
            data = answer(asked) if self.headers["Content-Type"] == QUERY else b""
            self.send_response(200)
            self.send_header("Content-Type", REPLY if data else "text/plain")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_) -> None:
            """Nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/tsa"
        finally:
            server.shutdown()
            thread.join()


def _builder(name: str, key, issuer: x509.Name, since: datetime, until: datetime) -> x509.CertificateBuilder:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    made = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    return made.serial_number(x509.random_serial_number()).not_valid_before(since).not_valid_after(until)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=signs, key_cert_sign=not signs, crl_sign=not signs, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _write(path: Path, certificate: x509.Certificate, key) -> None:
    plain = serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    path.with_suffix(".pem").write_bytes(certificate.public_bytes(pem))
    path.with_suffix(".key").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))


def _sequence(content: bytes) -> bytes:
    raw = len(content).to_bytes((len(content).bit_length() + 7) // 8, "big")
    return b"\x30" + bytes([0x80 | len(raw)]) + raw + content  # the long form, which content of 128 bytes or more has
