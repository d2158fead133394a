"""report.html, where it was written: made again from the folder and compared byte for byte.

Its bytes are also a function of the versions that it names: under others it can't be checked here, which isn't a fault.
"""

import importlib.util
from typing import TYPE_CHECKING

from harness.canon import sha256_hex
from harness.claims.view import RunView
from harness.files import read_bytes
from harness.journal.attempts_file import NAME as ATTEMPTS
from harness.journal.attempts_file import AttemptsFile, lines_for
from harness.records.verification import VerifiedLine
from harness.verify.attempts import PUT, lines_shown
from harness.verify.ground import RESTORE, Ground, Lines, fails, holds, nothing, uncheckable

if TYPE_CHECKING:
    from harness.report.history import Shown

STEP, NAME = "derived", "report.html"
LATER = (
    "Take the protocol's folder, its revisions and its anchors from where the page was made; an author's own folder is "
    "named in HARNESS_PROTOCOLS."
)
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
    from harness.report.history import shown_by, shown_here  # noqa: PLC0415  with what needs the extra `report`
    from harness.report.make import made_with, report_bytes  # noqa: PLC0415

    stored = read_bytes(path, what="report")
    named = f'<meta name="generator" content="pregate; {made_with()}">'
    if named.encode("ascii") not in stored:
        yield uncheckable(STEP, NAME, f"a page made with {made_with()}", "another generator or none", INSTALL)
        return
    shown, known = lines_shown(stored), shown_by(stored)
    view = RunView(ground.loaded, ground.folder, ground.audit)
    unfit = _lines_unfit(ground, shown) or (
        _history_unfit(ground, known, shown_here(view, ground.tree)) if known else None
    )
    if unfit is not None:
        yield unfit
        return
    made = report_bytes(view, ground.tree, shown, known)
    if made != stored:
        yield fails(STEP, NAME, sha256_hex(made), sha256_hex(stored), RESTORE)
    else:
        yield holds(STEP, NAME, f"{len(made)} bytes", f"{len(stored)} bytes")


def _lines_unfit(ground: Ground, shown: int | None) -> VerifiedLine | None:
    """Why the lines of the attempts file that a page says it shows can't be those."""
    there = len(lines_for(ground.folder.path).splitlines())
    kept = len(AttemptsFile(ground.folder.file(ATTEMPTS)).read().splitlines())
    if shown is not None and shown < kept:
        return fails(STEP, NAME, f"the {kept} lines of the attempts file that the run keeps", f"{shown} lines", RESTORE)
    if shown is not None and shown > there:
        return uncheckable(STEP, NAME, f"{shown} lines of the attempts file, as the page shows", f"{there} lines", PUT)
    return None


def _told(shown: "Shown") -> str:
    """What of a protocol's line is shown, in words."""
    return f"{len(shown.anchored) - 1} revisions, {sum(shown.anchored)} of {len(shown.anchored)} digests anchored"


def _history_unfit(ground: Ground, known: "Shown", here: "Shown") -> VerifiedLine | None:
    """Why the revisions and anchors that a page says it shows can't be those."""
    own = len(ground.loaded.history)
    if not here.covers(known):
        return uncheckable(STEP, NAME, f"{_told(known)}, as the page shows", _told(here), LATER)
    if len(known.anchored) <= own:
        expected = f"the run's own revision {own} among those that it shows"
        return fails(STEP, NAME, expected, f"{len(known.anchored) - 1} revisions", RESTORE)
    return None
