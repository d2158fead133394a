"""A run that is judged again: what its earlier audit record says is held against its files, and that record is kept.

Nothing that was judged is lost: the audit record, its digest and the JUnit file of each earlier session stay under
judgements/NN/. A file that was altered or removed in between is an entry in the new session's books.
"""

from harness.errors import HarnessError
from harness.files import file_sha256
from harness.journal.folder import RunFolder
from harness.snapshots.store import JUDGEMENTS, altered_files, read_audit

TRIO = ("audit.json", "audit.json.sha256", "junit.xml")


def altered_since_judged(folder: RunFolder) -> tuple[str, ...]:
    """One line for each file that isn't what the run's audit record holds; empty for a run that wasn't judged yet."""
    if not folder.file("audit.json").exists():
        return ()
    try:
        audit = read_audit(folder)
    except HarnessError as error:
        return (str(error),)
    return tuple(
        f"{folder.path.name}/{name}: expected {audit.files.get(name, 'no such file')}, found {_found(folder, name)}. "
        "It was altered after the run was judged: restore it, or start a new run."
        for name in altered_files(folder, audit)
    )


def keep_judgement(folder: RunFolder) -> None:
    """Move the run's audit record, its digest and its JUnit file to judgements/NN: a session that ends without a
    record of its own leaves none that speaks for it.
    """
    if not folder.file("audit.json").exists():
        return
    number = 1 + sum(1 for _ in folder.path.glob(f"{JUDGEMENTS}/*"))
    target = folder.path / JUDGEMENTS / f"{number:02d}"
    target.mkdir(parents=True)
    for name in TRIO:
        if folder.file(name).exists():
            folder.file(name).rename(target / name)


def _found(folder: RunFolder, name: str) -> str:
    path = folder.file(name)
    return file_sha256(path, what="audited file") if path.is_file() else "no such file"
