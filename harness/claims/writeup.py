"""Somebody's write-up against a run: figures that it doesn't support, and prohibited conclusions that are stated.

Reads words, and so can be fooled by whoever tries; what it finds is named with its line, what was expected and what was
found. A figure is looked for among those of its own matter: a replay's, a domain's, a condition's.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from harness.claims.attempted import Tried, overstated, tried
from harness.claims.facets import Facets, OwnNames, facets_in, own_names
from harness.claims.judge import result_name
from harness.claims.load import Registration
from harness.claims.negation import is_listed, is_negated, is_unwritten
from harness.claims.patterns import matches
from harness.claims.quoted import Quoted, quoted
from harness.claims.shares import Share, shares
from harness.claims.supported import AGAIN, OF_ALL, Fact, Supported, holds, nearest, sized, supported
from harness.claims.text import Sentence, sentences
from harness.claims.view import RunView
from harness.records.claims import Claims

_CLAUSE = re.compile(r"(?<!\d)[,，]|[,，](?!\d{3}(?!\d))|[;；:：()]|—|\bwhile\b|\bwhereas\b|\bbut\b|而")
_NOUNS = r"(?:cells?|outputs?|programs?|answers?|problems?|tasks?|questions?|sequences?|generations?)"
_ALL = re.compile(
    r"\b(?:all|every|each)\b(?: of)?(?: the| these| our)? "
    rf"(?!re-?(?:play|produc|r[ua]n))(?:[a-z]{{2,12}} )?(?:{_NOUNS}|results?)\b"
    r"|\bthe (?:whole|entire|full|complete) (?:experiment|run|grid|study|set|matrix)\b"
    r"|\beverything\b|(?:全部|所有|每个|每一个?|每道?)的?\s?(?:格|输出|程序|答案|回答|题目|题|序列|结果)|整个(?:实验|网格|运行)",
    re.IGNORECASE,
)
# Of which a clause says what they are and not what came of them: "all cells that were cut".
_THOSE = re.compile(r"\s?(?:that|which|whose|where|with|without|cut|truncated|的)", re.IGNORECASE)
# A number of what there is, before what came of it; or a limit that was set.
_WHOLE = re.compile(
    r"\s{0,3}(?:(?:out )?of|among|from|over|across)\b|\s{0,3}在.{0,20}(?:中|里|内)\s{0,3}$", re.IGNORECASE
)
_LIMIT = re.compile(
    r"(?:budget|limit|maximum) of $|\b(?:within|at most|up to|after) (?:the )?$|(?:预算|上限)(?:为|是|的)?\s?$",
    re.IGNORECASE,
)
_NOT = re.compile(r"(?:\bnot|\brather than|不是|并非|而非)\s{0,2}$", re.IGNORECASE)
_COLON = re.compile(r"([^,，;；:：()]{1,40})[:：]$")
_NUMBER = re.compile(r"\s{0,9}(\d{1,3}(?:,\d{3}){1,3}|\d{1,9})\s{0,3}[.。]?\s{0,3}")
# What a number says that counts nothing: which one, how long, how many in all.
_PLACE = re.compile(
    r"\bID\b|index|step|position|layer|seed|version|length|mean|median|tokens?\b|\bof\b|total|table|figure|section|budget|limit"
    r"|编号|步|位置|层|种子|版本|长度|均值|中位|词元|总数|共|表|图|节|预算|上限",
    re.IGNORECASE,
)
OUTCOMES = {"natural_eos", "truncated", "strict", "terminal", "evaluable", "passed", "exact", "parses"}
_DIAGNOSTICS = re.compile(r"diagnos|诊断", re.IGNORECASE)
# Cells that were made, and nothing said of what came of them.
_MADE = re.compile(
    r"\b(?:generated|returned|produced|ran|registered|collected|recorded|made)\b|生成|返回|产生|登记|记录",
    re.IGNORECASE,
)
_SAME = re.compile(r"same|equal|identical|exact|match|agree|unchanged|一致|相同|一样|逐位|不变", re.IGNORECASE)
_BASELINE = re.compile(r"baseline|newly|基线|新增", re.IGNORECASE)
_INTERVAL = re.compile(
    r"confidence (interval|band)|credible interval|\bCI\b|\bp.values?\b|resampling band|bootstrap (band|interval)"
    r"|standard error|error bars?|置信区间|可信区间|重采样带|标准误",
)


# A clause that says where, before the clause that says what: "Under plain, 3/4 cells ended".
_OPENING = re.compile(r"\s{0,3}(?:(?:under|in|for|on|with|within|along|at|of)\b|在|对|于|按)", re.IGNORECASE)
# That something is the registered run, and not what a port deviates from.
_REGISTERED = re.compile(
    r"\b(?:is|are|was|were|as) (?:the|a|our|this) registered (?:run|result|study|experiment|protocol)\b"
    r"|(?:是|为|即|作为)(?:本|这个|预)?(?:登记|注册)的?(?:运行|结果|实验|研究)",
    re.IGNORECASE,
)
NAMED = ("domain", "condition", "edge", "tape")


_WORD_BEFORE = re.compile(r"[A-Za-z0-9-]{1,40}$")
_WORD_AFTER = re.compile(r"[A-Za-z0-9]{1,40}")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that the run doesn't support, at a line of the write-up. `places`: where what was expected stands in
    the run's records; empty where it stands in none.
    """

    line: int
    what: str
    expected: str
    found: str
    places: str = ""


