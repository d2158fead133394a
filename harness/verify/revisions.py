"""Under which revision of its protocol the run was made, and every revision that the protocol has.

The loader holds the chain: each record names the one before and the digest that it supersedes, and a protocol whose
chain doesn't hold loads nowhere. What is left to say here is where in it the run stands.
"""

from harness.protocols.load import load_line
from harness.protocols.revisions import utc
from harness.records.revision import Revision
from harness.verify.ground import Ground, Lines, holds, nothing

STEP = "revisions"


def revisions_hold(ground: Ground) -> Lines:
    """One line for each revision, and before them which of them the run was made under."""
    where = f"protocol {ground.loaded.protocol.id}: revisions"
    line = load_line(ground.loaded.home, ground.tree)
    records = line[-1].history
    if not records:
        yield nothing(STEP, where, "none", "the protocol was never amended")
        return
    own, last = len(ground.loaded.history), len(records)
    under = "the protocol as it was frozen first" if not own else f"revision {own}"
    force = "in force" if own == last else f"superseded since; revision {last} is in force"
    yield holds(STEP, where, f"a chain of {last}", f"a chain of {last}; the run was made under {under}, {force}")
    for one in records:
        said = revision_words(one)
        yield holds(STEP, f"{where}/{one.number:04d}", said, said)


def revision_words(one: Revision) -> str:
    """What a revision's record says, on one line."""
    made = f"{len(one.outputs)} outputs existed" if one.outputs_existed else "no output existed"
    return f"supersedes {one.supersedes}, {utc(one.at_us)} UTC by that machine's clock, {made}: {one.reason}"
