"""claims.toml: every protocol has one, it agrees with its protocol, and what can't hold or can't fail doesn't load."""

import re
import tomllib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.canon import sha256_hex
from harness.claims.load import NAME, check_claims, load_claims
from harness.claims.patterns import check_pattern, found
from harness.errors import ProtocolError
from harness.protocols.folders import protocol_ids
from harness.protocols.load import load_protocol
from harness.records.claims import AtLeast, FigureRule, Pattern, ProhibitedRule, Reported, Whole

RULES = load_claims(load_protocol("nano-completion")).rules.prohibited
PAIRS = ("behavior", "completion", "depth", "single-source-sampling", "cross-source-sampling", "task-crn")


@pytest.mark.parametrize("name", protocol_ids())
def test_every_protocol_has_its_claims(name):
    """One entry for each conclusion; the digest is that of the file's bytes."""
    loaded = load_protocol(name)
    registration = load_claims(loaded)
    assert [one.id for one in registration.rules.permitted] == [one.id for one in loaded.protocol.permitted]
    assert [one.id for one in registration.rules.prohibited] == [one.id for one in loaded.protocol.prohibited]
    assert registration.sha256 == sha256_hex((loaded.folder / NAME).read_bytes())


@pytest.mark.parametrize("family", PAIRS)
def test_the_same_design_claims_the_same(family):
    """A DeepSeek protocol's file is its nano counterpart's under another name."""
    nano, deepseek = (
        (load_protocol(f"{kind}-{family}").folder / NAME).read_text(encoding="utf-8") for kind in ("nano", "deepseek")
    )
    assert nano.replace(f"nano-{family}", f"deepseek-{family}") == deepseek


@pytest.mark.parametrize("name", protocol_ids())
def test_a_protocol_is_not_touched_by_its_claims(name):
    """The digest names protocol, manifest and profile; claims.toml is apart from it."""
    loaded = load_protocol(name)
    assert NAME not in (loaded.folder / "FILES.sha256").read_text()


def changed(rules, which, at, **changes):
    """The rules with one entry of `permitted` or `prohibited` changed."""
    entries = list(getattr(rules, which))
    entries[at] = msgspec.structs.replace(entries[at], **changes)
    return msgspec.structs.replace(rules, **{which: tuple(entries)})


def figure(rules, at, number, **changes):
    """The rules with one figure changed."""
    figures = list(rules.permitted[at].figures)
    figures[number] = msgspec.structs.replace(figures[number], **changes)
    return changed(rules, "permitted", at, figures=tuple(figures))


