"""The in-toto statement over a judged run: a function of the folder, the protocol's files and the frozen ones.

Subjects are run.json and what is judged or derived from it, by SHA-256: audit.json, whose list reaches every other file
of the folder; the earlier judgements, which it doesn't list; the derived records as they are made, written or not; and
the frozen files that the run was held against. report.html is none: its bytes are also those of a drawing library.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from harness.canon import sha256_hex
from harness.claims.load import NAME as CLAIM_RULES
from harness.files import file_sha256
from harness.places import OF_A_RUN
from harness.protocols.load import PROFILE, profile_path
from harness.records.attestation import (
    PREDICATE_TYPE,
    STATEMENT_TYPE,
    AttestedRun,
    ResourceDescriptor,
    RunResult,
    Statement,
)
from harness.snapshots.store import JUDGEMENTS, frozen_folder, is_frozen
from harness.verify.ground import Ground
from harness.verify.records import DERIVED
from harness.verify.snapshots import not_comparable

JUDGED = ("audit.json", "junit.xml", "ledger.json", "run.json", "statistics.json")
ABSENT = "no such file"
FROZEN = "snapshots/"


def statement_of(ground: Ground, not_checkable: tuple[str, ...], *, frozen: bool) -> Statement:
    """The statement that this folder has; `frozen`: with the frozen files as subjects."""
    subjects = subjects_of(ground, frozen=frozen)
    return Statement(
        type_=STATEMENT_TYPE,
        subject=_described(subjects),
        predicateType=PREDICATE_TYPE,
        predicate=_result(ground, not_checkable),
    )


def subjects_of(ground: Ground, *, frozen: bool) -> dict[str, str]:
    """SHA-256 by name; `no such file` for one that must be there and isn't."""
    found = {name: _sha256(ground.folder.file(name)) for name in JUDGED}
    if (ground.loaded.folder / CLAIM_RULES).is_file():
        found |= {name: sha256_hex(make(ground)) for name, make in DERIVED.items()}
    found |= _tree(ground.folder.path / JUDGEMENTS, f"{JUDGEMENTS}/")
    if frozen:
        results = ground.loaded.results
        found |= _tree(frozen_folder(results, ground.tree).parent, f"{FROZEN}{results}/")
    return found


def has_frozen(ground: Ground) -> bool:
    """Whether there are frozen results that this run is held against."""
    return is_frozen(ground.loaded.results, ground.tree) and not_comparable(ground) is None


def names(statement: Statement) -> Iterator[tuple[str, str]]:
    """(name, SHA-256) of each subject, in order."""
    for one in statement.subject:
        yield one.name, one.digest.get("sha256", "no SHA-256")


def _tree(folder: Path, prefix: str) -> dict[str, str]:
    """Every file under a folder, by its path in it."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {f"{prefix}{path.relative_to(folder).as_posix()}": _sha256(path) for path in paths}


def _sha256(path: Path) -> str:
    return file_sha256(path, what="subject") if path.is_file() else ABSENT


def _described(files: Mapping[str, str]) -> tuple[ResourceDescriptor, ...]:
    return tuple(ResourceDescriptor(name=name, digest={"sha256": sha256}) for name, sha256 in sorted(files.items()))


def _result(ground: Ground, not_checkable: tuple[str, ...]) -> RunResult:
    gates, passed = ground.audit.gates, ground.audit.passed
    result: Literal["PASSED", "FAILED"] = "PASSED" if passed else "FAILED"
    return RunResult(
        result=result,
        configuration=_described(_configuration(ground)),
        passedTests=tuple(one.id for one in gates if one.passed == one.registered),
        failedTests=tuple(one.id for one in gates if one.passed != one.registered),
        pregate=_run(ground, not_checkable),
    )


def _configuration(ground: Ground) -> dict[str, str]:
    """What the run and its claims were judged under: the protocol's files, its claims and its model's profile."""
    loaded, tree = ground.loaded, ground.tree
    within, models = tree.protocols / loaded.protocol.id, tree.models / loaded.protocol.model.profile
    # Names that superseded files keep, and where a run keeps an author's own, wherever those lay.
    own = f"{OF_A_RUN}/{loaded.protocol.id}"
    if (within / "protocol.toml").is_file():
        own = within.relative_to(tree.root).as_posix()
    paths = {f"{own}/{name}": loaded.folder / name for name in ("manifest.json", "protocol.toml", CLAIM_RULES)}
    model = models.relative_to(tree.root).as_posix() if (models / PROFILE).is_file() else own
    paths[f"{model}/{PROFILE}"] = profile_path(loaded.protocol, loaded.folder, tree)
    return {name: _sha256(path) for name, path in paths.items() if path.is_file()}


def _run(ground: Ground, not_checkable: tuple[str, ...]) -> AttestedRun:
    audit = ground.audit
    return AttestedRun(
        schema=1,
        protocol=audit.protocol,
        registered_id=audit.registered_id,
        protocol_digest=audit.protocol_digest,
        result_name=audit.result_name,
        tier=audit.tier,
        run_id=audit.run_id,
        port=audit.port,
        run_sha256=audit.run_sha256,
        environment_sha256=audit.environment_sha256,
        verified="not checkable" if not_checkable else "holds",
        not_checkable=not_checkable,
    )
