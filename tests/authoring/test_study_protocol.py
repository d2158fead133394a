"""What a study's protocol.toml may not say: one field changed at a time, and it doesn't load."""

import re

import msgspec
import pytest

from harness.errors import ProtocolError
from harness.protocols.check import check_protocol
from harness.protocols.grids import number_field
from harness.protocols.load import read_protocol
from harness.records.kinds import journal_type, run_type
from harness.records.study import (
    ExactJudge,
    FunctionJudge,
    Message,
    MessageEnd,
    NumberJudge,
    PatternJudge,
    PlacedEdit,
    ProgramJudge,
    PromptStart,
)

replace = msgspec.structs.replace


@pytest.fixture(scope="module")
def protocol(frozen):
    """A study of the tiny Llama, as it was written."""
    return read_protocol(frozen("llama") / "protocol.toml")


def condition(protocol, at, **fields):
    """The study with one condition changed."""
    conditions = list(protocol.conditions)
    conditions[at] = replace(conditions[at], **fields)
    return replace(protocol, conditions=tuple(conditions))


def edited(protocol, edit):
    """The study with another edit in its second condition."""
    return condition(protocol, 1, edits=(edit,))


def judged(protocol, *judges, **gold):
    """The study with other judges, and other gold fields of its domains."""
    domains = tuple(replace(one, gold=gold.get(one.name, one.gold)) for one in protocol.domains)
    return replace(protocol, domains=domains, evaluators=replace(protocol.evaluators, judges=judges))


def messages(*pairs):
    """Messages from roles and contents."""
    return tuple(Message(role=role, content=content) for role, content in pairs)


def function(**fields):
    """A judge that is one, but for the fields."""
    own = {"domain": "t", "module": "a.b", "function": "f", "source_sha256": "0" * 64, "timeout_ms": 1}
    return FunctionJudge(**(own | fields))


