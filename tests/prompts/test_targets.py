"""Target tokens (R05 depth 7.2): wholly inside the source's characters, the same IDs in every cell, its ends counted.

The reference works on the UTF-8 bytes of each token, which the tokenizer's vocabulary gives, and knows no offsets.
"""

import dataclasses
import os
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from harness.canon import ids_sha256, text_sha256
from harness.errors import ModelError, PromptError
from harness.inputs.sources import SourceText
from harness.places import places
from harness.prompts.build import build_batch
from harness.prompts.registered import registered_batches
from harness.prompts.render import RenderedPrompt
from harness.prompts.targets import source_targets, target_tokens
from harness.prompts.tokenizer import PromptTokenizer, locate_tokenizer
from harness.protocols.load import load_protocol
from harness.records.depth import TargetTokens

replace = msgspec.structs.replace
PROTOCOLS = ("nano-depth", "deepseek-depth")
# Characters of one to four bytes, and what tokenizers join: spaces, line ends, digits.
LETTERS = "abz.,?:(=1290 \t\n\r\u00e9\u00a0\u4eca\u5929\u6797\u9f98\U00020bb7\U0001f600\U0001f469\u200d\U0001f4bb\ufe0f"
TEXTS = st.text(alphabet=LETTERS, max_size=12)


@cache
def registered(protocol_id: str) -> PromptTokenizer:
    """The registered tokenizer of a protocol."""
    return locate_tokenizer(load_protocol(protocol_id), None, places())


@cache
def alphabet() -> dict[str, int]:
    """The byte that each letter of the byte-level alphabet stands for."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + at): byte for at, byte in enumerate(others)}


def token_bytes(tokenizer: PromptTokenizer, text: str) -> list[bytes]:
    """The bytes of each token of a text, from the vocabulary's own spelling; together they are the text's."""
    added = {token: one.content for token, one in tokenizer.backend.get_added_tokens_decoder().items()}
    pieces = [
        added[token].encode()
        if token in added
        else bytes(alphabet()[letter] for letter in tokenizer.backend.id_to_token(token))
        for token in tokenizer.encode(text)
    ]
    assert b"".join(pieces) == text.encode()
    return pieces


def by_bytes(pieces: list[bytes], prompt: RenderedPrompt) -> TargetTokens | None:
    """The target by the places of bytes; none where no token lies wholly inside."""
    start, end = (len(prompt.text[:edge].encode()) for edge in (prompt.target_start, prompt.target_end))
    inside, crossing, at = [], 0, 0
    for place, piece in enumerate(pieces):
        after = at + len(piece)
        if start <= at and after <= end:
            inside.append(place)
        if at < start < after or at < end < after:
            crossing += 1
        at = after
    return TargetTokens(start=inside[0], end=inside[-1] + 1, crossing=crossing) if inside else None


def around(before: str, text: str, after: str) -> RenderedPrompt:
    """A source between two texts."""
    return RenderedPrompt(before + text + after, len(before), len(before) + len(text))


def found_in(tokenizer: PromptTokenizer, prompt: RenderedPrompt) -> TargetTokens | None:
    """What is tested, in the reference's words."""
    try:
        return target_tokens(tokenizer, prompt, where="src")
    except PromptError:
        return None


class Cut:
    """A tokenizer's backend that cuts every text at given places."""

    def __init__(self, *spans: tuple[int, int]) -> None:
        self.spans = spans

    def encode(self, text: str, *, add_special_tokens: bool) -> SimpleNamespace:
        """IDs by their place, and the offsets."""
        assert not add_special_tokens
        return SimpleNamespace(ids=list(range(len(self.spans))), offsets=list(self.spans))


@pytest.fixture
def cut(tokenizer):
    """`cut(*spans)`: a tokenizer with exactly these offsets."""
    return lambda *spans: dataclasses.replace(tokenizer, backend=Cut(*spans))


# Source "cdef" in "abcdefgh", at [2, 6).
CUTS = {
    "at both ends": (((0, 2), (2, 4), (4, 6), (6, 8)), (1, 3, 0)),
    "letter by letter": (tuple((at, at + 1) for at in range(8)), (2, 6, 0)),
    "crossing at the start": (((0, 3), (3, 6), (6, 8)), (1, 2, 1)),
    "crossing at the end": (((0, 2), (2, 4), (4, 7), (7, 8)), (1, 2, 1)),
    "crossing at both ends": (((0, 3), (3, 5), (5, 8)), (1, 2, 2)),
    "one token is the source": (((0, 2), (2, 6), (6, 8)), (1, 2, 0)),
    "a character in two tokens, inside": (((0, 2), (2, 4), (3, 6), (6, 8)), (1, 3, 0)),
    "the source's first character in two tokens": (((0, 2), (2, 3), (2, 5), (5, 6), (6, 8)), (1, 4, 0)),
    "the character before it in two tokens": (((0, 2), (1, 3), (3, 6), (6, 8)), (2, 3, 1)),
    "the source's last character in two tokens": (((0, 2), (2, 6), (5, 7), (7, 8)), (1, 2, 1)),
    "the character after it in two tokens": (((0, 2), (2, 6), (6, 7), (6, 8)), (1, 2, 0)),
}


