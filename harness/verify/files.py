"""Every byte of the folder: the audit record under its detached digest, then each file that it lists, and no other."""

import re
from collections.abc import Iterable, Iterator

from harness.canon import canonical_bytes, is_canonical, sha256_hex
from harness.errors import HarnessError
from harness.files import read_bytes
from harness.journal.folder import RunFolder
from harness.journal.naming import result_name
from harness.places import OF_A_RUN
from harness.records.audit import Audit
from harness.records.base import decode_json
from harness.snapshots.judgements import TRIO, altered_since_judged
from harness.snapshots.store import ATTESTATION, JUDGEMENTS, SIGNATURE, links, run_files
from harness.verify.ground import RESTORE, Ground, Lines, compared, fails, holds, nothing

AUDIT, DIGEST, JUNIT = "audit.json", "audit.json.sha256", "junit.xml"
FOLLOWS = ("run.json", "ledger.json", "statistics.json")
_HALF = re.compile(r"\..+\.[0-9a-f]{32}\.partial")


def detached(folder: RunFolder, name: str = "") -> Iterator[tuple[str, str, str]]:
    """(where, expected, found) where audit.json and its detached digest don't agree, byte for byte."""
    data = read_bytes(folder.file(AUDIT), what="audit record")
    stored = read_bytes(folder.file(DIGEST), what="detached digest")
    wanted = f"{sha256_hex(data)}  {AUDIT}\n".encode()
    if stored != wanted:
        found = stored.decode("ascii", "backslashreplace").strip()
        yield f"{name}{AUDIT} and {name}{DIGEST}", wanted.decode().strip(), found


def files_hold(ground: Ground) -> Lines:
    """Each listed file has its digest, and nothing else lies in the folder."""
    here, listed = run_files(ground.folder), ground.audit.files
    names = sorted({*here, *listed})
    pairs = [(name, listed.get(name, "no such file"), here.get(name, "no such file")) for name in names]
    found = list(compared("files", pairs, RESTORE))
    found += [fails("files", one.partition(":")[0], "no link", one, RESTORE) for one in links(ground.folder)]
    found += [*_canonical(ground.folder, here), *_uncovered(ground.folder)]
    yield from found or [holds("files", ground.folder.path.name, f"{len(listed)} files", f"{len(here)} files")]


def _canonical(folder: RunFolder, names: Iterable[str]) -> Lines:
    """Every record is in the one encoding: another reads differently to who takes the first of two equal names.

    The run's own three that follow from others are left to the step that makes them again, byte for byte.
    """
    kept = f"{OF_A_RUN}/"  # a copy of an author's own protocol, whose files have digests of their own
    for name in (one for one in names if one.endswith(".json") and one not in FOLLOWS and not one.startswith(kept)):
        if not is_canonical(read_bytes(folder.file(name), what="record")):
            yield fails("files", name, "canonical JSON", "other bytes", RESTORE)


def _uncovered(folder: RunFolder) -> Lines:
    """What no digest covers: empty locks, the log of a session that another one started, a write that was cut off.

    A statement over the run and its signature can't be listed by what they are over: steps of their own judge them.
    """
    for path in sorted(folder.path.rglob("*")):
        inside = path.relative_to(folder.path)
        if not (path.is_file() or path.is_dir() or path.is_symlink()):
            yield fails("files", inside, "a file", "a pipe, socket or device", RESTORE)
        if not path.is_file():
            continue
        if "locks" in inside.parts and (path.suffix != ".lock" or path.stat().st_size):
            yield fails("files", inside, "an empty .lock file", f"{path.stat().st_size} bytes", RESTORE)
        if path.suffix == ".partial" and not _HALF.fullmatch(path.name):
            yield fails("files", inside, "no such file", "a file of no session", RESTORE)
        elif path.suffix == ".partial":
            yield nothing("files", inside, "not covered", "what a write left that was cut off")
        if inside.as_posix() == "session.log":
            yield nothing("files", inside, "not covered", "output of the session that made the run")
        if inside.as_posix() in (ATTESTATION, SIGNATURE):
            yield nothing("files", inside, "not covered", "written over the audit record, after it")


