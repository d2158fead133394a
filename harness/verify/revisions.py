"""Under which revision of its protocol the run was made, and every revision that the protocol has.

The loader holds the chain: each record names the one before and the digest that it supersedes, and a protocol whose
chain doesn't hold loads nowhere. What is left to say here is where in it the run stands.
"""

from collections.abc import Sequence
from pathlib import PurePosixPath

from harness.protocols.load import load_line
from harness.protocols.outputs import is_copy
from harness.protocols.revisions import utc
from harness.records.revision import Revision
from harness.verify.ground import Ground, Lines, holds, nothing

STEP = "revisions"
AFTER_A_COPY = ", by the copy that the run keeps: name the author's folder in HARNESS_PROTOCOLS for what came later"


def revisions_hold(ground: Ground) -> Lines:
    """One line for each revision, and before them which of them the run was made under."""
    where = f"protocol {ground.loaded.protocol.id}: revisions"
    line = load_line(ground.loaded.home, ground.tree)
    records, later = line[-1].history, AFTER_A_COPY if is_copy(ground.loaded.home) else ""
    if not records:
        yield nothing(STEP, where, "none", f"the protocol was never amended{later}")
        return
    own, last = len(ground.loaded.history), len(records)
    under = "the protocol as it was frozen first" if not own else f"revision {own}"
    force = "in force" if own == last else f"superseded since; revision {last} is in force"
    said = f"a chain of {last}; the run was made under {under}, {force}{later}{_unseen(ground, records)}"
    yield holds(STEP, where, f"a chain of {last}", said)
    for one in records:
        said = revision_words(one)
        yield holds(STEP, f"{where}/{one.number:04d}", said, said)


def _unseen(ground: Ground, records: Sequence[Revision]) -> str:
    """Words where the run is of a superseded protocol and the revision that superseded it didn't find it."""
    own, name = len(ground.loaded.history), ground.folder.path.name
    if own == len(records) or any(PurePosixPath(one.where).name == name for one in records[own].outputs):
        return ""
    return f"; revision {own + 1} found no output of this name: it was made later, elsewhere, or kept out of sight"


def revision_words(one: Revision) -> str:
    """What a revision's record says, on one line."""
    made = f"{len(one.outputs)} outputs existed" if one.outputs_existed else "no output existed"
    return f"supersedes {one.supersedes}, {utc(one.at_us)} UTC by that machine's clock, {made}: {one.reason}"
