"""report.html, where it was written: made again from the folder and compared byte for byte.

Its bytes are also a function of the versions that it names: under others it can't be checked here, which isn't a fault.
"""

import importlib.util

from harness.canon import sha256_hex
from harness.claims.view import RunView
from harness.files import read_bytes
from harness.journal.attempts_file import NAME as ATTEMPTS
from harness.journal.attempts_file import AttemptsFile, lines_for
from harness.verify.attempts import PUT, lines_shown
from harness.verify.ground import RESTORE, Ground, Lines, fails, holds, nothing, uncheckable

STEP, NAME = "derived", "report.html"
INSTALL = "Install the extra `report` in the version that the page names, or don't rely on the page."


def report_holds(ground: Ground) -> Lines:
    """The page holds, fails, can't be checked here, or wasn't written."""
    path = ground.folder.file(NAME)
    if not path.is_file():
        yield nothing(STEP, NAME, "written by `report RUN`, or none", "not written: it can be made")
        return
    if importlib.util.find_spec("matplotlib") is None:
        yield uncheckable(STEP, NAME, "matplotlib, which drew it", "not installed", INSTALL)
        return
    from harness.report.make import made_with, report_bytes  # noqa: PLC0415  needs the extra `report`

    stored = read_bytes(path, what="report")
    named = f'<meta name="generator" content="pregate; {made_with()}">'
    if named.encode("ascii") not in stored:
        yield uncheckable(STEP, NAME, f"a page made with {made_with()}", "another generator or none", INSTALL)
        return
    shown, there = lines_shown(stored), len(lines_for(ground.folder.path).splitlines())
    kept = len(AttemptsFile(ground.folder.file(ATTEMPTS)).read().splitlines())
    if shown is not None and shown < kept:
        yield fails(STEP, NAME, f"the {kept} lines of the attempts file that the run keeps", f"{shown} lines", RESTORE)
        return
    if shown is not None and shown > there:
        yield uncheckable(STEP, NAME, f"{shown} lines of the attempts file, as the page shows", f"{there} lines", PUT)
        return
    made = report_bytes(RunView(ground.loaded, ground.folder, ground.audit), ground.tree, shown)
    if made != stored:
        yield fails(STEP, NAME, sha256_hex(made), sha256_hex(stored), RESTORE)
    else:
        yield holds(STEP, NAME, f"{len(made)} bytes", f"{len(stored)} bytes")
