"""One copy of a finished completion run with its tree and its claims, damaged and mended again."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pregate_support.mini import COMPLETION, MINI, PROJECT, copy_tree

from harness.canon import canonical_bytes, sha256_hex
from harness.claims.judge import claims_of
from harness.claims.load import NAME, load_claims
from harness.claims.view import judged_view
from harness.journal.attempts_file import NAME as ATTEMPTS
from harness.journal.folder import RunFolder
from harness.places import Places
from harness.snapshots.judgements import keep_judgement
from harness.snapshots.store import run_files
from harness.verify.run import verify


def add_claims(tree: Path, protocol: str, family: str) -> None:
    """The family's claims under a small protocol's name."""
    text = (PROJECT / f"fixtures/protocols/nano-{family}" / NAME).read_text(encoding="utf-8")
    (tree / "fixtures/protocols" / protocol / NAME).write_text(text.replace(f"nano-{family}", protocol))


def write_claims(run: Path, tree: Path) -> None:
    """claims.json as a session leaves it."""
    view = judged_view(run, Places(tree))
    (run / "claims.json").write_bytes(canonical_bytes(claims_of(view, load_claims(view.loaded))))


def write_audit(run: Path, **changes) -> None:
    """The audit record with changes, its own digest renewed: what a careful forger writes."""
    audit = json.loads((run / "audit.json").read_bytes()) | changes
    data = canonical_bytes(audit)
    (run / "audit.json").write_bytes(data)
    (run / "audit.json.sha256").write_text(f"{sha256_hex(data)}  audit.json\n")
    enter_again(run)


def enter_again(run: Path, **changes) -> None:
    """The run's end in the attempts file names the audit record as it is now, and the chain holds again."""
    path, made = run.parent / ATTEMPTS, b""
    for line in path.read_bytes().splitlines():
        entry = json.loads(line)
        if (entry["event"], entry["run_id"]) == ("ended", run.name):
            data = (run / "audit.json").read_bytes()
            outcome = "passed" if json.loads(data).get("passed") is True else "failed"
            entry |= {"audit_sha256": sha256_hex(data), "outcome": outcome} | changes
        previous = sha256_hex(made.splitlines()[-1]) if made else entry["previous_sha256"]
        made += canonical_bytes(entry | {"previous_sha256": previous}) + b"\n"
    path.write_bytes(made)


def reseal(run: Path, **changes) -> None:
    """The audit record over the files as they are now."""
    (run / "claims.json").unlink(missing_ok=True)
    write_audit(run, files=run_files(RunFolder(run)), **changes)


@contextmanager
def mended(folder: Path) -> Iterator[None]:
    """Whatever is done to the folder, and to the attempts file beside it, is as it was afterwards."""
    beside = folder.parent / ATTEMPTS
    entered = beside.read_bytes() if beside.is_file() else None
    kept = folder.with_name(f"{folder.name}.kept")
    shutil.copytree(folder, kept, symlinks=True)
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        kept.rename(folder)
        if entered is not None:
            beside.write_bytes(entered)


@pytest.fixture(scope="session")
def whole_run(completion_run: Path, tmp_path_factory) -> Path:
    """The run in a private tree, with claims.json. To be damaged inside `mended` only."""
    source = completion_run.parents[2]
    tree = copy_tree(source, tmp_path_factory.mktemp("verify") / "tree", without=MINI)
    run = tree / completion_run.relative_to(source)
    add_claims(tree, COMPLETION, "completion")
    write_claims(run, tree)
    return run


@pytest.fixture(scope="session")
def judged_twice(whole_run: Path, tmp_path_factory) -> Path:
    """The same, judged once more: an earlier judgement lies in it."""
    source = whole_run.parents[2]
    tree = copy_tree(source, tmp_path_factory.mktemp("twice") / "tree")
    run = tree / whole_run.relative_to(source)
    audit, junit = (run / "audit.json").read_bytes(), (run / "junit.xml").read_bytes()
    keep_judgement(RunFolder(run))
    (run / "junit.xml").write_bytes(junit)
    (run / "audit.json").write_bytes(audit)
    write_audit(run)
    return run


@pytest.fixture
def run(whole_run: Path) -> Iterator[Path]:
    """The run's folder, mended after the test."""
    with mended(whole_run):
        yield whole_run


@pytest.fixture
def tree(whole_run: Path) -> Iterator[Path]:
    """Its tree without the reports, mended after the test."""
    tree = whole_run.parents[2]
    with mended(tree / "fixtures/protocols"), mended(tree / "snapshots"):
        yield tree


@pytest.fixture(scope="session")
def judge():
    """`judge(run)`: verdict and lines of a verification in the run's own tree."""

    def verified(run: Path):
        found = verify(run, Places(run.parents[2]))
        return found.verdict, [one for one in found.lines if one.state in ("fails", "not checkable")]

    return verified