@pytest.mark.parametrize("name", CUTS)
def test_only_tokens_wholly_inside_are_the_target(cut, name):
    """R05 depth 7.2: a token that an end of the source cuts is left out and counted, once however many ends it has."""
    spans, (start, end, crossing) = CUTS[name]
    found = target_tokens(cut(*spans), around("ab", "cdef", "gh"), where="src")
    assert found == TargetTokens(start=start, end=end, crossing=crossing)


NONE_INSIDE = {
    "one token over both ends": ((0, 1), (1, 7), (7, 8)),
    "one token over the whole prompt": ((0, 8),),
    "two tokens that meet inside": ((0, 4), (4, 8)),
}


@pytest.mark.parametrize("name", NONE_INSIDE)
def test_a_source_without_a_token_of_its_own_is_refused(cut, name):
    """Nothing of it could be compared: the source is named, with how many tokens there were."""
    spans = NONE_INSIDE[name]
    with pytest.raises(PromptError, match=rf"^src: target tokens: expected a token wholly.*found none of {len(spans)}"):
        target_tokens(cut(*spans), around("ab", "cdef", "gh"), where="src")


def test_an_empty_source_has_no_target(cut):
    """No token is wholly inside no characters."""
    with pytest.raises(PromptError, match="found none of 2"):
        target_tokens(cut((0, 1), (1, 2)), around("a", "", "b"), where="src")


GAPS = {
    "trimmed at the start": (((1, 4), (4, 8)), 0),
    "trimmed inside": (((0, 3), (4, 8)), 3),
    "trimmed at the end": (((0, 4), (4, 7)), 7),
    "a token of no character": (((0, 4), (4, 4), (4, 8)), 4),
    "backwards": (((0, 4), (2, 3), (4, 8)), 4),
    "no token": ((), 0),
}


@pytest.mark.parametrize("name", GAPS)
def test_offsets_that_leave_a_character_out_are_refused(cut, name):
    """Where offsets don't tile the text, no place in it is sure: the tokenizer is named by its digest."""
    spans, at = GAPS[name]
    tokenizer = cut(*spans)
    with pytest.raises(ModelError, match=f"^offsets of tokenizer {tokenizer.sha256[:16]}: .*a gap at character {at}"):
        tokenizer.spans("abcdefgh")


def test_offsets_beyond_the_text_are_refused(cut):
    """Nor may they reach further than the text does."""
    with pytest.raises(ModelError, match="expected tokens that tile all 3 characters"):
        cut((0, 2), (2, 4)).spans("abc")


def byte_level(**parts) -> Tokenizer:
    """A byte-level backend in which words keep their leading space; keywords set its parts."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(
        models.BPE(vocab={letter: at for at, letter in enumerate([*letters, "Ġa"])}, merges=[("Ġ", "a")])
    )
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    for name, part in parts.items():
        setattr(backend, name, part)
    return backend


TRIMMING = {
    "trim_offsets": {"post_processor": processors.ByteLevel(trim_offsets=True)},
    "strips": {"normalizer": normalizers.Strip()},
    "drops spaces": {"pre_tokenizer": pre_tokenizers.Whitespace()},
}


@pytest.mark.parametrize("name", TRIMMING)
def test_a_tokenizer_that_trims_its_offsets_is_refused(tokenizer, name):
    """A real one whose offsets leave out the space that belongs to a word."""
    trimming = dataclasses.replace(tokenizer, backend=byte_level(**TRIMMING[name]))
    with pytest.raises(ModelError, match=r"a gap at character \d+\. Use a tokenizer that doesn't trim its offsets"):
        trimming.spans(" a b ")


def test_a_tokenizer_that_keeps_its_offsets_is_accepted(tokenizer):
    """The same with trim_offsets=false: the space is its word's."""
    keeping = dataclasses.replace(
        tokenizer, backend=byte_level(post_processor=processors.ByteLevel(trim_offsets=False))
    )
    assert keeping.spans(" a b ") == ((0, 2), (2, 3), (3, 4), (4, 5))


