"""A chat template whose every turn begins with BOS and ends with EOS: prompts, their contract, and what breaks it."""

import msgspec
import pytest

from harness.canon import ids_sha256
from harness.errors import PromptError
from harness.prompts.build import build_batch, padded
from harness.prompts.contract import check_batch
from harness.prompts.tokenizer import make_tokenizer

replace = msgspec.structs.replace
BOS, EOS = 256, 257
TEMPLATE = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ bos_token + 'system\nTemplate text' + eos_token + '\n' }}{% endif %}"
    "{{ bos_token + message['role'] + '\n' + message['content'] + eos_token + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ bos_token + 'assistant\n' }}{% endif %}"
)


@pytest.fixture(scope="module")
def turns(make_files, profile_for):
    """The tiny tokenizer with that template."""
    files = make_files(chat_template=TEMPLATE)
    return make_tokenizer(*files, profile=profile_for(files), where="a test")


@pytest.fixture(scope="module")
def registered(protocol):
    """The registered design under the rule of turns."""
    return replace(protocol, prompt=replace(protocol.prompt, edited_boundary="assistant_turn_end"))


@pytest.fixture(scope="module")
def batch(registered, turns, source):
    """The source's batch."""
    return build_batch(registered, turns, source)


def cell(batch, name):
    """A cell by its condition."""
    return next(one for one in batch.cells if one.condition == name)


def test_the_boundary_ends_the_one_shot_answer(batch, registered, turns):
    """In IDs: the text before it ends with the answer, and the template's turn goes on after it."""
    for one in batch.cells:
        before, after = one.ids[: one.boundary_position], one.ids[one.boundary_position + 1 :]
        assert turns.decode(before).endswith(f"assistant\n{registered.prompt.one_shot_answer}")
        assert turns.decode(after).startswith("\n<|bos|>user\n")


def test_without_a_system_message_the_templates_own_stands_in_its_place(batch, registered, turns):
    """So both levels have the same turns, and no prompt is without a system turn."""
    texts = {name: turns.decode(cell(batch, name).ids) for name in ("s0_eos", "s1_eos")}
    assert texts["s0_eos"].startswith("<|bos|>system\nTemplate text<|eos|>\n<|bos|>user\n")
    assert texts["s1_eos"].startswith(f"<|bos|>system\n{registered.prompt.system_text}<|eos|>\n<|bos|>user\n")
    assert texts["s0_eos"].split("<|bos|>user\n")[1:] == texts["s1_eos"].split("<|bos|>user\n")[1:]


def test_an_edited_cell_lacks_one_eos_and_only_a_bos_cell_has_a_bos_more(batch):
    """Of four and of five."""
    counts = {one.condition: (one.ids.count(EOS), one.ids.count(BOS)) for one in batch.cells}
    assert counts == {
        f"{level}_{name}": count
        for level in ("s0", "s1")
        for name, count in (("eos", (4, 5)), ("bos", (3, 6)), ("x", (3, 5)), ("period", (3, 5)))
    }


def test_padding_masks_no_eos_of_a_prompt(batch):
    """EOS is PAD, and stands four times inside."""
    ids, mask = padded(batch, EOS)
    for row, seen, one in zip(ids, mask, batch.cells, strict=True):
        assert tuple(token for token, on in zip(row, seen, strict=True) if on) == one.ids


def with_ids(one, ids):
    """The cell with other IDs, hash and length made to agree."""
    return replace(one, ids=ids, sha256=ids_sha256(ids), length=len(ids))


def put(one, at, token):
    """The cell with one ID replaced."""
    at %= one.length
    return with_ids(one, (*one.ids[:at], token, *one.ids[at + 1 :]))


def elsewhere(one):
    """The cell with the boundary said to be at the question's end, where an EOS stands too."""
    return replace(one, boundary_position=one.ids.index(EOS, one.ids.index(EOS) + 1))


FAULTS = {
    "a BOS less": ("s0_eos", lambda c: put(c, 0, 3), "s0_eos: turns: expected BOS at the start, 4 turns"),
    "an EOS more": ("s0_eos", lambda c: put(c, -1, EOS), "s0_eos: turns"),
    "an EOS less elsewhere": ("s1_x", lambda c: put(c, c.ids.index(EOS), 3), "s1_x: turns"),
    "a BOS more": ("s0_bos", lambda c: put(c, 3, BOS), "s0_bos: turns"),
    "the boundary at another turn's end": ("s0_eos", elsewhere, r"s0_eos: turns: .*the boundary at \d+, found BOS and"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_cell_that_breaks_the_turns_is_refused(fault, batch, registered, turns):
    """Hash, length and edit agree with the IDs: only the turns don't."""
    name, damage, message = FAULTS[fault]
    cells = tuple(damage(one) if one.condition == name else one for one in batch.cells)
    with pytest.raises(PromptError, match=message):
        check_batch(registered, turns.special_ids, replace(batch, cells=cells))


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (
            TEMPLATE.replace("'system\nTemplate text' + eos_token", "'system\nTemplate text'"),
            "official prompt: expected",
        ),
        (
            TEMPLATE.replace("+ eos_token + '\n' }}{% endfor", "+ ' ' + eos_token + '\n' }}{% endfor"),
            "before the boundary",
        ),
    ],
    ids=["a turn that isn't closed", "text between answer and boundary"],
)
def test_a_template_of_another_layout_is_refused(template, message, make_files, profile_for, registered, source):
    """Before any cell is made: turns that don't close, and an EOS that isn't the answer's own end."""
    files = make_files(chat_template=template)
    other = make_tokenizer(*files, profile=profile_for(files), where="a test")
    with pytest.raises(PromptError, match=message):
        build_batch(registered, other, source)


def test_turns_under_the_rule_of_one_history_are_refused(protocol, turns, source):
    """Four EOS: the registered rule decides which, never the template."""
    with pytest.raises(PromptError, match="official prompt: expected one BOS, at the start, and one EOS"):
        build_batch(protocol, turns, source)
