"""Where BOS, EOS and the historical boundary stand in an official prompt, by the protocol's rule and IDs alone (R04 2).

Two rules, for two kinds of chat template. A prompt that isn't laid out as its rule says has none: nothing is guessed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.records.profile import SpecialIds
from harness.records.prompt import EditedBoundary

CLOSED_TURNS = 4  # system, one-shot question, one-shot answer, task; the turn of the answer to come stays open
ANSWER = 2  # of the closed turns the one whose end is edited


@dataclass(frozen=True, slots=True)
class SpecialPlaces:
    """Positions of BOS and EOS in an official prompt, ascending, and of the EOS that is the boundary."""

    bos: tuple[int, ...]
    eos: tuple[int, ...]
    boundary: int

    def edited(self, replaced: int, special: SpecialIds) -> tuple[list[int], list[int]]:
        """Positions of BOS and of EOS once the boundary's ID is `replaced`."""
        bos = sorted({*self.bos, self.boundary} if replaced == special.bos else self.bos)
        return bos, [place for place in self.eos if replaced == special.eos or place != self.boundary]


def special_places(rule: EditedBoundary, ids: Sequence[int], special: SpecialIds) -> SpecialPlaces | None:
    """The places of an official prompt; None where it isn't laid out as the rule says (`layout` has the words)."""
    bos = tuple(place for place, token in enumerate(ids) if token == special.bos)
    eos = tuple(place for place, token in enumerate(ids) if token == special.eos)
    if rule == "assistant_history_end":
        return SpecialPlaces(bos, eos, eos[0]) if bos == (0,) and len(eos) == 1 and eos[0] > 0 else None
    whole = len(bos) == CLOSED_TURNS + 1 and len(eos) == CLOSED_TURNS and bos[0] == 0
    nested = whole and all(bos[turn] < eos[turn] < bos[turn + 1] for turn in range(CLOSED_TURNS))
    return SpecialPlaces(bos, eos, eos[ANSWER]) if nested else None


def layout(rule: EditedBoundary) -> str:
    """What the rule expects of an official prompt, in words."""
    if rule == "assistant_history_end":
        return "one BOS, at the start, and one EOS, at the end of the one-shot answer"
    return f"BOS at the start, {CLOSED_TURNS} turns from BOS to EOS and an open one"
