"""What a study's own judges need of a generated run: expected texts from the inputs, and what author's functions give.

Written once beside the journals, before the run is assembled.
"""

from collections.abc import Sequence
from pathlib import Path

from harness.checks.scored import scores_given
from harness.gold import registered_answers
from harness.journal.assemble import ANSWERS, SCORES, read_units
from harness.journal.folder import RunFolder, write_once
from harness.protocols.grids import UnitKey
from harness.protocols.load import LoadedProtocol
from harness.records.protocol import StudyProtocol
from harness.records.run import UnitEvidence


def note_answers(loaded: LoadedProtocol, folder: RunFolder, inputs: Sequence[Path], keys: Sequence[UnitKey]) -> None:
    """Write answers.json and scores.json of a study's run; JournalError where they are there and say otherwise."""
    if not isinstance(loaded.protocol, StudyProtocol):
        return
    write_once(folder.file(ANSWERS), registered_answers(loaded, inputs, keys), what="expected texts")
    if folder.file(SCORES).exists():
        return  # a session that judges the run again holds them against the function in a gate of their own
    evidence = [journal.evidence for journal in read_units(folder, loaded).values()]
    units = [unit for unit in evidence if isinstance(unit, UnitEvidence)]
    write_once(folder.file(SCORES), scores_given(loaded, units, inputs, keys), what="scores")
