"""Somebody's write-up against a run: figures that it doesn't support, and prohibited conclusions that are stated.

Reads words, and so can be fooled by whoever tries; what it finds is named with its line, what was expected and what was
found. A figure is looked for among those of its own matter: a replay's, a domain's, a condition's.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from harness.claims.facets import Facets, facets_in
from harness.claims.judge import result_name
from harness.claims.load import Registration
from harness.claims.negation import is_listed, is_negated, is_unwritten
from harness.claims.patterns import matches
from harness.claims.quoted import Quoted, quoted
from harness.claims.supported import Supported, holds, nearest, supported
from harness.claims.text import Sentence, sentences
from harness.claims.view import RunView
from harness.records.claims import Claims

_CLAUSE = re.compile(r"(?<!\d)[,，]|[,，](?!\d{3}(?!\d))|[;；:：()]|—|\bwhile\b|\bwhereas\b|\bbut\b|而")
_ALL = re.compile(
    r"\b(?:all|every|each)\b(?: of)?(?: the| these| our)? "
    r"(?!re-?(?:play|produc|r[ua]n))(?:[a-z]{2,12} )?(?:cells?|outputs?)\b"
    r"|(?:全部|所有|每个|每一个?)的?\s?(?:格|输出)",
    re.IGNORECASE,
)
_DIAGNOSTICS = re.compile(r"diagnos|诊断", re.IGNORECASE)
_INTERVAL = re.compile(
    r"confidence (interval|band)|credible interval|\bCI\b|\bp.values?\b|resampling band|bootstrap (band|interval)"
    r"|standard error|error bars?|置信区间|可信区间|重采样带|标准误",
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that the run doesn't support, at a line of the write-up."""

    line: int
    what: str
    expected: str
    found: str


def check_text(document: str, view: RunView, claims: Claims, registration: Registration) -> tuple[Finding, ...]:
    """Everything in the write-up that the run doesn't support, by line."""
    known = supported(view, claims)
    found: list[Finding] = []
    for sentence in sentences(document):
        found += _figures(sentence, known, view)
        found += _prohibited(sentence, view, registration)
        found += _bands(sentence, registration)
        found += _names(sentence, view)
    return tuple(sorted(dict.fromkeys(found), key=lambda one: (one.line, one.what)))


def _figures(sentence: Sentence, known: Supported, view: RunView) -> Iterator[Finding]:
    conditions = [one.id for one in view.loaded.protocol.conditions]
    whole = facets_in(f"{sentence.labels} {sentence.text}", conditions)
    for start, clause in _clauses(sentence.text):
        said = _said(sentence, facets_in(f"{sentence.labels} {clause}", conditions), whole, conditions)
        figures = list(quoted(clause))
        yield from _unnumbered(sentence, start, clause, said, known) if not figures else ()
        for one in figures:
            line = sentence.line(start + one.start)
            if is_unwritten(clause, one.start):
                continue
            if not holds(known, one, said, alone=len(figures) == 1):
                yield Finding(line, "figure", nearest(known, said), one.words)
            elif _needs_diagnostics(known, one, said) and not any(map(_DIAGNOSTICS.search, sentence.headings)):
                expected = "a completion-conditioned figure under a heading Diagnostics only"
                yield Finding(line, "diagnostic", expected, one.words)


def _unnumbered(sentence: Sentence, start: int, clause: str, said: Facets, known: Supported) -> Iterator[Finding]:
    """All cells were replayed, it says without a number: the run's cells are more than those that were made again."""
    match = _ALL.search(clause)
    if (
        match is None
        or "replay" not in said.apart
        or is_negated(sentence, (start + match.start(), start + match.end()))
    ):
        return
    yield Finding(sentence.line(start + match.start()), "figure", nearest(known, said), match[0])


def _clauses(text: str) -> Iterator[tuple[int, str]]:
    at = 0
    for match in _CLAUSE.finditer(text):
        yield at, text[at : match.start()]
        at = match.end()
    yield at, text[at:]


def _said(sentence: Sentence, clause: Facets, whole: Facets, conditions: list[str]) -> Facets:
    """What a figure's clause is about: its own words; else its sentence's, its lead's, its heading's.

    What was made again stays so over a list or table that such a sentence introduces, or under such a heading alone.
    """
    lead = facets_in(_introduction(sentence.lead), conditions)
    heading = facets_in(sentence.headings[-1] if sentence.headings else "", conditions)
    if sentence.item or sentence.labels:
        clause |= Facets(apart=lead.apart)
    if not clause.apart and not clause.measure:
        clause |= Facets(apart=whole.apart, measure=frozenset() if clause else whole.measure)
    if heading.apart and not heading.measure:
        clause |= Facets(apart=heading.apart)
    return clause


def _introduction(lead: str) -> str:
    """The last sentence of the paragraph above a list, table or block; one that only ends a longer text isn't it."""
    parts = [part for part in re.split(r"(?<=[.。!?;；])\s{0,3}", lead) if part.strip()]
    return parts[-1] if parts and (len(parts) == 1 or lead.endswith(":")) else ""


def _needs_diagnostics(known: Supported, one: Quoted, said: Facets) -> bool:
    """Whether the figure is said to be conditioned on completion, or is one of this run only as such."""
    if "conditioned" in said.apart:
        return True
    if one.form != "fraction":
        return False
    facts = [fact for fact in known.about(said) if fact.is_(one.values)]
    return bool(facts) and all("conditioned" in fact.facets.apart for fact in facts)


def _prohibited(sentence: Sentence, view: RunView, registration: Registration) -> Iterator[Finding]:
    texts = {one.id: one.text for one in view.loaded.protocol.prohibited}
    for rule in registration.rules.prohibited:
        stands = (span for span in matches(rule, sentence.text) if not is_negated(sentence, span))
        span = next((one for one in stands if not is_listed(sentence, one)), None)
        if span is not None:
            stated = " ".join(sentence.text[slice(*span)].split())
            expected = f"nowhere, but as a limit: {texts[rule.id]}"
            yield Finding(sentence.line(span[0]), f"prohibited {rule.id}", expected, stated)


def _bands(sentence: Sentence, registration: Registration) -> Iterator[Finding]:
    """An interval may be printed under its registered name only; a protocol without one has none."""
    names = registration.rules.bands
    match = _INTERVAL.search(sentence.text)
    if match is None or any(name.lower() in sentence.text.lower() for name in names):
        return
    if not is_negated(sentence, match.span()) and not is_listed(sentence, match.span()):
        yield Finding(
            sentence.line(match.start()), "band", f"a registered name: {', '.join(names) or 'none'}", match[0]
        )


def _names(sentence: Sentence, view: RunView) -> Iterator[Finding]:
    """A port's result has its name with "(port)", and on random weights with theirs, and no other."""
    if not view.spec.port:
        return
    name = view.loaded.protocol.result_name
    after = r"\s{1,2}".join(re.escape(word) for word in result_name(view).removeprefix(name).split())
    for match in re.finditer(re.escape(name), sentence.text, re.IGNORECASE):
        if not re.match(r"\s{0,2}" + after, sentence.text[match.end() :], re.IGNORECASE):
            yield Finding(sentence.line(match.start()), "name", result_name(view), match[0])
