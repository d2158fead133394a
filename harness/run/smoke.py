"""The smoke record that a formal run stands on: found among this tree's runs, or made by a child pytest."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.errors import HarnessError, SessionError
from harness.files import file_sha256
from harness.journal.assemble import baseline_name, read_environment, read_placement
from harness.journal.folder import RunFolder, read_record, write_record
from harness.model.here import environment_here
from harness.places import Places
from harness.protocols.load import LoadedProtocol
from harness.records.audit import Audit, SmokeReference
from harness.records.run import Deviation
from harness.run.request import Request
from harness.snapshots.store import read_audit

REFERENCE = "smoke.json"


@dataclass(frozen=True, slots=True)
class SmokeCall:
    """The formal session's request and the words that chose its placement, for the child's command line.

    `baseline`: the run that both are held against, by its digest; none where the protocol registers none.
    """

    request: Request
    tree: Places
    gpu_memory: str | None
    cpu_memory: str | None
    baseline: str


def passed_smoke(loaded: LoadedProtocol, formal: RunFolder, call: SmokeCall) -> tuple[SmokeReference, RunFolder]:
    """The reference and the folder; SessionError where the smoke run fails. One smoke record serves one formal run."""
    base = call.tree.reports / loaded.protocol.id
    noted = formal.file(REFERENCE)
    if noted.exists():
        reference = read_record(noted, SmokeReference, what="smoke reference")
        return reference, RunFolder(base / reference.run_id)
    for folder in _candidates(base):
        if _serves(loaded, folder, call):
            return _note(noted, folder), folder
    folder = RunFolder(base / formal.path.name.replace("formal", "smoke", 1))
    if folder.path == formal.path or folder.path.exists():
        folder = RunFolder(base / f"smoke-for-{formal.path.name}")
    _run_smoke(loaded, folder, call)
    return _note(noted, folder), folder


def _candidates(base: Path) -> Iterator[RunFolder]:
    for path in sorted(base.glob("*/audit.json"), reverse=True):
        yield RunFolder(path.parent)


def _serves(loaded: LoadedProtocol, folder: RunFolder, call: SmokeCall) -> bool:
    request = call.request
    try:
        audit: Audit = read_audit(folder)
        environment, placement, baseline = read_environment(folder), read_placement(folder).id, baseline_name(folder)
    except HarnessError:
        return False  # a run that can't be read can't serve; it isn't this session's to judge
    if (placement, baseline) != (request.placement.id, call.baseline):
        return False  # what replaces a placement is held against a smoke run of that placement
    same = (audit.tier, audit.protocol_digest, audit.port, audit.passed) == ("smoke", loaded.digest, request.port, True)
    return (
        same
        and tuple(one for one in audit.deviations if _is_asked(one)) == request.deviations
        and environment_here(loaded, Path(request.checkpoint)).agrees(environment)
    )


def _is_asked(deviation: Deviation) -> bool:
    """Whether a port's deviation is of what it was asked for, known before a model is loaded; the others are read back
    from the model, and environment and gate compare them.
    """
    return deviation.field in ("placement", "sandbox.image") or deviation.field.startswith("domains.")


def _note(noted: Path, folder: RunFolder) -> SmokeReference:
    audit = read_audit(folder)
    reference = SmokeReference(
        run_id=folder.path.name,
        audit_sha256=file_sha256(folder.file("audit.json"), what="audit record"),
        run_sha256=audit.run_sha256,
    )
    write_record(noted, reference)
    return reference


def _run_smoke(loaded: LoadedProtocol, folder: RunFolder, call: SmokeCall) -> None:
    request = call.request
    command = [
        sys.executable,
        "-m",
        "pytest",
        str(call.tree.gates),
        "-m",
        "smoke",
        "-p",
        "no:cacheprovider",
        "--protocol",
        loaded.protocol.id,
        "--run",
        str(folder.path),
        "--checkpoint",
        request.checkpoint,
    ]
    for one in request.inputs:
        command += ["--inputs", one]
    for flag, value in (("--gpu-memory", call.gpu_memory), ("--cpu-memory", call.cpu_memory)):
        command += [flag, value] if value else []
    command += ["--port"] if request.port else []
    for flag, value in (("--baseline", request.baseline), ("--sandbox-image", request.sandbox_image)):
        command += [flag, value] if value else []
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST_", "COV_", "PYTHONOPTIMIZE", "PYTHONINSPECT"))
    }
    folder.create()
    log = folder.file("session.log")
    with log.open("wb") as stream:
        code = subprocess.run(
            command,
            cwd=call.tree.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            check=False,
        ).returncode
    if code != 0:
        tail = log.read_text(encoding="utf-8", errors="replace")[-800:].strip()
        raise SessionError(
            f"smoke of {loaded.protocol.id}",
            expected="all smoke gates passed",
            found=f"exit code {code}: {tail}",
            todo=f"Read {log}; the formal run starts only after smoke passed.",
        )