def test_spans_are_in_the_order_of_the_ids(tokenizer):
    """One span an ID; bytes of one character share it."""
    assert tokenizer.spans("a\u4eca\n") == ((0, 1), (1, 2), (1, 2), (1, 2), (2, 3))
    assert len(tokenizer.encode("a\u4eca\n")) == 5
    assert tokenizer.spans("") == ()


# Each family: (before, source, after) and what stands at its ends.
HARD = [
    ("Text:\n\n", " leading and trailing \n", "\n\nAssistant:"),
    ("Text:\n\n", "\n\nline ends\n\n", "\n\nAssistant:"),
    ("", "  \n ", ""),
    ("\u4eca", "\u5929\u6797", "\u9f98"),
    ("\u7eed\u5199\uff1a\n\n", "\u9f98\U00020bb7\u9f98", "\n\nAssistant:"),
    ("a", "\U0001f469\u200d\U0001f4bb", "\U0001f469\u200d\U0001f4bb"),
    ("\U0001f600", "\U0001f600", "\U0001f600"),
    ("12", "34", "56"),
    ("\r", "\n", "\r\n"),
]


@pytest.mark.parametrize("protocol_id", PROTOCOLS)
@pytest.mark.parametrize("texts", HARD, ids=ascii)
def test_hard_ends_against_the_bytes(protocol_id, texts):
    """Leading and trailing spaces and line ends, characters of three and four bytes on both sides of an end."""
    tokenizer, prompt = registered(protocol_id), around(*texts)
    assert found_in(tokenizer, prompt) == by_bytes(token_bytes(tokenizer, prompt.text), prompt)


@pytest.mark.parametrize("protocol_id", PROTOCOLS)
@given(before=TEXTS, text=TEXTS, after=TEXTS)
@example(before="a", text="\u9f98", after="\u9f98")
def test_any_text_against_the_bytes(protocol_id, before, text, after):
    """Both registered tokenizers, on texts whose characters they cut: the same tokens as by their bytes."""
    tokenizer, prompt = registered(protocol_id), around(before, text, after)
    assert found_in(tokenizer, prompt) == by_bytes(token_bytes(tokenizer, prompt.text), prompt)


@pytest.mark.parametrize("protocol_id", PROTOCOLS)
@pytest.mark.parametrize("letter", ["\u9f98", "\U00020bb7", "\U0001f9ff"], ids=ascii)
def test_a_character_in_several_tokens_is_inside_with_all_of_them(protocol_id, letter):
    """The registered tokenizers do cut characters; every part of the source's own one is its target."""
    tokenizer = registered(protocol_id)
    found = target_tokens(tokenizer, around("a", letter, "b"), where="src")
    tokens = len(tokenizer.encode(f"a{letter}b")) - 2
    assert tokens >= 2
    assert found == TargetTokens(start=1, end=1 + tokens, crossing=0)


# What nano's templates do to a source's ends: a space before its first word, a line end after its last.
JOINED = {
    "start": (("User: ", "Leo fills 2 boxes.", "\nSolve the problem step by step."), b" Leo"),
    "end": (("function:\n\n", "def f(n):\n    return n\n", "\n\nAssistant:"), b"\n\n"),
}


@pytest.mark.parametrize("end", JOINED)
def test_a_token_that_the_prompts_text_shares_with_the_source_crosses(end):
    """It isn't the source's alone, so it's counted and not compared; the next one is."""
    texts, piece = JOINED[end]
    tokenizer, prompt = registered("nano-depth"), around(*texts)
    pieces = token_bytes(tokenizer, prompt.text)
    found = target_tokens(tokenizer, prompt, where="src")
    at = found.start - 1 if end == "start" else found.end
    assert (pieces[at], found.crossing) == (piece, 1)


def with_text(source: SourceText, text: str) -> SourceText:
    """The source with another text and its hash."""
    return replace(source, text=text, text_sha256=text_sha256(text))


@pytest.fixture
def tiny(protocol, tokenizer, source, batch):
    """`tiny(batch)`: targets of the small source, in that batch or in its own."""
    return lambda changed=batch: source_targets(protocol, tokenizer, source, changed)


def test_the_targets_of_a_batch_are_the_sources_bytes(tiny, tokenizer, source, batch):
    """One target a cell, in the batch's order: every byte of the text is a token of this tokenizer."""
    found = tiny()
    assert found.tokens == len(source.text.encode())
    assert [one.crossing for one in found.cells] == [0] * 8
    for cell, target in zip(batch.cells, found.cells, strict=True):
        assert tokenizer.decode(cell.ids[target.start : target.end]) == source.text
    assert found.content_token_ids_sha256 == ids_sha256(tokenizer.encode(source.text))