def check_text(document: str, view: RunView, claims: Claims, registration: Registration) -> tuple[Finding, ...]:
    """Everything in the write-up that the run doesn't support, by line."""
    known, on_record = supported(view, claims), tried(view)
    found: list[Finding] = []
    for sentence in sentences(document):
        found += _figures(sentence, known, view)
        found += _prohibited(sentence, view, registration)
        found += _bands(sentence, registration)
        found += _names(sentence, view)
        found += _attempts(sentence, on_record)
    return tuple(sorted(dict.fromkeys(found), key=lambda one: (one.line, one.what)))


def _figures(sentence: Sentence, known: Supported, view: RunView) -> Iterator[Finding]:
    names = own_names(view.loaded.protocol)
    whole = facets_in(f"{sentence.labels} {sentence.text}", names)
    opening = Facets()
    for start, clause in _clauses(sentence.text):
        own_words = facets_in(f"{sentence.labels} {clause}", names)
        said = _said(sentence, start, own_words, whole, names)
        said |= _unnamed(said, opening)
        figures = list(quoted(clause)) or list(_bare(sentence, clause, said))
        opening = own_words if not figures and _OPENING.match(clause) else Facets()
        yield from _unnumbered(sentence, start, clause, said, known) if not figures else ()
        yield from _shares(sentence, start, clause, said, known)
        for one in figures:
            line = sentence.line(start + one.start)
            if is_unwritten(clause, one.start) or _NOT.search(clause[: one.start]):
                continue
            if one.things in ("sources", "tapes") and not known.own.has(one):
                counts = known.own.counts[one.things]
                expected = " or ".join(f"{count} {one.things}" for count in sorted(counts)[-2:])
                yield Finding(line, "figure", expected, one.words)
            elif one.things == "tapes" and one.form in ("all", "count"):
                continue
            elif one.things == "cells" and _is_size(one, clause, own_words, said):
                own = known.own.within(f"{sentence.labels} {sentence.text}", whole)
                if not sized(one, own):
                    expected = " or ".join(f"{cells} cells" for cells in sorted(own)[-2:])
                    yield Finding(line, "figure", expected, one.words)
            elif not (
                holds(known, one, said, alone=len(figures) == 1 and not _sets(clause, one))
                and _is_of_all(known, one, said, sentence.text)
            ):
                yield _unlike(line, known, said, one.words)
            elif _needs_diagnostics(known, one, said) and not any(map(_DIAGNOSTICS.search, sentence.headings)):
                expected = "a completion-conditioned figure under a heading Diagnostics only"
                yield Finding(line, "diagnostic", expected, one.words)


def _is_of_all(known: Supported, one: Quoted, said: Facets, text: str) -> bool:
    """Whether a percentage of an outcome is of all that its clause names: nothing in it says that it is of a part."""
    measures = () if said.apart or one.form != "percentage" else said.measure & OUTCOMES
    facts = [fact for name in measures for fact in _outcomes(known, replace(said, measure=frozenset({name})), text)]
    return not facts or any(fact.shows(one) for fact in facts)


