"""The end of a session on the controller: books, JUnit, audit record with a detached digest, exit code."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.canon import canonical_bytes, sha256_hex
from harness.errors import HarnessError
from harness.evidence import RunEvidence
from harness.files import file_sha256, write_atomic
from harness.journal.folder import RunFolder, read_record
from harness.plugin.collect import tier_rows
from harness.plugin.session import GateSession, evidence_of_run
from harness.protocols.load import LoadedProtocol
from harness.records.audit import Audit, GateAccount, SmokeReference
from harness.snapshots.store import is_frozen

UNHASHED = ("audit.json", "audit.json.sha256", "session.log")


def end_session(gates: GateSession, session: pytest.Session, exitstatus: int) -> None:
    """Judge the session itself; sets the exit code to failure where anything is open."""
    problems = list(gates.books.problems())
    if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        problems.append(f"the session ended early, with exit code {exitstatus}")
    failed = False
    for loaded in gates.protocols:
        try:
            audit = _write_audit(gates, loaded, tuple(problems), exitstatus)
        except (HarnessError, OSError) as error:
            problems.append(f"{loaded.protocol.id}: no audit record: {error}")
        else:
            failed = failed or not audit.passed
            gates.records[loaded.protocol.id] = _line(gates, audit)
        finally:
            gates.stages(loaded.protocol.id).close()
    for number, problem in enumerate(problems):
        gates.records[f"~{number:03d}"] = f"BOOKS NOT CLOSED: {problem}"
    if (failed or problems) and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def gate_accounts(gates: GateSession, loaded: LoadedProtocol) -> tuple[GateAccount, ...]:
    """Each gate's rows as reported: a row that wasn't reported counts as not passed."""
    tier = gates.tier
    if tier is None:
        return ()
    reported: dict[tuple[str, str], bool] = {}
    for name, properties in gates.books.properties.items():
        if properties.get("protocol") == loaded.protocol.id:
            key = (str(properties.get("gate")), str(properties.get("cell")))
            reported[key] = reported.get(key, True) and gates.books.outcomes[name] == "passed"
    accounts = []
    for gate in loaded.protocol.gates:
        names = [row.name or "whole" for row in tier_rows(loaded, gate, tier, gates.domains(loaded))]
        passed = [name for name in names if reported.get((gate.id, name), False)]
        if names:
            failed = tuple(name for name in names if name not in set(passed))
            accounts.append(
                GateAccount(id=gate.id, clause=gate.clause, passed=len(passed), registered=len(names), failed=failed)
            )
    return tuple(accounts)


def _write_audit(gates: GateSession, loaded: LoadedProtocol, problems: tuple[str, ...], exitstatus: int) -> Audit:
    folder = gates.folder(loaded.protocol.id)
    _place_junit(gates, folder)
    evidence = evidence_of_run(gates, loaded)
    accounts = gate_accounts(gates, loaded)
    request = gates.stages(loaded.protocol.id).request
    complete = folder.file("run.json").exists()
    whole = bool(accounts) and all(one.passed == one.registered for one in accounts)
    audit = Audit(
        schema=1,
        protocol=loaded.protocol.id,
        registered_id=loaded.protocol.registered_id,
        protocol_digest=loaded.digest,
        result_name=loaded.protocol.result_name + (" (port)" if request.port else ""),
        tier=str(gates.tier),
        run_id=folder.path.name,
        port=request.port,
        deviations=evidence.spec.deviations if folder.file("spec.json").exists() else request.deviations,
        frozen=is_frozen(loaded.protocol.id, gates.tree),
        unfrozen_sources=tuple(source.source_id for source in loaded.unfrozen),
        run_sha256=evidence.run_sha256 if complete else "none: the run is incomplete",
        environment_sha256=_environment_sha256(evidence) if complete else "none: the run is incomplete",
        smoke=_smoke(folder),
        gates=accounts,
        collected=len(gates.books.collected),
        reported=len(gates.books.outcomes),
        errors=len(gates.books.errors),
        books=problems,
        passed=complete and whole and not problems and exitstatus == pytest.ExitCode.OK,
        files=dict(_digests(folder.path)),
    )
    data = canonical_bytes(audit)
    write_atomic(folder.file("audit.json"), data)
    write_atomic(folder.file("audit.json.sha256"), f"{sha256_hex(data)}  audit.json\n".encode())
    return audit


def _environment_sha256(evidence: RunEvidence) -> str:
    return evidence.run.environment_sha256


def _smoke(folder: RunFolder) -> SmokeReference | None:
    path = folder.file("smoke.json")
    return read_record(path, SmokeReference, what="smoke reference") if path.exists() else None


def _place_junit(gates: GateSession, folder: RunFolder) -> None:
    written = Path(gates.config.option.xmlpath or "")
    target = folder.file("junit.xml")
    if written.is_file() and written.resolve() != target.resolve():
        shutil.copyfile(written, target)


def _digests(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name not in UNHASHED and "locks" not in path.relative_to(folder).parts:
            yield name, file_sha256(path, what="file of the run")


def _line(gates: GateSession, audit: Audit) -> str:
    counts = ", ".join(f"{one.id} {one.passed}/{one.registered}" for one in audit.gates)
    state = "passed" if audit.passed else "NOT passed"
    frozen = "" if audit.frozen else " (unfrozen: no snapshot gate)"
    return f"{audit.protocol} {audit.tier} {state}{frozen}: {counts}. Record: {gates.folder(audit.protocol).path}"
