"""Who may sign: a file in OpenSSH's allowed_signers format (ssh-keygen(1), ALLOWED SIGNERS), read strictly.

One signer a line: principals, options, key. A line that can't be read ends the reading: nobody is left out in silence.
A `cert-authority` line names no signer here, because certificates aren't supported.
"""

import base64
import binascii
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from harness.errors import AttestationError
from harness.files import read_given
from harness.verify.keys import key_type

FORMAT = 'PRINCIPALS [namespaces="..."][,valid-after="..."][,valid-before="..."] KEY-TYPE BASE64-KEY'
_PRINCIPALS = re.compile(r'(?:"([^"]+)"|([^\s"]+))[ \t]+')
_KEY = re.compile(r"([A-Za-z0-9@.-]+)[ \t]+([A-Za-z0-9+/]+=*)(?:[ \t].*)?")
_OPTION = re.compile(r'(?:(cert-authority)|(namespaces|valid-after|valid-before)="([^"\\]+)")(,|[ \t]+)', re.IGNORECASE)
_TIME = re.compile(r"(\d{8})(\d{4})?(\d{2})?(Z?)")


@dataclass(frozen=True, slots=True)
class Signer:
    """One line. `key`: the public key's blob; `options`: by lower-case name; `line`: from 1."""

    principals: str
    options: dict[str, str]
    key: bytes
    line: int

    def refuses(self, namespace: str, now: datetime) -> str | None:
        """Why this line doesn't let its key sign in the namespace at this moment; None where it does."""
        if "cert-authority" in self.options:
            return "only as cert-authority, and certificates aren't supported"
        names = self.options.get("namespaces")
        if names is not None and not _matches(namespace, names):
            return f"only in namespaces {names}"
        after, before = self.options.get("valid-after"), self.options.get("valid-before")
        if after is not None and now < _moment(after):
            return f"only after {after}"
        if before is not None and now > _moment(before):
            return f"only before {before}"
        return None


@dataclass(frozen=True, slots=True)
class Signers:
    """The lines of a file, and the moment at which their validity is asked for (with its offset from UTC)."""

    name: str
    lines: tuple[Signer, ...]
    now: datetime


def read_signers(path: Path, now: datetime) -> Signers:
    """A file of signers; AttestationError with the number of the first line that isn't one, or where there is none."""
    data = read_given(path, what="file of signers")
    found = []
    for number, raw in enumerate(data.split(b"\n"), 1):
        try:
            line = raw.decode("utf-8").strip(" \t\r")
        except UnicodeDecodeError as error:
            raise _refused(path, number, "other bytes") from error
        if line and not line.startswith("#"):
            found.append(_signer(path, number, line))
    if not found:
        todo = "Name a file with a line for each key that may sign."
        raise AttestationError(str(path), expected="at least one signer", found="none", todo=todo)
    return Signers(path.name, tuple(found), now)


def _signer(path: Path, number: int, line: str) -> Signer:
    head = _PRINCIPALS.match(line)
    if head is None:
        raise _refused(path, number, "no principals before a key")
    options, rest = _options(path, number, line[head.end() :])
    match = _KEY.fullmatch(rest)
    if match is None:
        raise _refused(path, number, "no key, or an unknown option")
    try:
        key = base64.b64decode(match[2], validate=True)
    except binascii.Error as error:
        raise _refused(path, number, "a key that isn't base64") from error
    if key_type(key) != match[1].encode():
        raise _refused(path, number, f"a key that isn't {match[1]}")
    return Signer(head[1] or head[2], options, key, number)


def _options(path: Path, number: int, rest: str) -> tuple[dict[str, str], str]:
    """The options before a key, and what follows them."""
    options: dict[str, str] = {}
    more = _KEY.fullmatch(rest) is None
    while more and (match := _OPTION.match(rest)) is not None:
        name = (match[1] or match[2]).lower()
        if name in options:
            raise _refused(path, number, f"{name} twice")
        options[name] = match[3] or ""
        if name.startswith("valid-") and not _is_moment(options[name]):
            raise _refused(path, number, f"{name} that is no time")
        more, rest = match[4] == ",", rest[match.end() :]
    return options, rest


def _is_moment(text: str) -> bool:
    try:
        _moment(text)
    except ValueError:
        return False
    return True


def _moment(text: str) -> datetime:
    """YYYYMMDD[HHMM[SS]][Z] as OpenSSH reads it: without Z in the machine's own time."""
    match = _TIME.fullmatch(text)
    if match is None or (match[3] and not match[2]):
        raise ValueError(text)
    found = datetime.strptime(f"{match[1]}{match[2] or '0000'}{match[3] or '00'}", "%Y%m%d%H%M%S")
    return found.replace(tzinfo=UTC) if match[4] else found.astimezone()


def _matches(name: str, patterns: str) -> bool:
    """OpenSSH's pattern lists: `*`, `?`, and a `!` that outweighs every other."""
    found = False
    for one in patterns.split(","):
        plain = one.removeprefix("!")
        wanted = "".join({"*": ".*", "?": "."}.get(letter, re.escape(letter)) for letter in plain)
        if re.fullmatch(wanted, name, re.DOTALL):
            if one != plain:
                return False
            found = True
    return found


def _refused(path: Path, number: int, found: str) -> AttestationError:
    todo = "Mend the line, or take it out: `ssh-keygen -Y verify` reads the same format."
    return AttestationError(f"{path}: line {number}", expected=FORMAT, found=found, todo=todo)