def judgements_hold(ground: Ground) -> Lines:
    """Earlier audit records, each under its digest, with its JUnit file; no file that an earlier one saw altered."""
    folders = sorted((ground.folder.path / JUDGEMENTS).glob("*"))
    if not folders:
        yield nothing("judgements", JUDGEMENTS, "none", "the run was judged once")
        return
    found, altered = [], altered_since_judged(ground.folder)
    for path in folders:
        found += list(_judgement(RunFolder(path), f"{JUDGEMENTS}/{path.name}/"))
    found += [fails("judgements", one, "as judged first", "another", RESTORE) for one in altered]
    yield from found or [holds("judgements", JUDGEMENTS, f"{len(folders)} earlier", f"{len(folders)} earlier")]


def _judgement(folder: RunFolder, name: str) -> Lines:
    try:
        yield from compared("judgements", detached(folder, name), RESTORE)
        data = read_bytes(folder.file(AUDIT), what="audit record")
        audit = decode_json(data, Audit, where=name, error=_BrokenError, todo=RESTORE)
        junit = sha256_hex(read_bytes(folder.file(JUNIT), what="JUnit file"))
        pairs: list[tuple[object, object, object]] = [(f"{name}{JUNIT}", audit.files.get(JUNIT, "no such file"), junit)]
        pairs += [(f"{name}{AUDIT}: canonical bytes", sha256_hex(canonical_bytes(audit)), sha256_hex(data))]
        strangers = sorted({path.name for path in folder.path.iterdir()} - {*TRIO})
        pairs += [(f"{name}{one}", "no such file", "a file") for one in strangers]
        yield from compared("judgements", pairs, RESTORE)
    except HarnessError as error:
        yield fails("judgements", error.where, error.expected, error.found, error.todo)


class _BrokenError(HarnessError):
    """An earlier audit record that isn't one."""


def audit_holds(ground: Ground) -> Lines:
    """What the audit record says of the run is what the run's own files say."""
    audit, evidence, loaded = ground.audit, ground.evidence, ground.loaded
    spec = evidence.spec
    name = result_name(loaded.protocol.result_name, port=spec.port, deviations=spec.deviations)
    stored = read_bytes(ground.folder.file(AUDIT), what="audit record")
    pairs = (
        (f"{AUDIT}: canonical bytes", sha256_hex(canonical_bytes(audit)), sha256_hex(stored)),
        (f"{AUDIT}: run_id, and the folder's name", audit.run_id, ground.folder.path.name),
        ("spec.json: run_id, and the folder's name", spec.run_id, ground.folder.path.name),
        (f"{AUDIT}: registered_id", loaded.protocol.registered_id, audit.registered_id),
        (f"{AUDIT}: protocol_digest", spec.protocol_digest, audit.protocol_digest),
        (f"{AUDIT}: tier", spec.tier, audit.tier),
        (f"{AUDIT}: port", spec.port, audit.port),
        (f"{AUDIT}: deviations", spec.deviations, audit.deviations),
        (f"{AUDIT}: result_name", name, audit.result_name),
        (f"{AUDIT}: unfrozen_sources", tuple(one.source_id for one in loaded.unfrozen), audit.unfrozen_sources),
        (f"{AUDIT}: run_sha256", evidence.run_sha256, audit.run_sha256),
        (f"{AUDIT}: environment_sha256", evidence.run.environment_sha256, audit.environment_sha256),
    )
    found = list(compared("audit", pairs, RESTORE))
    said = "passed" if audit.passed else "NOT passed"
    yield from found or [holds("audit", AUDIT, "what the run's files say", f"the session {said}")]