def _unlike(line: int, known: Supported, said: Facets, words: str) -> Finding:
    return Finding(line, "figure", nearest(known, said), words, nearest(known, said, places=True))


def _is_size(one: Quoted, clause: str, own_words: Facets, said: Facets) -> bool:
    """Whether a number of cells says how many there are: nothing else is said of them, or that they were made."""
    if one.form not in ("all", "count", "fraction"):
        return False
    return not said.apart | said.measure or (not own_words.apart | own_words.measure and bool(_MADE.search(clause)))


def _bare(sentence: Sentence, clause: str, said: Facets) -> Iterator[Quoted]:
    """A clause or a table's cell that is a number and nothing else: a count of the outcome that stands beside it."""
    match = _NUMBER.fullmatch(clause)
    counts = said.apart or said.measure & OUTCOMES
    if match and counts and not _PLACE.search(f"{sentence.labels} {sentence.text}"):
        yield Quoted("count", match[1], (Decimal(match[1].replace(",", "")),), match.start(1), match.end(1), "")


def _sets(clause: str, one: Quoted) -> bool:
    """Whether a number says how much there is, or what was allowed, and not what came of it."""
    return _WHOLE.match(clause) is not None or _LIMIT.search(clause[: one.start]) is not None


def _unnumbered(sentence: Sentence, start: int, clause: str, said: Facets, known: Supported) -> Iterator[Finding]:
    """All cells ended or passed, it says without a number, and no count of the matter is whole; or all were made again
    with the same tokens: the run's cells are more than those of a replay, or under a second placement.
    """
    match = _ALL.search(clause)
    if match is None or is_negated(sentence, (start + match.start(), start + match.end())):
        return
    facts = _outcomes(known, said, sentence.text)
    whole = (
        (not facts and not said.tape)
        or any(fact.count == fact.of for fact in facts)
        or bool(_THOSE.match(clause, match.end()))
    )
    again = said.apart & AGAIN if _SAME.search(sentence.text) else said.apart & {"replay"}
    whole = whole and again <= known.again
    if not whole:
        yield _unlike(sentence.line(start + match.start()), known, said, match[0])


def _shares(sentence: Sentence, start: int, clause: str, said: Facets, known: Supported) -> Iterator[Finding]:
    """Most of them, it says, or none, and no count of the matter is such a share."""
    counts = [fact for fact in _outcomes(known, said, sentence.text) if fact.of]
    if not counts and said.apart & AGAIN:
        counts = [fact for fact in known.about(Facets(apart=said.apart & AGAIN)) if fact.where.endswith(OF_ALL)]
    for one in shares(clause) if counts else ():
        if _is_denied(sentence, start, clause, one) or any(one.holds(Fraction(fact.count, fact.of)) for fact in counts):
            continue
        yield _unlike(sentence.line(start + one.start), known, said, clause[one.start : one.end])


def _is_denied(sentence: Sentence, start: int, clause: str, one: Share) -> bool:
    """Whether what is said of the share is that it isn't so: "most cells did not end"."""
    return not one.denies and is_negated(sentence, (start + one.start, start + len(clause)))


def _outcomes(known: Supported, said: Facets, text: str) -> list[Fact]:
    """The counts of the outcome that a text names, over all that it names; the baseline's where it is named."""
    outcomes = said.measure & OUTCOMES
    facts = [fact for fact in known.about(said) if fact.facets.measure & outcomes and fact.facets.within(said)]
    if not _BASELINE.search(text):
        facts = [fact for fact in facts if not _BASELINE.search(fact.where)]
    facts = [fact for fact in facts if fact.facets.domain <= said.domain] or facts  # a domain's alone aren't all
    whole = max((fact.of for fact in facts), default=0)
    return [fact for fact in facts if fact.of == whole]  # nor are those of one kind of judge


def _clauses(text: str) -> Iterator[tuple[int, str]]:
    at = 0
    for match in _CLAUSE.finditer(text):
        yield at, text[at : match.start()]
        at = match.end()
    yield at, text[at:]


