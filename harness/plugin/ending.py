"""The end of a session on the controller: books, JUnit, audit record with a detached digest, exit code."""

import os
import shutil
from pathlib import Path

import pytest

from harness.canon import canonical_bytes, digest, sha256_hex
from harness.checks.whole import records_follow
from harness.claims.judge import claims_of
from harness.claims.load import NAME as CLAIM_RULES
from harness.claims.load import load_claims
from harness.claims.view import RunView
from harness.errors import HarnessError
from harness.evidence import RunEvidence, guarded
from harness.files import file_sha256, write_atomic
from harness.journal.folder import RunFolder, read_record
from harness.journal.naming import result_name
from harness.plugin.collect import tier_rows
from harness.plugin.reports import clean
from harness.plugin.session import GateSession, evidence_of_run
from harness.protocols.grids import RowKey
from harness.protocols.load import LoadedProtocol
from harness.records.audit import Audit, GateAccount, SmokeReference
from harness.run.attempting import enter_end
from harness.run.code import code_sha256
from harness.run.working_tree import working_tree
from harness.snapshots.store import is_frozen, links, run_files


def end_session(gates: GateSession, session: pytest.Session, exitstatus: int) -> None:
    """Judge the session itself; sets the exit code to failure where anything is open."""
    _enter_contradictions(gates)
    problems = list(gates.books.problems())
    if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        problems.append(f"the session ended early, with exit code {exitstatus}")
    failed = False
    for loaded in gates.protocols:
        audit = None
        try:
            audit = _write_audit(gates, loaded, tuple(problems), exitstatus)
        except (HarnessError, OSError) as error:
            problems.append(f"{loaded.protocol.id}: no audit record: {error}")
        else:
            failed = failed or not audit.passed
            gates.records[loaded.protocol.id] = _line(gates, audit)
            problems += _write_claims(gates, loaded, audit)
        finally:
            problems += _enter_end(gates, loaded, audit, tuple(problems))
            gates.stages(loaded.protocol.id).close()
    for number, problem in enumerate(problems):
        gates.records[f"~{number:03d}"] = f"BOOKS NOT CLOSED: {problem}"
    if (failed or problems) and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _enter_end(
    gates: GateSession, loaded: LoadedProtocol, audit: Audit | None, problems: tuple[str, ...]
) -> tuple[str, ...]:
    """The run's last line in the attempts file of its protocol; what keeps it from being written is a problem."""
    if gates.tier != "formal":
        return ()
    stages = gates.stages(loaded.protocol.id)
    reasons = (*((str(stages.stopped_by),) if stages.stopped_by else ()), *problems)
    try:
        enter_end(loaded, stages.folder, gates.tree, audit, reasons)
    except (HarnessError, OSError) as error:
        return (f"{loaded.protocol.id}: its end isn't in the attempts file: {error}",)
    return ()


def _enter_contradictions(gates: GateSession) -> None:
    """A case that pytest calls passed though its check found differences, or though the run was another by the end.

    Whatever swallowed the assertion (a plugin, an optimised interpreter) can't make the row hold.
    """
    named = {loaded.protocol.id: gates.folder(loaded.protocol.id).file("run.json") for loaded in gates.protocols}
    now = {name: sha256_hex(path.read_bytes()) for name, path in named.items() if path.is_file()}
    for name, properties in gates.books.properties.items():
        if gates.books.outcomes[name] != "passed" or "gate" not in properties:
            continue
        if properties.get("differences") != "0":
            gates.books.errors.append(f"{name} is reported as passed, and its check found differences")
        judged, last = str(properties.get("run_sha256")), now.get(str(properties.get("protocol")), "none")
        if judged not in (last, "none yet"):
            gates.books.errors.append(f"{name} judged run {judged}, and run.json is {last} now")


def gate_accounts(gates: GateSession, loaded: LoadedProtocol) -> tuple[GateAccount, ...]:
    """Each gate's rows as reported: a row that wasn't reported counts as not passed."""
    tier = gates.tier
    if tier is None:
        return ()
    reported: dict[tuple[str, str], bool] = {}
    for name, properties in gates.books.properties.items():
        if properties.get("protocol") == loaded.protocol.id:
            key = (str(properties.get("gate")), str(properties.get("cell")))
            holds = properties.get("differences") == "0" and gates.books.outcomes[name] == "passed"
            reported[key] = reported.get(key, True) and holds
    accounts, left_out = [], gates.left_out(loaded)
    for gate in loaded.protocol.gates:
        names = [row.name or "whole" for row in tier_rows(loaded, gate, tier, gates.domains(loaded), left_out=left_out)]
        passed = [name for name in names if reported.get((gate.id, name), False)]
        if names:
            failed = tuple(name for name in names if name not in set(passed))
            accounts.append(
                GateAccount(id=gate.id, clause=gate.clause, passed=len(passed), registered=len(names), failed=failed)
            )
    return tuple(accounts)


