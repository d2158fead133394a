"""A run that is judged again: what its earlier audit record says is held against its files, and that record is kept.

Nothing that was judged is lost: the audit record, its digest and the JUnit file of each earlier session stay under
judgements/NN/. A file that was altered or removed in between is an entry in the new session's books.
"""

from harness.errors import HarnessError
from harness.journal.folder import RunFolder
from harness.snapshots.store import JUDGEMENTS, read_audit, run_files

REMADE = ("junit.xml", "observations.json")  # each session's own, also a part's observations
TRIO = ("audit.json", "audit.json.sha256", "junit.xml")
DERIVED = ("claims.json", "report.html")  # made again from the rest


def altered_since_judged(folder: RunFolder) -> tuple[str, ...]:
    """One line for each file that isn't what the first audit record that lists it holds, and for files that came later.

    The first, not the latest: a session over an altered run fails and records what it found, and that makes the
    alteration no truer in the next one. Empty for a run that wasn't judged yet.
    """
    try:
        audits = [read_audit(one) for one in _judged(folder)]
    except HarnessError as error:
        return (str(error),)
    expected: dict[str, str] = {}
    passed = False  # a run that passed is whole: nothing is added to it afterwards
    for audit in audits:
        lasting = {name: sha for name, sha in audit.files.items() if not _remade(name) and name not in expected}
        expected |= lasting if not passed else {}
        passed = passed or audit.passed
    expected |= {name: sha for audit in audits[-1:] for name, sha in audit.files.items() if _remade(name)}
    here = run_files(folder)
    names = {name for name, sha in expected.items() if here.get(name) != sha} | (
        {*here} - {*expected} if passed else set()
    )
    return tuple(
        f"{folder.path.name}/{name}: expected {expected.get(name, 'no such file')}, found "
        f"{here.get(name, 'no such file')}. It was altered after the run was judged: restore it, or start a new run."
        for name in sorted(names)
    )


def _remade(name: str) -> bool:
    """A file that closing a run writes anew: observations name the folder, which may have been moved."""
    return name.rpartition("/")[2] in REMADE


def _judged(folder: RunFolder) -> list[RunFolder]:
    """Where the run's audit records are, the first judgement's first."""
    earlier = [RunFolder(path.parent) for path in sorted(folder.path.glob(f"{JUDGEMENTS}/*/audit.json"))]
    return [*earlier, *([folder] if folder.file("audit.json").exists() else [])]


def keep_judgement(folder: RunFolder) -> None:
    """Move the run's audit record, its digest and its JUnit file to judgements/NN: a session that ends without a
    record of its own leaves none that speaks for it. What follows from them is removed; it can be made again.
    """
    if not folder.file("audit.json").exists():
        return
    number = 1 + sum(1 for _ in folder.path.glob(f"{JUDGEMENTS}/*"))
    target = folder.path / JUDGEMENTS / f"{number:02d}"
    target.mkdir(parents=True)
    for name in TRIO:
        if folder.file(name).exists():
            folder.file(name).rename(target / name)
    for name in DERIVED:
        folder.file(name).unlink(missing_ok=True)
