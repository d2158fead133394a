"""A study's prompts: each place proven in characters and tokens, every edit what was registered, or an error."""

from dataclasses import replace

import msgspec
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from harness.canon import ids_sha256
from harness.errors import ModelError, PromptError
from harness.places import places
from harness.prompts.build import build_batch
from harness.prompts.places import character_of, token_of
from harness.prompts.render import render_messages
from harness.prompts.study import apply_spans
from harness.protocols.load import read_protocol
from harness.records.prompt import Boundary, PromptRules
from harness.records.protocol import StudyProtocol
from harness.records.study import (
    BeforeGeneration,
    HistoryEnd,
    Message,
    MessageEnd,
    PlacedEdit,
    PromptStart,
    SpanEdit,
    StudyCondition,
    StudyEvaluators,
)

HISTORY = (
    Message(role="user", content="Why?"),
    Message(role="assistant", content="So."),
    Message(role="user", content="Then {content}"),
)
EVALUATORS = StudyEvaluators(
    numeric="numeric-v1", code="code-v1", terminal="terminal-r05", similarity="levenshtein-max", judges=()
)


@pytest.fixture
def study(protocol, tokenizer):
    """`study(*edits, messages=...)`: a plain condition and one with the edits, over the tiny tokenizer."""
    registered = read_protocol(places().protocols / "nano-completion" / "protocol.toml")
    shared = {name: getattr(registered, name) for name in StudyProtocol.__struct_fields__ if hasattr(registered, name)}
    texts = {one.name: one.token for one in protocol.boundaries}
    boundaries = tuple(Boundary(name=name, token=text, id=tokenizer.encode(text)[0]) for name, text in texts.items())
    domain = next(one for one in protocol.domains if one.name == "math")

    def make(*edits, messages=HISTORY):
        conditions = (
            StudyCondition(id="plain", messages=messages, edits=()),
            StudyCondition(id="edited", messages=messages, edits=edits),
        )
        own = {"boundaries": boundaries, "conditions": conditions, "edges": (), "domains": (domain,)}
        own |= {"evaluators": EVALUATORS, "prompt": PromptRules(template="tokenizer_config", padding_side="left")}
        return StudyProtocol(**(shared | own))

    return make


def edit(at, official=(), put=()):
    """One edit by names."""
    return PlacedEdit(at=at, official=official, put=put)


@pytest.fixture
def cells(study, tokenizer, source):
    """`cells(*edits)`: the plain and the edited cell of the source."""
    return lambda *edits, **more: build_batch(study(*edits, **more), tokenizer, source).cells


def test_without_an_edit_it_is_the_rendered_prompt(cells, tokenizer, source):
    """The whole source stands in it; a cell without edits says that it has none."""
    plain, _ = cells(edit(PromptStart(), ("bos",), ("x",)))
    assert source.text in tokenizer.decode(plain.ids)
    assert (plain.edits, plain.edited.edits, plain.edited.round_trip) == ((), (), True)
    assert plain.boundary_position == plain.length == len(plain.ids)


SYSTEM = (Message(role="system", content="Be brief."), *HISTORY)


@pytest.mark.parametrize("writes", ["[Q]", "drops", "strips", "repeats", "first"])
def test_every_message_stands_in_the_prompt(study, tokenizer, source, writes):
    """A system text that a template leaves out makes no condition of its own."""
    bodies = {
        "[Q]": "{{ message['content'] + '\n' }}",
        "drops": "{% if message['role'] != 'system' %}{{ message['content'] + '\n' }}{% endif %}",
        "strips": "{{ message['content'].strip('.') + '\n' }}",
        "repeats": "{{ message['content'] + '\n' }}{% if loop.first %}{{ message['content'] }}{% endif %}",
        "first": "{% if loop.last or message['role'] == 'system' %}{{ message['content'] + '\n' }}{% endif %}",
    }
    template = f"{{% for message in messages %}}{bodies[writes]}{{% endfor %}}"
    other, wanted = replace(tokenizer, chat_template=template), study(edit(PromptStart(), (), ("x",)), messages=SYSTEM)
    if writes == "[Q]":
        assert len(build_batch(wanted, other, source).cells) == 2
        return
    with pytest.raises(PromptError, match=r"message \d: expected the \w+ message once in the prompt, verbatim"):
        build_batch(wanted, other, source)


def test_two_conditions_of_one_prompt_are_refused(study, tokenizer, source):
    """An edit that gives another condition's IDs compares a prompt with itself."""
    end = edit(PromptStart(), ("bos",), ("bos", "x"))
    made = study(end)
    twin = StudyCondition(id="twin", messages=HISTORY, edits=(edit(PromptStart(), ("bos",), ("bos", "x")),))
    made = msgspec.structs.replace(made, conditions=(*made.conditions, twin))
    with pytest.raises(PromptError, match="expected a prompt that no other condition has, found that of twin"):
        build_batch(made, tokenizer, source)