def _write_audit(gates: GateSession, loaded: LoadedProtocol, problems: tuple[str, ...], exitstatus: int) -> Audit:
    folder = gates.folder(loaded.protocol.id)
    evidence = evidence_of_run(gates, loaded)
    problems = (*problems, *_place_junit(gates, folder), *links(folder), *_no_longer_assembles(evidence))
    accounts = gate_accounts(gates, loaded)
    request = gates.stages(loaded.protocol.id).request
    complete = folder.file("run.json").exists()
    deviations = evidence.spec.deviations if folder.file("spec.json").exists() else request.deviations
    whole = bool(accounts) and all(one.passed == one.registered for one in accounts)
    audit = Audit(
        schema=1,
        protocol=loaded.protocol.id,
        registered_id=loaded.protocol.registered_id,
        protocol_digest=loaded.digest,
        result_name=result_name(loaded.protocol.result_name, port=request.port, deviations=deviations),
        tier=str(gates.tier),
        run_id=folder.path.name,
        port=request.port,
        deviations=deviations,
        frozen=is_frozen(loaded.results, gates.tree),
        not_compared=gates.not_compared(loaded),
        unfrozen_sources=tuple(source.source_id for source in loaded.unfrozen),
        run_sha256=evidence.run_sha256 if complete else "none: the run is incomplete",
        environment_sha256=evidence.run.environment_sha256 if complete else "none: the run is incomplete",
        smoke=_smoke(folder),
        gates=accounts,
        collected=len(gates.books.collected),
        reported=len(gates.books.outcomes),
        errors=len(gates.books.errors),
        books=problems,
        judge=judge_of(gates),
        passed=complete and whole and not problems and exitstatus == pytest.ExitCode.OK,
        files=run_files(folder),
    )
    data = canonical_bytes(audit)
    write_atomic(folder.file("audit.json"), data)
    write_atomic(folder.file("audit.json.sha256"), f"{sha256_hex(data)}  audit.json\n".encode())
    return audit


def _write_claims(gates: GateSession, loaded: LoadedProtocol, audit: Audit) -> tuple[str, ...]:
    """claims.json beside the audit record, which it rests on; nothing for a protocol that registers none, or no run."""
    folder = gates.folder(loaded.protocol.id)
    if not (loaded.folder / CLAIM_RULES).is_file() or not folder.file("run.json").exists():
        return ()
    try:
        claims = claims_of(RunView(loaded, folder, audit), load_claims(loaded))
    except HarnessError as error:
        return (f"{loaded.protocol.id}: no claims: {error}",)
    write_atomic(folder.file("claims.json"), canonical_bytes(claims))
    return ()


def _smoke(folder: RunFolder) -> SmokeReference | None:
    path = folder.file("smoke.json")
    return read_record(path, SmokeReference, what="smoke reference") if path.exists() else None


def judge_of(gates: GateSession) -> dict[str, str]:
    """Who judged: the tree's commit and state, the gates' bytes, pytest's plugins, and the words of the call."""
    config = gates.config
    names = sorted(f"{dist.project_name} {dist.version}" for _, dist in config.pluginmanager.list_plugin_distinfo())
    brought = [plugin for plugin, _ in config.pluginmanager.list_plugin_distinfo()]
    local = sorted(
        str(name)
        for name, plugin in config.pluginmanager.list_name_plugin()
        if plugin and plugin not in brought and _is_local(plugin)
    )
    sources = {path.name: file_sha256(path, what="gate") for path in sorted(gates.tree.gates.rglob("*.py"))}
    sources["/conftest.py"] = file_sha256(gates.tree.root / "conftest.py", what="conftest")
    return {
        **{f"tree.{name}": value for name, value in working_tree(gates.tree.root).items()},
        "gates_sha256": digest(sources),
        "library_sha256": code_sha256(),
        "plugins": clean(", ".join(names)),
        "named_plugins": clean(", ".join(local)),
        "arguments": clean(" ".join(config.invocation_params.args)),
        "addopts": clean(os.environ.get("PYTEST_ADDOPTS", "")),
        "named_by_environment": clean(os.environ.get("PYTEST_PLUGINS", "")),
    }


OWN = {"_pytest", "pytest", "harness", "conftest", "pluggy", "builtins", "xdist", "syrupy"}


def _is_local(plugin: object) -> bool:
    """A plugin that no distribution brought and that is neither pytest's nor this project's: named by -p or a file."""
    where = str(getattr(plugin, "__name__", type(plugin).__module__))
    return where.split(".", maxsplit=1)[0] not in OWN


def _place_junit(gates: GateSession, folder: RunFolder) -> tuple[str, ...]:
    """The session's JUnit file in the run folder; what is wrong with it otherwise."""
    written, target = Path(gates.config.option.xmlpath or ""), folder.file("junit.xml")
    if written.is_file() and written.resolve() != target.resolve():
        shutil.copyfile(written, target)
    if not target.is_file():
        return ("the session's JUnit file wasn't written",)
    cases = target.read_text(encoding="utf-8", errors="replace").count("<testcase ")
    counted = len(gates.books.collected)
    return () if cases >= counted else (f"the JUnit file has {cases} cases of {counted}",)


def _no_longer_assembles(evidence: RunEvidence) -> tuple[str, ...]:
    """What was judged is what is audited: the records still follow from the journals at the session's end."""
    reaches = {gate.reach for gate in evidence.loaded.protocol.gates}
    if "run" not in reaches or not evidence.folder.file("run.json").exists():
        return ()
    return tuple(f"at the end: {one}" for one in guarded(records_follow, evidence, RowKey(None, "run")))


def _line(gates: GateSession, audit: Audit) -> str:
    counts = ", ".join(f"{one.id} {one.passed}/{one.registered}" for one in audit.gates)
    state = "passed" if audit.passed else "NOT passed"
    frozen = "" if audit.frozen else " (unfrozen: no snapshot gate)"
    names = ", ".join(one.partition(":")[0] for one in audit.not_compared)
    frozen += f" (not compared: {names})" if names else ""
    return f"{audit.protocol} {audit.tier} {state}{frozen}: {counts}. Record: {gates.folder(audit.protocol).path}"
