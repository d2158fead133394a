"""How a token is chosen on two sides, one thing at a time: what is drawn by, and what is drawn from."""

from collections.abc import Iterator

import msgspec

from harness.rerun.trial import ByArgmax, BySeed, ByTape

Rule = ByArgmax | ByTape | BySeed
DRAWS, SAMPLER = "draws", "sampler"


def rule_changes(own: Rule, other: Rule) -> Iterator[tuple[str, str, str, Rule]]:
    """(field, before, after, rule) of each single change: another u or seed, other parameters, or all of a rule."""
    if own == other:
        return
    drawn: Rule
    drawn_from: Rule
    if isinstance(own, ByTape) and isinstance(other, ByTape):
        drawn, drawn_from = msgspec.structs.replace(own, u=other.u), msgspec.structs.replace(other, u=own.u)
    elif isinstance(own, BySeed) and isinstance(other, BySeed):
        drawn, drawn_from = msgspec.structs.replace(own, seed=other.seed), msgspec.structs.replace(other, seed=own.seed)
    else:
        yield SAMPLER, rule_words(own), rule_words(other), other
        return
    if drawn != own:
        yield DRAWS, draw_words(own), draw_words(other), drawn
    if drawn_from != own:
        yield SAMPLER, sampler_words(own), sampler_words(other), drawn_from


def rule_words(rule: Rule) -> str:
    """All of it."""
    return "argmax" if isinstance(rule, ByArgmax) else f"{draw_words(rule)}, {sampler_words(rule)}"


def draw_words(rule: Rule) -> str:
    """The number that is drawn by."""
    if isinstance(rule, ByArgmax):
        return "argmax"
    return f"u {rule.u}" if isinstance(rule, ByTape) else f"seed {rule.seed}"


def sampler_words(rule: Rule) -> str:
    """What is drawn from."""
    if isinstance(rule, ByArgmax):
        return "argmax"
    if isinstance(rule, BySeed):
        return f"temperature {rule.temperature}, top_p {rule.top_p}, top_k {rule.top_k}"
    one = rule.sampler
    return (
        f"{one.rule} on {one.device}, temperature {one.temperature}, top_p {one.top_p}, keeps {one.min_tokens_to_keep}"
    )