def test_a_special_token_that_message_and_source_make_together_is_refused(study, tokenizer, source):
    """Neither half holds it, and the prompt would."""
    halves = (Message(role="user", content="<|{content}"),)
    made = study(edit(PromptStart(), (), ("x",)), messages=halves)
    bare = tuple(msgspec.structs.replace(one, content="{text}") for one in made.domains)
    joined = msgspec.structs.replace(source, text="bos|> and on")
    with pytest.raises(PromptError, match="message 0: expected no special token's text"):
        build_batch(msgspec.structs.replace(made, domains=bare), tokenizer, joined)


@pytest.mark.parametrize("put", ["bos", "x", "period"])
def test_one_id_is_replaced_at_the_end_of_the_history(cells, tokenizer, put):
    """Every other ID is the rendered prompt's; position, official and put IDs are recorded, also ID by ID."""
    plain, edited = cells(edit(HistoryEnd(), ("eos",), (put,)))
    at = plain.ids.index(257)
    new = tokenizer.encode({"bos": "<|bos|>", "x": "x", "period": "."}[put])[0]
    assert edited.ids == (*plain.ids[:at], new, *plain.ids[at + 1 :])
    assert edited.edited.edits == (SpanEdit(position=at, official=(257,), put=(new,)),)
    assert [(one.position, one.official, one.replaced) for one in edited.edits] == [(at, 257, new)]
    assert edited.sha256 == ids_sha256(edited.ids)


@pytest.mark.parametrize(
    ("place", "before"),
    [
        (PromptStart(), ""),
        (MessageEnd(message=0), "<|bos|>User: Why?"),
        (MessageEnd(message=1), "<|bos|>User: Why?\n\nAssistant: So."),
        (HistoryEnd(), "<|bos|>User: Why?\n\nAssistant: So."),
        (BeforeGeneration(), None),
    ],
)
def test_a_place_stands_where_it_says(cells, tokenizer, source, place, before):
    """What is inserted there has exactly that text before it; unequal lengths have no ID-by-ID record."""
    plain, edited = cells(edit(place, (), ("x", "x")))
    if before is None:
        before = tokenizer.decode(plain.ids).removesuffix("Assistant:")
    at = edited.edited.edits[0].position
    assert tokenizer.decode(plain.ids[:at]) == before
    assert edited.ids == (*plain.ids[:at], *tokenizer.encode("xx"), *plain.ids[at:])
    assert edited.edits == ()


def test_tokens_are_removed_and_spans_replaced(cells):
    """Several edits in one prompt, in any order, each at its own place."""
    plain, edited = cells(edit(HistoryEnd(), ("eos",), ()), edit(PromptStart(), ("bos",), ("x", "period")))
    at = plain.ids.index(257)
    assert [one.position for one in edited.edited.edits] == [0, at]
    assert edited.ids == (*edited.ids[:2], *plain.ids[1:at], *plain.ids[at + 1 :])
    assert apply_spans(plain.ids, edited.edited.edits) == edited.ids


def test_padding_absorbs_unequal_lengths(study, tokenizer, source):
    """The batch is as wide as its longest row."""
    batch = build_batch(study(edit(PromptStart(), (), ("x", "x", "x"))), tokenizer, source)
    assert batch.padding == (3, 0)


@pytest.mark.parametrize(
    ("edits", "words"),
    [
        ((edit(MessageEnd(message=0), ("eos",), ("x",)),), r"edited: IDs from position \d+: expected \[257\] \(eos\)"),
        ((edit(HistoryEnd(), ("eos", "eos"), ("x",)),), r"expected \[257, 257\]"),
        ((edit(HistoryEnd(), ("eos",), ("x",)), edit(HistoryEnd(), (), ("x",))), "edits: expected places apart"),
        ((edit(HistoryEnd(), ("eos",), ("x",)), edit(MessageEnd(message=1), ("eos",), ("bos",))), "places apart"),
    ],
)
def test_an_edit_that_is_not_there_is_refused(cells, edits, words):
    """Expected and found IDs, with the source and the condition."""
    with pytest.raises(PromptError, match=words):
        cells(*edits)


@pytest.mark.parametrize("content", ["a <|eos|> b", "<|bos|>"])
def test_a_special_token_in_a_message_is_refused(cells, content):
    """It would become the token."""
    with pytest.raises(PromptError, match=r"conditions\.plain\.messages\[0\]: expected no special token's text"):
        cells(messages=(Message(role="user", content=content), *HISTORY[1:]))


