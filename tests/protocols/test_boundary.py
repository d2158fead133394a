"""Where BOS, EOS and the boundary stand in an official prompt: two rules, and prompts that keep neither."""

import pytest

from harness.protocols.boundary import layout, special_places
from harness.records.profile import SpecialIds

BOS, EOS, TEXT = 1, 2, 9
SPECIAL = SpecialIds(bos=BOS, eos=EOS, pad=EOS)
TURN = (BOS, TEXT, TEXT, EOS, TEXT)
TURNS = (*TURN * 4, BOS, TEXT)
HISTORY = (BOS, TEXT, TEXT, EOS, TEXT)


def test_a_history_has_one_boundary():
    """Its only EOS."""
    places = special_places("assistant_history_end", HISTORY, SPECIAL)
    assert (places.bos, places.eos, places.boundary) == ((0,), (3,), 3)


def test_of_four_turns_the_third_ends_in_the_boundary():
    """BOS begins each of five turns, EOS ends four."""
    places = special_places("assistant_turn_end", TURNS, SPECIAL)
    assert (places.bos, places.eos, places.boundary) == ((0, 5, 10, 15, 20), (3, 8, 13, 18), 13)


@pytest.mark.parametrize(
    ("replaced", "bos", "eos"),
    [
        (EOS, [0, 5, 10, 15, 20], [3, 8, 13, 18]),
        (BOS, [0, 5, 10, 13, 15, 20], [3, 8, 18]),
        (TEXT, [0, 5, 10, 15, 20], [3, 8, 18]),
    ],
)
def test_an_edit_takes_one_eos_and_may_put_one_bos(replaced, bos, eos):
    """Every other BOS and EOS stays."""
    assert special_places("assistant_turn_end", TURNS, SPECIAL).edited(replaced, SPECIAL) == (bos, eos)


def put(ids, at, token):
    """The IDs with one replaced."""
    return (*ids[:at], token, *ids[at + 1 :])


OTHERWISE = {
    "no EOS in a history": ("assistant_history_end", put(HISTORY, 3, TEXT)),
    "two EOS in a history": ("assistant_history_end", (*HISTORY, EOS)),
    "a second BOS in a history": ("assistant_history_end", put(HISTORY, 1, BOS)),
    "a history that begins with EOS": ("assistant_history_end", (EOS, BOS)),
    "turns under the rule of a history": ("assistant_history_end", TURNS),
    "a history under the rule of turns": ("assistant_turn_end", HISTORY),
    "a turn less": ("assistant_turn_end", TURNS[5:]),
    "a turn more": ("assistant_turn_end", (*TURN, *TURNS)),
    "a turn that isn't closed": ("assistant_turn_end", put(TURNS, 3, TEXT)),
    "no open turn": ("assistant_turn_end", TURNS[:20]),
    "a closed last turn": ("assistant_turn_end", (*TURNS, EOS)),
    "text before the first BOS": ("assistant_turn_end", (TEXT, *TURNS)),
    "two turns in one": ("assistant_turn_end", put(put(TURNS, 3, BOS), 5, EOS)),
}


@pytest.mark.parametrize("name", OTHERWISE)
def test_a_prompt_that_is_laid_out_otherwise_has_no_boundary(name):
    """Nothing is guessed, and the rule has words for what it expects."""
    rule, ids = OTHERWISE[name]
    assert special_places(rule, ids, SPECIAL) is None
    assert "BOS" in layout(rule)
