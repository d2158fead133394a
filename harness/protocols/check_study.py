"""A study must agree with itself: messages with the source once, edits of registered tokens, judges of its domains."""

import keyword
import re
from collections.abc import Sequence

from harness.protocols.grids import is_executed
from harness.protocols.require import known, require
from harness.records.protocol import StudyProtocol
from harness.records.sources import Domain
from harness.records.study import (
    ExactJudge,
    FunctionJudge,
    HistoryEnd,
    Judge,
    MessageEnd,
    NumberJudge,
    PatternJudge,
    PlacedEdit,
    ProgramJudge,
    StudyCondition,
)

CONTENT = "{content}"
ANYTHING = ("", "a", "\x00", "1\n")  # a pattern that finds something in each of them judges nothing
GREEDY = "greedy"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def check_study(protocol: StudyProtocol, where: str) -> None:
    """Conditions, edits, judges, replicates; ProtocolError names the field, what was expected and what was found."""
    known(f"{where}: boundaries", "eos", [boundary.name for boundary in protocol.boundaries])
    named = {
        "id": [protocol.id],
        "domains": [one.name for one in protocol.domains],
        "conditions": [one.id for one in protocol.conditions],
        "edges": [one.id for one in protocol.edges],
    }
    for label, listed in named.items():
        for name in listed:
            fit = _NAME.fullmatch(name) is not None
            require(fit, f"{where}: {label}", expected="letters, digits, dots, dashes, 64 at most", found=name)
    _check_apart(named["domains"], [*named["conditions"], *named["edges"]], where)
    for condition in protocol.conditions:
        _check_condition(protocol, condition, f"{where}: conditions.{condition.id}")
    prompts = [(condition.messages, condition.edits) for condition in protocol.conditions]
    twins = [one.id for one, prompt in zip(protocol.conditions, prompts, strict=True) if prompts.count(prompt) > 1]
    require(not twins, f"{where}: conditions", expected="each prompt once", found=twins)
    for name, grid in protocol.grids.items():
        replicates, sizes = grid.replicates, (grid.per_domain, grid.max_new_tokens)
        require(replicates == (GREEDY,), f"{where}: grids.{name}.replicates", expected=(GREEDY,), found=replicates)
        require(min(sizes) > 0, f"{where}: grids.{name}", expected="a source and a new token at least", found=sizes)
    _check_judges(protocol, where)


def _check_apart(domains: Sequence[str], others: Sequence[str], where: str) -> None:
    """A count is of `domain`, of `condition` or `edge`, or of `domain.name`: no two of these may read alike."""
    joined = [f"{domain}.{name}" for domain in domains for name in others]
    whole = [*domains, *others, *joined]
    shared = sorted({name for name in whole if whole.count(name) > 1})
    require(not shared, f"{where}: names", expected="no name of a domain, condition and edge twice", found=shared)


def _check_condition(protocol: StudyProtocol, condition: StudyCondition, where: str) -> None:
    messages = condition.messages
    times = sum(one.content.count(CONTENT) for one in messages)
    require(times == 1, f"{where}.messages", expected=f"{CONTENT} once", found=f"{times} times")
    last = messages[-1].role
    require(last == "user", f"{where}.messages", expected="a user's message last", found=f"one of the {last}")
    empty = [number for number, one in enumerate(messages) if not one.content]
    require(not empty, f"{where}.messages", expected="no empty content", found=empty)
    for number, edit in enumerate(condition.edits):
        _check_edit(protocol, condition, edit, f"{where}.edits[{number}]")


def _check_edit(protocol: StudyProtocol, condition: StudyCondition, edit: PlacedEdit, where: str) -> None:
    for name in (*edit.official, *edit.put):
        known(where, name, [boundary.name for boundary in protocol.boundaries])
    ids = {boundary.name: boundary.id for boundary in protocol.boundaries}
    taken, put = [ids[name] for name in edit.official], [ids[name] for name in edit.put]
    require(taken != put, where, expected="an edit that changes the prompt", found=f"{taken} for {put}")
    if isinstance(edit.at, MessageEnd):
        count, number = len(condition.messages), edit.at.message
        require(0 <= number < count, f"{where}.at.message", expected=f"0..{count - 1}", found=number)
    if isinstance(edit.at, HistoryEnd):
        roles = [one.role for one in condition.messages]
        require("assistant" in roles, f"{where}.at", expected="an assistant message in the history", found=roles)


def _check_judges(protocol: StudyProtocol, where: str) -> None:
    domains = {domain.name: domain for domain in protocol.domains}
    judges = protocol.evaluators.judges
    names = [judge.domain for judge in judges]
    require(len(set(names)) == len(names), f"{where}: judges", expected="one a domain at most", found=names)
    for judge in judges:
        known(f"{where}: judges", judge.domain, domains)
        _check_judge(judge, domains[judge.domain], f"{where}: judges of {judge.domain}")
    programs = {judge.domain for judge in judges if isinstance(judge, ProgramJudge)}
    tested = {domain.name for domain in protocol.domains if is_executed(domain)}
    require(
        programs == tested,
        f"{where}: judges",
        expected="a program judge for each domain that registers entry_point and test, and no other",
        found=f"{sorted(programs)} for {sorted(tested)}",
    )


def _check_judge(judge: Judge, domain: Domain, where: str) -> None:
    if isinstance(judge, NumberJudge | ExactJudge):
        known(f"{where}.field", judge.field, domain.gold)
    if isinstance(judge, PatternJudge):
        if judge.field:
            known(f"{where}.field", judge.field, domain.gold)
        require(_compiles(judge.pattern), f"{where}.pattern", expected="a regular expression", found=judge.pattern)
        sure = not judge.field and all(re.search(judge.pattern, text) for text in ANYTHING)
        require(not sure, f"{where}.pattern", expected="one that some text doesn't match", found=judge.pattern)
    if isinstance(judge, FunctionJudge):
        _check_function(judge, where)


def _check_function(judge: FunctionJudge, where: str) -> None:
    parts = [*judge.module.split("."), judge.function]
    named = all(part.isidentifier() and not keyword.iskeyword(part) for part in parts)
    require(named, f"{where}.module and function", expected="names of Python", found=".".join(parts))
    digest = judge.source_sha256
    require(_SHA256.fullmatch(digest) is not None, f"{where}.source_sha256", expected="64 hex digits", found=digest)
    require(judge.timeout_ms > 0, f"{where}.timeout_ms", expected="a time above 0", found=judge.timeout_ms)


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return bool(pattern)


def judge_of(protocol: StudyProtocol, domain: str) -> Judge | None:
    """The judge of a domain; None where its outputs are observed alone."""
    return next((judge for judge in protocol.evaluators.judges if judge.domain == domain), None)