END = "{% endfor %}{{ 'A:' if add_generation_prompt }}"
SWALLOWS = "{{ bos_token }}{% for m in messages if m.role == 'user' %}{{ m.content }}" + END
TWICE = "{{ bos_token }}{% for m in messages %}{{ m.content }}{{ m.content }}" + END
STRIPS = "{{ bos_token }}{% for m in messages %}{{ m.content | trim }};{% endfor %}{{ 'A:' if add_generation_prompt }}"
SILENT = "{{ bos_token }}{% for m in messages %}{{ m.content }};{% endfor %}"
OTHER = "{% for m in messages %}{{ m.content }};{% endfor %}{{ 'A:' if add_generation_prompt else 'B:' }}"
CLOCK = "{{ strftime_now('%Y') }}{% for m in messages %}{{ m.content }};{% endfor %}"
REFUSES = "{{ raise_exception('not so') }}"
MESSAGES = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b "}, {"role": "user", "content": "c"}]


@pytest.fixture
def with_template(tokenizer):
    """The tiny tokenizer under another template."""
    return lambda template: replace(tokenizer, chat_template=template)


@pytest.mark.parametrize(
    ("template", "place", "words"),
    [
        (SWALLOWS, MessageEnd(message=1), "end of message 1: expected one place, found no place"),
        (TWICE, MessageEnd(message=1), "end of message 1: expected one place, found several places"),
        (STRIPS, MessageEnd(message=1), "found a template that alters the message around it"),
        (SILENT, BeforeGeneration(), "a template that adds one after the messages, found none"),
        (OTHER, BeforeGeneration(), "found a template that alters the messages with it"),
    ],
)
def test_a_place_that_a_template_does_not_have(with_template, template, place, words):
    """None, several, an altered message, no generation prompt."""
    words_of = with_template(template)
    text = render_messages(words_of, MESSAGES)
    with pytest.raises(PromptError, match=words):
        character_of(words_of, MESSAGES, text, place=place, where="a")


@pytest.mark.parametrize(("template", "words"), [(CLOCK, "today's date"), (REFUSES, "not so")])
def test_a_template_that_will_not_render(with_template, template, words):
    """The date changes a prompt overnight; a template's own refusal is said in its words."""
    with pytest.raises(ModelError, match=words):
        render_messages(with_template(template), MESSAGES)


def test_a_source_that_the_template_strips_is_refused(study, with_template, source):
    """The source stands in the prompt verbatim or not at all."""
    protocol = study(edit(PromptStart(), ("bos",), ("x",)))
    bare = msgspec.structs.replace(protocol.domains[0], content="{text}")
    with pytest.raises(PromptError, match="source text: expected the source once in the prompt, verbatim"):
        build_batch(msgspec.structs.replace(protocol, domains=(bare,)), with_template(STRIPS), source)


@pytest.fixture(scope="module")
def joining(tokenizer):
    """A tokenizer with one merge: `ab` is a token."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: at for at, letter in enumerate([*alphabet, "ab"])}
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=[("a", "b")]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    return replace(tokenizer, backend=backend)


def test_a_place_inside_a_token_is_refused(joining):
    """The text before it, tokenised alone, isn't what the prompt begins with."""
    ids = joining.encode("cab")
    assert token_of(joining, "cab", ids, character=1, where="a") == 1
    with pytest.raises(PromptError, match=r"expected a token that ends at character 2, 'ca', found one that reaches"):
        token_of(joining, "cab", ids, character=2, where="a")


def test_a_token_without_text_makes_a_place_ambiguous(joining):
    """Two numbers of IDs have the same text before them."""

    class Silent:
        """Decodes one ID to nothing."""

        def __init__(self, backend):
            self.encode = backend.encode
            self._decode = backend.decode

        def decode(self, ids, **more):
            return self._decode([one for one in ids if one != 999], **more)

    silent = replace(joining, backend=Silent(joining.backend))
    with pytest.raises(PromptError, match="a token without text stands there"):
        token_of(silent, "ca", (*joining.encode("c"), 999, *joining.encode("a")), character=1, where="a")


def test_an_edit_that_no_text_would_give_is_said(study, joining, source):
    """A put `b` after an `a` would be one token: the IDs stay as registered, and the record says so."""
    plain = msgspec.structs.replace(source, text="z", text_sha256=source.text_sha256)
    messages = (Message(role="user", content="{content}"), Message(role="assistant", content="a"), HISTORY[0])
    b = Boundary(name="b", token="b", id=joining.encode("b")[0])
    e = Boundary(name="eos", token="e", id=joining.encode("e")[0])
    protocol = study(edit(HistoryEnd(), (), ("b",)), messages=messages)
    protocol = msgspec.structs.replace(protocol, boundaries=(e, b))
    template = "{% for m in messages %}{{ m.content }};{% endfor %}{{ 'A:' if add_generation_prompt }}"
    texts = replace(joining.special_texts, bos="", eos="e", pad="e")
    batch = build_batch(protocol, replace(joining, chat_template=template, special_texts=texts, added_texts=()), plain)
    official, edited = batch.cells
    assert (official.edited.round_trip, edited.edited.round_trip) == (True, False)
    at = edited.edited.edits[0].position
    assert edited.ids[at - 1 : at + 1] == (*joining.encode("a"), b.id)
