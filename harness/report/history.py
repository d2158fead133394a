"""The protocol's line of revisions, the one that the run was made under, and how each digest stands in time."""

import re
from dataclasses import dataclass

from harness.claims.view import RunView
from harness.places import Places, places
from harness.protocols.anchor import OWED, anchor_of, anchor_words
from harness.protocols.load import LoadedProtocol, load_line
from harness.protocols.revisions import utc
from harness.report.page import Note, Section, table

HEAD = ("revision", "protocol digest", "anchor in time", "made (UTC)", "outputs by then", "reason")
SHOWN = re.compile(rb'<meta name="history" content="([01]{1,9999})">')
UNVERIFIED = (
    "This page verifies no token: python -m harness verify RUN --authority FILE does. The times of revisions are by "
    "the clock of the machine that made them, and outputs are those that were found on it."
)


@dataclass(frozen=True, slots=True)
class Shown:
    """What a page shows of a protocol's line: for each digest from the first whether as anchored; `as_text` is a
    character each, 0 or 1. What came later belongs to a later page.
    """

    anchored: tuple[bool, ...]

    def covers(self, other: "Shown") -> bool:
        """Whether all that another shows is here."""
        pairs = zip(self.anchored, other.anchored, strict=False)
        return len(other.anchored) <= len(self.anchored) and all(here or not there for here, there in pairs)

    @property
    def as_text(self) -> str:
        """For the page's own head."""
        return "".join(str(int(one)) for one in self.anchored)


def line_of(view: RunView, tree: Places | None = None) -> tuple[LoadedProtocol, ...]:
    """Every protocol of the run's line, from the first."""
    tree = tree or places()
    return load_line(view.loaded.home, tree)


def shown_here(view: RunView, tree: Places | None = None) -> Shown:
    """All that a page can show now."""
    return Shown(tuple(anchor_of(one) is not None for one in line_of(view, tree)))


def shown_by(page: bytes) -> Shown | None:
    """What a page says that it shows; None where it says nothing of the kind."""
    found = SHOWN.search(page)
    return Shown(tuple(one == "1" for one in found[1].decode())) if found else None


def history(view: RunView, shown: Shown, tree: Places | None = None) -> Section:
    """The section: in a sentence where the run stands, then a row for each digest that is shown."""
    line = line_of(view, tree)[: len(shown.anchored)]
    own = len(view.loaded.history)
    rows = [
        _row(one, number, anchored) for number, (one, anchored) in enumerate(zip(line, shown.anchored, strict=True))
    ]
    last = len(line) - 1
    time = rows[own][2]
    under = "the protocol as it was frozen first" if own == 0 else f"revision {own}"
    force = "" if own == last else f", which revision {last} has superseded since"
    said = f"The run was made under {under}{force}. {time[0].upper()}{time[1:]}."
    blocks = (Note(said), table("Revisions of the protocol", HEAD, rows), Note(UNVERIFIED))
    return Section("history", "Revisions and time", blocks)


def _row(one: LoadedProtocol, number: int, anchored: bool) -> tuple[str, ...]:  # noqa: FBT001  as a page shows it
    words = anchor_words(one) if anchored else OWED
    if not number:
        return ("0, as frozen first", one.digest, words, "", "", "")
    record = one.history[-1]
    outputs = f"{len(record.outputs)}" if record.outputs_existed else "none"
    return (str(number), one.digest, words, utc(record.at_us), outputs, record.reason)