def test_a_level_moves_the_target_and_nothing_else(tiny, protocol, tokenizer, batch):
    """The system text is before it: as many tokens later as that text has, in every cell of the level."""
    shift = tokenizer.count(f"{protocol.prompt.system_text}\n\n")
    starts = {cell.condition: target.start for cell, target in zip(batch.cells, tiny().cells, strict=True)}
    assert {starts[f"s1_{name}"] - starts[f"s0_{name}"] for name in ("eos", "bos", "x", "period")} == {shift}


def test_the_content_is_hashed_by_source(protocol, tokenizer, source, batch):
    """R05 depth 10: taken for this source, right after its own check; another text has another hash."""
    other = with_text(source, f"{source.text}!")
    one = source_targets(protocol, tokenizer, source, batch)
    two = source_targets(protocol, tokenizer, other, build_batch(protocol, tokenizer, other))
    assert two.tokens == one.tokens + 1
    assert one.content_token_ids_sha256 != two.content_token_ids_sha256
    assert source_targets(protocol, tokenizer, source, batch) == one


def altered(batch, condition, ids):
    """The batch with other IDs in one cell."""
    cells = tuple(replace(cell, ids=ids(cell.ids)) if cell.condition == condition else cell for cell in batch.cells)
    return replace(batch, cells=cells)


@pytest.mark.parametrize("condition", ["s1_eos", "s0_bos", "s1_period"])
@pytest.mark.parametrize("place", [0, -1], ids=["first", "last"])
def test_other_content_in_one_cell_is_refused(tiny, batch, condition, place):
    """R05 depth 7.2: the same target tokens in every condition, checked first; source and condition are named."""
    row = [cell.condition for cell in batch.cells].index(condition)
    target = tiny().cells[row]
    at = range(target.start, target.end)[place]
    changed = altered(batch, condition, lambda ids: (*ids[:at], ids[at] + 1, *ids[at + 1 :]))
    with pytest.raises(
        PromptError, match=rf"^gsm8k/test/1069 {condition}: target tokens: expected the \d+ IDs of s0_eos"
    ):
        tiny(changed)


def test_content_that_differs_between_the_levels_is_refused(tiny, batch):
    """Every cell with a system text has one token more before the source than its rendered prompt."""
    level = [cell.condition for cell in batch.cells if cell.condition.startswith("s1")]
    changed = batch
    for condition in level:
        changed = altered(changed, condition, lambda ids: (*ids[:1], 5, *ids[1:]))
    with pytest.raises(PromptError, match=r"^gsm8k/test/1069 s1_eos: target tokens: .*found \d+ IDs, others"):
        tiny(changed)


def test_content_that_is_cut_short_in_one_cell_is_refused(tiny, batch):
    """A prompt that ends within the source has fewer tokens of it."""
    changed = altered(batch, "s1_x", lambda ids: ids[: tiny().cells[5].end - 2])
    with pytest.raises(PromptError, match=r"s1_x: target tokens: expected the 28 IDs of s0_eos, found 26 IDs, others"):
        tiny(changed)


def test_a_change_outside_the_content_is_not_the_targets_business(tiny, batch):
    """Hashes and the prompt contract have that."""
    assert tiny(altered(batch, "s0_x", lambda ids: (*ids[:-1], 5))) == tiny()


def test_levels_whose_tokenizer_joins_the_source_differently_are_refused(protocol, tokenizer, source, cut):
    """A tokenizer that cuts the source in another way behind a system text: no target is made of it."""

    class Uneven(Cut):
        def encode(self, text, *, add_special_tokens):
            # With a system text, the source's first two characters are one token.
            system, at = protocol.prompt.system_text in text, text.rindex(source.text)
            spans = [(0, 1)] if at == 0 else [(0, at)]
            spans += [(at, at + 2)] if system else [(at, at + 1), (at + 1, at + 2)]
            spans += [(place, place + 1) for place in range(at + 2, len(text))]
            return SimpleNamespace(ids=[hash(span) for span in spans], offsets=spans)

    batch = build_batch(protocol, tokenizer, source)
    with pytest.raises(PromptError, match=r"gsm8k/test/1069 s1_eos: target tokens"):
        source_targets(protocol, dataclasses.replace(tokenizer, backend=Uneven()), source, batch)


