import msgspec
import pytest

from harness.canon import ids_sha256, text_sha256
from harness.errors import PromptError
from harness.inputs.sources import SourceText
from harness.prompts.build import Place, build_batch, make_cell, padded
from harness.prompts.records import PromptBatch
from harness.prompts.tokenizer import PromptTokenizer
from harness.records.profile import SpecialIds
from harness.records.protocol import Protocol
from harness.records.run import Edit

replace = msgspec.structs.replace
CONDITIONS = ["s0_eos", "s1_eos", "s0_bos", "s1_bos", "s0_x", "s1_x", "s0_period", "s1_period"]


def with_text(source: SourceText, text: str) -> SourceText:
    """The source with another text and its hash."""
    return replace(source, text=text, text_sha256=text_sha256(text))


def test_cells_stand_in_the_protocols_order_and_name_their_source(batch: PromptBatch, source: SourceText):
    """A batch has the eight registered cells and the source's identity, and no text of it."""
    assert [cell.condition for cell in batch.cells] == CONDITIONS
    assert (batch.source_id, batch.text_sha256) == (source.source_id, source.text_sha256)
    assert {"text", "gold"}.isdisjoint(batch.__struct_fields__)


@pytest.mark.parametrize(("row", "level"), [(2, 0), (3, 1), (4, 0), (5, 1), (6, 0), (7, 1)])
def test_an_edited_cell_is_its_levels_official_cell_but_for_one_id(
    row: int, level: int, batch: PromptBatch, protocol: Protocol
):
    """R04 2 and 6.4: exactly the historical EOS is replaced, by the boundary's ID."""
    official, cell = batch.cells[level], batch.cells[row]
    differing = [at for at, pair in enumerate(zip(official.ids, cell.ids, strict=True)) if pair[0] != pair[1]]
    boundary = protocol.conditions[row].boundary
    replaced = next(one.id for one in protocol.boundaries if one.name == boundary)
    assert differing == [official.ids.index(257)] == [cell.boundary_position]
    assert cell.edits == (Edit(position=cell.boundary_position, official=257, replaced=replaced),)
    assert cell.sha256 == ids_sha256(cell.ids) != official.sha256


@pytest.mark.parametrize("row", [0, 1])
def test_an_official_cell_has_no_edit(row: int, batch: PromptBatch, tokenizer: PromptTokenizer):
    """The official prompt is the template's own tokens."""
    assert batch.cells[row].edits == ()
    assert tokenizer.encode(tokenizer.decode(batch.cells[row].ids)) == batch.cells[row].ids


def test_each_level_is_tokenised_once(protocol: Protocol, tokenizer: PromptTokenizer, source: SourceText):
    """Edited cells come from their level's list of IDs, never from edited text."""
    calls: list[str] = []

    class Counting:
        def __getattr__(self, name: str):
            return getattr(tokenizer, name)

        def encode(self, text: str) -> tuple[int, ...]:
            calls.append(text)
            return tokenizer.encode(text)

    build_batch(protocol, Counting(), source)
    assert len([text for text in calls if text.startswith("<|bos|>")]) == 2


def test_the_system_text_alone_makes_the_lengths_differ(
    batch: PromptBatch, protocol: Protocol, tokenizer: PromptTokenizer
):
    """R04 6.3: a level's four cells are equally long; the other level is longer by the system text's tokens."""
    lengths = {cell.condition[:2]: cell.length for cell in batch.cells}
    assert {cell.length for cell in batch.cells} == set(lengths.values())
    assert lengths["s1"] - lengths["s0"] == tokenizer.count(f"{protocol.prompt.system_text}\n\n")
    assert batch.width == lengths["s1"]


def test_padding_is_on_the_left_and_masked_and_no_eos_of_a_prompt_is(batch: PromptBatch):
    """PAD is EOS with mask 0 on the left; the prompt's own EOS, the same ID, is seen."""
    ids, mask = padded(batch, 257)
    assert {len(row) for row in (*ids, *mask)} == {batch.width}
    pads = batch.padding[0]
    assert pads > 0
    assert ids[0][:pads] == (257,) * pads
    assert mask[0] == (0,) * pads + (1,) * batch.cells[0].length
    seen = [at for at, pair in enumerate(zip(ids[0], mask[0], strict=True)) if pair == (257, 1)]
    assert seen == [pads + batch.cells[0].boundary_position]
    assert [row[-1] for row in ids] == [batch.cells[0].ids[-1]] * 8


@pytest.mark.parametrize("special", ["<|bos|>", "<|eos|>", "<|tool|>"])
def test_a_source_with_a_special_tokens_text_is_refused(
    special: str, protocol: Protocol, tokenizer: PromptTokenizer, source: SourceText
):
    """Any added token's text in a source is refused, also one that isn't called special."""
    with pytest.raises(PromptError) as raised:
        build_batch(protocol, tokenizer, with_text(source, f"a{special}b"))
    assert raised.value.where == "gsm8k/test/1069: source text"
    assert special in raised.value.found


@pytest.mark.parametrize("field", ["system_text", "one_shot_question", "one_shot_answer"])
def test_a_registered_text_with_a_special_tokens_text_is_refused(field: str, protocol, tokenizer, source):
    """System and one-shot texts can't smuggle a second EOS in."""
    other = replace(protocol, prompt=replace(protocol.prompt, **{field: "a<|eos|>"}))
    with pytest.raises(PromptError, match=rf"prompt\.{field}: expected no special token's text"):
        build_batch(other, tokenizer, source)


def test_a_domains_wording_with_a_special_tokens_text_is_refused(protocol, tokenizer, source):
    """The wording around the source is held to the same rule."""
    domains = (*protocol.domains[:3], replace(protocol.domains[3], content="{text}<|bos|>"))
    with pytest.raises(PromptError, match=r"domains\.math\.content"):
        build_batch(replace(protocol, domains=domains), tokenizer, source)


@pytest.mark.parametrize(("ids", "found"), [((256, 65, 66), r"\[\]"), ((256, 257, 65, 257), r"\[1, 3\]")])
def test_an_official_prompt_without_exactly_one_eos_is_refused(ids, found, protocol: Protocol):
    """There must be one historical boundary to edit."""
    place = Place("assistant_history_end", SpecialIds(bos=256, eos=257, pad=257), "src")
    with pytest.raises(
        PromptError,
        match=rf"src s0_x: official prompt: .* one EOS, .*found BOS at positions \[0\], EOS at positions {found}",
    ):
        make_cell(ids, protocol.conditions[4], protocol.boundaries[2], place=place)