def _said(sentence: Sentence, start: int, clause: Facets, whole: Facets, names: OwnNames) -> Facets:
    """What a figure's clause is about: its own words; else its sentence's, its lead's, its heading's.

    A name before a colon, and what was made again, are those of the clause after it. What was made again stays so
    over a list or table that such a sentence introduces, or under such a heading alone.
    """
    lead = facets_in(_introduction(sentence.lead), names)
    heading = facets_in(sentence.headings[-1] if sentence.headings else "", names)
    if label := _COLON.search(sentence.text, max(0, start - 60), start):
        named = facets_in(label[1], names)
        clause |= Facets(apart=named.apart) | _unnamed(clause, named)
    if sentence.item or sentence.labels:
        clause |= Facets(apart=lead.apart)
    if not clause.apart and not clause.measure:
        clause |= Facets(apart=whole.apart, measure=frozenset() if clause else whole.measure)
    if heading.apart and not heading.measure:
        clause |= Facets(apart=heading.apart)
    return clause


def _unnamed(clause: Facets, before: Facets) -> Facets:
    """The names that stand before a clause, of each kind that it names none of itself."""
    return Facets(**{kind: getattr(before, kind) for kind in NAMED if not getattr(clause, kind)})


def _introduction(lead: str) -> str:
    """The last sentence of the paragraph above a list, table or block; one that only ends a longer text isn't it."""
    parts = [part for part in re.split(r"(?<=[.。!?;；])\s{0,3}", lead) if part.strip()]
    return parts[-1] if parts and (len(parts) == 1 or lead.endswith(":")) else ""


def _needs_diagnostics(known: Supported, one: Quoted, said: Facets) -> bool:
    """Whether the figure is said to be conditioned on completion, or is one of this run only as such."""
    if "conditioned" in said.apart:
        return True
    facts = [fact for fact in known.about(said) if fact.shows(one)]
    return bool(facts) and all("conditioned" in fact.facets.apart for fact in facts)


def _prohibited(sentence: Sentence, view: RunView, registration: Registration) -> Iterator[Finding]:
    texts = {one.id: one.text for one in view.loaded.protocol.prohibited}
    for rule in registration.rules.prohibited:
        stands = (span for span in matches(rule, sentence.text) if not is_negated(sentence, span))
        span = next((one for one in stands if not is_listed(sentence, one)), None)
        if span is not None:
            stated = " ".join(_whole_words(sentence.text, span).split())
            expected = f"this to be said of no run, or only as what isn't shown ({texts[rule.id]})"
            yield Finding(sentence.line(span[0]), f"prohibited {rule.id}", expected, stated)


def _whole_words(text: str, span: tuple[int, int]) -> str:
    """What stands at [start, end), with the rest of a word that it would cut."""
    start, end = span
    before, after = _WORD_BEFORE.search(text, max(0, start - 40), start), _WORD_AFTER.match(text, end)
    return text[before.start() if before and _WORD_AFTER.match(text, start) else start : after.end() if after else end]


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


def _attempts(sentence: Sentence, on_record: Tried) -> Iterator[Finding]:
    """How often the run was tried is on record, and no other number may be given."""
    for start, end in overstated(sentence.text, on_record):
        if not is_negated(sentence, (start, end)):
            yield Finding(sentence.line(start), "attempts", str(on_record), sentence.text[start:end])


def _however_written(name: str) -> str:
    """A pattern of a name whose words are apart by any few blanks or one kind of hyphen."""
    words = [re.escape(word) for word in re.split(r"[\s-]+", name) if word]
    return r"[\s\u2010-\u2015-]{1,3}".join(words)


def _names(sentence: Sentence, view: RunView) -> Iterator[Finding]:
    """A port's result has its name with "(port)", and on random weights with theirs, and no other.

    Nor is it said to be the registered one.
    """
    if not view.spec.port:
        return
    name = view.loaded.protocol.result_name
    after = r"\s{1,2}".join(re.escape(word) for word in result_name(view).removeprefix(name).split())
    for match in _REGISTERED.finditer(sentence.text):
        if not is_negated(sentence, match.span()):
            yield Finding(sentence.line(match.start()), "name", result_name(view), match[0])
    for match in re.finditer(_however_written(name), sentence.text, re.IGNORECASE):
        if not re.match(r"\s{0,2}" + after, sentence.text[match.end() :], re.IGNORECASE):
            yield Finding(sentence.line(match.start()), "name", result_name(view), match[0])