EXTRA = FigureRule(name="more", source="statistics.natural_eos", threshold=Reported())
DAMAGE = {
    "a band of its own": (lambda r: msgspec.structs.replace(r, bands=("confidence interval",)), "bands: expected"),
    "other protocol": (lambda r: msgspec.structs.replace(r, protocol="nano-depth"), "protocol: expected"),
    "permitted left out": (lambda r: msgspec.structs.replace(r, permitted=r.permitted[1:]), "permitted: expected"),
    "prohibited left out": (lambda r: msgspec.structs.replace(r, prohibited=r.prohibited[1:]), "prohibited: expected"),
    "prohibited twice": (lambda r: msgspec.structs.replace(r, prohibited=(*r.prohibited, r.prohibited[0])), "prohib"),
    "unknown gate": (lambda r: changed(r, "permitted", 0, gates=("nothing",)), "gates of tier formal"),
    "no gate": (lambda r: changed(r, "permitted", 0, gates=()), "a gate that can fail"),
    "gate of another tier": (lambda r: changed(r, "permitted", 2, tier="smoke"), "gates of tier smoke"),
    "unknown source": (lambda r: figure(r, 0, 0, source="statistics.nothing"), "sources"),
    "source of another kind": (lambda r: figure(r, 0, 0, source="statistics.embedding_exact_rows"), "sources"),
    "unused figure": (lambda r: changed(r, "permitted", 0, figures=(*r.permitted[0].figures, EXTRA)), "in the templ"),
    "unknown word": (lambda r: changed(r, "permitted", 2, template="{replayed} {judged} {nothing}"), "template"),
    "a number of its own": (lambda r: changed(r, "permitted", 2, template="{replayed} {judged} of 128"), "numbers as"),
    "a Chinese number": (lambda r: changed(r, "permitted", 2, template="{replayed} {judged} 三"), "numbers as"),
    "the name in words": (
        lambda r: changed(r, "permitted", 2, template="Fixed-Budget completion account {replayed} {judged}"),
        "result_name",
    ),
    "a figure twice": (lambda r: changed(r, "permitted", 2, template="{replayed} {replayed} {judged}"), "in the templ"),
    "diagnostic as result": (lambda r: changed(r, "permitted", 3, heading="results"), "heading"),
    "result as diagnostic": (lambda r: changed(r, "permitted", 0, heading="diagnostics"), "heading"),
    "threshold on a diagnostic": (lambda r: figure(r, 3, 0, threshold=Whole()), "no threshold on a diagnostic"),
    "can't fail": (lambda r: figure(r, 2, 0, threshold=AtLeast(n=0)), "at_least from 1 to 32"),
    "can't hold": (lambda r: figure(r, 2, 0, threshold=AtLeast(n=33)), "at_least from 1 to 32"),
    "threshold over what a run decides": (lambda r: figure(r, 1, 0, threshold=AtLeast(n=1)), "registered denominator"),
    "missed sentence": (lambda r: changed(r, "prohibited", 1, must_match=("Nothing.",)), "must_match"),
    "matched sentence": (
        lambda r: changed(r, "prohibited", 1, must_not_match=("EOS makes the answer better.",)),
        "must_not_match",
    ),
    "one language": (lambda r: changed(r, "prohibited", 1, patterns=r.prohibited[1].patterns[:1]), "Chinese and Engl"),
    "untried pattern": (
        lambda r: changed(
            r, "prohibited", 1, patterns=(*r.prohibited[1].patterns, Pattern(language="en", parts=("zebra",)))
        ),
        "for every pattern",
    ),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_registration_does_not_load(damage, loaded, registration):
    """Each way in which a registration could overstate, or check nothing, is refused by name."""
    change, message = DAMAGE[damage]
    with pytest.raises(ProtocolError, match=re.escape(message)):
        check_claims("claims.toml", loaded, change(registration.rules), registration.sources)


def test_an_at_least_threshold_that_can_hold_and_fail_loads(loaded, registration):
    """The control of the refusals above."""
    rules = figure(registration.rules, 2, 0, threshold=AtLeast(n=32))
    check_claims("claims.toml", loaded, rules, registration.sources)


@pytest.mark.parametrize(
    "part", ["a*", "a+", "a{2,}", "(a|b){0,3}", "(a{0,3}){0,3}", r"(a)\1", "(?=a)", "a{0,99}", "", "a?", "(", "a" * 301]
)
def test_an_unbounded_part_is_refused(part):
    """Nothing repeats without a bound, nothing repeats what repeats, nothing matches the empty text."""
    with pytest.raises(ProtocolError):
        check_pattern("here", Pattern(language="en", parts=(part,)))


@pytest.mark.parametrize("name", ["nano-behavior", "nano-completion", "nano-depth", "nano-cross-source-sampling"])
def test_no_sentence_holds_a_pattern_up(name):
    """Every pattern against its own words many times over, and against what almost matches: it comes back, with none.

    A part that tracked back would not come back at all.
    """
    rules = load_claims(load_protocol(name)).rules.prohibited
    words = sorted({word for rule in rules for one in rule.must_match for word in one.split()})
    texts = [" ".join(words) * 200, "a" * 100_000, " is" * 30_000, "128 of " * 20_000, "0." * 50_000]
    for rule in rules:
        for pattern in rule.patterns:  # the last part never comes: every part is searched to the end
            never = Pattern(language=pattern.language, parts=(*pattern.parts, "never-there"))
            one = ProhibitedRule(id=rule.id, patterns=(never,), must_match=(), must_not_match=())
            assert [found(one, text) for text in texts] == [None] * len(texts)


@given(st.text(max_size=300))
def test_a_match_is_a_place_in_the_sentence(text):
    """Whatever the sentence, a match is [start, end) within it."""
    for rule in RULES:
        span = found(rule, text)
        assert span is None or 0 <= span[0] < span[1] <= len(text)


def test_the_file_is_plain_toml():
    """No field is unknown to the record and none is left out: msgspec refuses both."""
    plain = tomllib.loads((load_protocol("nano-behavior").folder / NAME).read_text(encoding="utf-8"))
    assert set(plain) == {"schema", "protocol", "bands", "permitted", "prohibited"}