START = PromptStart()
WRONG = {
    "sources by a word of its own": (
        lambda p: replace(p, selection=replace(p.selection, salt="grinding-17")),
        "selection.salt: expected llama-study-source-selection-v1, found grinding-17",
    ),
    "no eos": (lambda p: replace(p, boundaries=p.boundaries[1:]), "boundaries: expected one of ['x'], found eos"),
    "content twice": (
        lambda p: condition(p, 0, messages=messages(("user", "{content} {content}"))),
        "conditions.plain.messages: expected {content} once, found 2 times",
    ),
    "no content": (lambda p: condition(p, 0, messages=messages(("user", "a"))), "found 0 times"),
    "an answer last": (
        lambda p: condition(p, 0, messages=messages(("user", "{content}"), ("assistant", "a"))),
        "expected a user's message last, found one of the assistant",
    ),
    "an empty message": (
        lambda p: condition(p, 0, messages=messages(("system", ""), ("user", "{content}"))),
        "expected no empty content, found [0]",
    ),
    "the same prompt twice": (lambda p: condition(p, 1, edits=()), "conditions: expected each prompt once"),
    "a token that isn't there": (
        lambda p: edited(p, PlacedEdit(at=START, official=(), put=("y",))),
        "conditions.plain_x.edits[0]: expected one of ['eos', 'x'], found y",
    ),
    "an edit of nothing": (
        lambda p: edited(p, PlacedEdit(at=START, official=("x",), put=("x",))),
        "expected an edit that changes the prompt",
    ),
    "a message that isn't there": (
        lambda p: edited(p, PlacedEdit(at=MessageEnd(message=3), official=(), put=("x",))),
        "edits[0].at.message: expected 0..2, found 3",
    ),
    "no history": (
        lambda p: condition(p, 1, messages=messages(("user", "{content}!"))),
        "expected an assistant message in the history",
    ),
    "one name for two": (lambda p: condition(p, 0, id="qa"), "names: expected no name of a domain, condition and edge"),
    "a name for no file": (lambda p: condition(p, 0, id="a b"), "expected letters, digits, dots, dashes"),
    "another replicate": (
        lambda p: replace(p, grids={**p.grids, "smoke": replace(p.grids["smoke"], replicates=("R0",))}),
        "grids.smoke.replicates: expected ('greedy',)",
    ),
    "two judges": (
        lambda p: judged(p, *p.evaluators.judges, PatternJudge(domain="t", pattern="a", field="")),
        "judges: expected one a domain at most",
    ),
    "a judge of nothing": (
        lambda p: judged(p, PatternJudge(domain="u", pattern="a", field="")),
        "judges: expected one of ['qa', 't'], found u",
    ),
    "no such gold": (
        lambda p: judged(p, ExactJudge(domain="qa", field="want", compare="verbatim")),
        "judges of qa.field: expected one of ['label'], found want",
    ),
    "no such gold of a pattern": (lambda p: judged(p, PatternJudge(domain="qa", pattern="a", field="b")), "found b"),
    "no such number": (lambda p: judged(p, NumberJudge(domain="qa", field="b")), "found b"),
    "no pattern": (lambda p: judged(p, PatternJudge(domain="t", pattern="(", field="")), "a regular expression"),
    "an empty pattern": (lambda p: judged(p, PatternJudge(domain="t", pattern="", field="")), "a regular expression"),
    "a pattern that looks ahead": (
        lambda p: judged(p, PatternJudge(domain="t", pattern="a(?=b)", field="want")),
        "judges of t.pattern: expected a regular expression of RE2, found a(?=b) (invalid perl operator: (?=)",
    ),
    "no tests": (lambda p: judged(p, ProgramJudge(domain="t")), "found ['t'] for []"),
    "tests and no judge": (lambda p: judged(p, t=("entry_point", "test")), "found [] for ['t']"),
    "a way out": (lambda p: judged(p, function(module="..b")), "expected names of Python"),
    "a keyword": (lambda p: judged(p, function(function="class")), "expected names of Python"),
    "no digest": (lambda p: judged(p, function(source_sha256="0")), "expected 64 hex digits, found 0"),
    "no time": (lambda p: judged(p, function(timeout_ms=0)), "expected a time above 0"),
    "a pattern that anything matches": (
        lambda p: judged(p, PatternJudge(domain="t", pattern="x*", field="")),
        "judges of t.pattern: expected one that some text doesn't match, found x*",
    ),
    "two counts of one name": (
        lambda p: condition(replace(p, domains=(*p.domains, replace(p.domains[0], name="qa.a"))), 0, id="a"),
        "names: expected no name of a domain, condition and edge twice, found ['qa.a']",
    ),
    "an ID for a revision's results": (lambda p: replace(p, id="a@0001"), "id: expected letters, digits, dots"),
    "a grid of nothing": (
        lambda p: replace(p, grids={**p.grids, "independent": replace(p.grids["independent"], per_domain=0)}),
        "grids.independent.per_domain: expected from 1 to 2, the formal grid's, found 0",
    ),
    "rows of a batch": (lambda p: replace(p, decode=replace(p.decode, rows_per_batch=2)), "rows_per_batch"),
    "another placement grid": (
        lambda p: replace(p, placement_equivalence=replace(p.placement_equivalence, grid="formal")),
        "expected smoke, the smoke grid",
    ),
    "another replay budget": (
        lambda p: replace(p, grids={**p.grids, "independent": replace(p.grids["independent"], max_new_tokens=8)}),
        "expected 9, the formal grid's",
    ),
    "a replay of another grid": (
        lambda p: replace(p, independent_replay=replace(p.independent_replay, grid="smoke")),
        "tier_grids.replay: expected smoke, independent_replay's, found independent",
    ),
    "a longer smoke": (
        lambda p: replace(p, grids={**p.grids, "smoke": replace(p.grids["smoke"], max_new_tokens=10)}),
        "grids.smoke.max_new_tokens: expected from 1 to 9, the formal grid's, found 10",
    ),
    "no formal grid": (
        lambda p: replace(p, tier_grids=p.tier_grids | {"formal": "nope"}),
        "tier_grids.formal: expected one of",
    ),
    "tokens not compared": (
        lambda p: replace(p, independent_replay=replace(p.independent_replay, fields=("prompt_sha256", "eos"))),
        "independent_replay.fields: expected prompt_sha256, generated_ids",
    ),
    "a field that no cell has": (
        lambda p: replace(p, placement_equivalence=replace(p.placement_equivalence, fields=("mood",))),
        "placement_equivalence.fields: expected of prompt_sha256",
    ),
    "a seed below 0": (
        lambda p: replace(p, decode=replace(p.decode, generator_seed=-7)),
        "decode.generator_seed: expected from 0 to 2**32 - 1, found -7",
    ),
}


def test_what_init_wrote_holds(protocol):
    """The one that the others are made from."""
    check_protocol(protocol)
    assert (journal_type(protocol).__name__, run_type(protocol).__name__) == ("StudyJournal", "StudyRun")


@pytest.mark.parametrize("name", WRONG)
def test_one_field_is_wrong(protocol, name):
    """Place, expected and found."""
    change, words = WRONG[name]
    with pytest.raises(ProtocolError, match=re.escape(words)):
        check_protocol(change(protocol))


@pytest.mark.parametrize("compare", ["verbatim", "stripped", "stripped_casefold"])
def test_every_judge_may_stand(protocol, compare):
    """One of each kind, where its domain has what it needs."""
    exact = ExactJudge(domain="qa", field="label", compare=compare)
    check_protocol(judged(protocol, exact, function()))
    check_protocol(judged(protocol, ProgramJudge(domain="t"), t=("entry_point", "test")))
    check_protocol(judged(protocol, PatternJudge(domain="t", pattern="a", field="want")))


def test_a_number_is_judged_where_a_judge_says_so(protocol):
    """By its field, whatever that is called; `answer` alone makes no number of a study's domain."""
    named = judged(protocol, NumberJudge(domain="t", field="want"))
    fields = {domain.name: number_field(named, domain) for domain in named.domains}
    assert fields == {"qa": None, "t": "want"}
    bare = judged(protocol, qa=("answer",))
    assert [number_field(bare, domain) for domain in bare.domains] == [None, None]