# Tokens wholly inside by source, and tokens that an end cuts: one a cell in every source of the named domains.
NANO = {
    "nano-english/003": 27, "nano-english/016": 31, "nano-english/004": 28, "nano-english/009": 31,
    "nano-chinese/001": 30, "nano-chinese/020": 23, "nano-chinese/014": 23, "nano-chinese/022": 29,
    "nano-code/004": 65, "nano-code/023": 51, "nano-code/062": 60, "nano-code/050": 87,
    "nano-math/0128": 25, "nano-math/0123": 26, "nano-math/0091": 31, "nano-math/0115": 24,
}  # fmt: skip
DEEPSEEK = {
    "wikitext2/raw-validation/0443": 116, "wikitext2/raw-validation/0030": 55,
    "wikitext2/raw-validation/2909": 249, "wikitext2/raw-validation/2746": 252,
    "HumanEval/31": 121, "HumanEval/44": 109, "HumanEval/133": 167, "HumanEval/23": 43,
    "gsm8k/test/1069": 106, "gsm8k/test/1228": 34, "gsm8k/test/0144": 130, "gsm8k/test/1251": 74,
}  # fmt: skip


def counted(batches) -> dict[str, tuple[int, int, int]]:
    """By domain: target tokens a condition, crossing tokens and crossing variants over all cells."""
    sums: dict[str, tuple[int, int, int]] = {}
    for one in batches.values():
        crossing = [target.crossing for target in one.targets.cells]
        values = (one.targets.tokens, sum(crossing), sum(1 for tokens in crossing if tokens))
        old = sums.get(one.prompts.domain, (0, 0, 0))
        sums[one.prompts.domain] = tuple(a + b for a, b in zip(old, values, strict=True))
    return sums


def require_bytes(loaded, tokenizer, batches, texts) -> None:
    """Every target of every cell is what the bytes of its tokens say."""
    for source_id, one in batches.items():
        text = texts[source_id]
        for cell, target in zip(one.prompts.cells, one.targets.cells, strict=True):
            # The official prompt of the cell's level: the edit stands before the source.
            ids = list(cell.ids)
            for edit in cell.edits:
                ids[edit.position] = edit.official
            rendered = tokenizer.decode(ids)
            at = rendered.rindex(text)
            prompt = RenderedPrompt(rendered, at, at + len(text))
            assert target == by_bytes(token_bytes(tokenizer, rendered), prompt), (source_id, cell.condition)
            assert max((edit.position for edit in cell.edits), default=0) < target.start


def read(loaded, inputs, domains):
    """Batches and texts of four sources a domain."""
    from harness.inputs.find import find_inputs
    from harness.inputs.sources import source_texts

    tokenizer = locate_tokenizer(loaded, None, places())
    found = find_inputs(loaded.protocol, inputs)
    texts = {one.source_id: one.text for one in source_texts(loaded, found, domains=domains, per_domain=4)}
    return tokenizer, registered_batches(loaded, tokenizer, inputs, domains=domains, per_domain=4), texts


def test_the_sixteen_sources_of_nano():
    """591 target tokens a condition; code and mathematics are cut at one end, in each of their 64 variants."""
    loaded = load_protocol("nano-depth")
    tokenizer, batches, texts = read(loaded, (), loaded.domains)
    assert {name: one.targets.tokens for name, one in batches.items()} == NANO
    assert counted(batches) == {
        "english": (117, 0, 0), "chinese": (105, 0, 0), "code": (263, 32, 32), "math": (106, 32, 32)
    }  # fmt: skip
    require_bytes(loaded, tokenizer, batches, texts)


@pytest.mark.inputs
def test_the_twelve_available_sources_of_the_registered_design():
    """1,456 target tokens a condition over three domains; mathematics alone is cut, once in each of its 32 variants.

    The published 1,537 and 56 are of other texts around the sources, and of four domains.
    """
    loaded, domains = load_protocol("deepseek-depth"), ("english", "code", "math")
    tokenizer, batches, texts = read(loaded, (Path(os.environ["HARNESS_INPUTS"]),), domains)
    assert {name: one.targets.tokens for name, one in batches.items()} == DEEPSEEK
    assert counted(batches) == {"english": (672, 0, 0), "code": (440, 0, 0), "math": (344, 32, 32)}
    require_bytes(loaded, tokenizer, batches, texts)


def test_a_protocol_that_traces_nothing_has_no_targets():
    """The same sources under nano-behavior: prompts alone."""
    loaded = load_protocol("nano-behavior")
    batches = registered_batches(loaded, registered("nano-depth"), (), domains=("math",), per_domain=1)
    assert [one.targets for one in batches.values()] == [None]
