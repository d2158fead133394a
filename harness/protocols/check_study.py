"""A study must agree with itself: messages with the source once, edits of registered tokens, judges of its domains."""

import keyword
import math
import re
from collections.abc import Sequence

from harness.errors import ProtocolError
from harness.protocols.check_taped_study import check_fields, check_taped_study
from harness.protocols.grids import is_executed
from harness.protocols.pattern import compiled
from harness.protocols.require import known, require
from harness.records.manifest import FrozenSource, Manifest
from harness.records.protocol import RegisteredStudy, StudyProtocol, TapedStudyProtocol
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
WORD = 2**32
GREEDY_PLACED = ("prompt_sha256", "generated_ids", "text_escaped", "eos")
GREEDY_REPLAYED = (*GREEDY_PLACED, "generated_sha256", "text_sha256", "truncated", "length")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def check_study(protocol: RegisteredStudy, where: str) -> None:
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
    salt, found = salt_named_by(protocol.id), protocol.selection.salt
    require(found == salt, f"{where}: selection.salt", expected=salt, found=found)
    _check_grids(protocol, where)
    _check_numbers(protocol, where)
    if isinstance(protocol, TapedStudyProtocol):
        check_taped_study(protocol, where)
    else:
        _check_greedy(protocol, where)
        _check_fields(protocol, where)
    _check_judges(protocol, where)


def salt_named_by(protocol_id: str) -> str:
    """The salt of a study's ranks: it follows from the ID, so that nobody tries out salts until the sources please."""
    return f"{protocol_id}-source-selection-v1"


def _check_grids(protocol: StudyProtocol, where: str) -> None:
    """Every grid lies within the formal one; replay's is what a fresh process generates, smoke's sources at least."""
    formal, smoke = (protocol.grids[protocol.tier_grids[tier]] for tier in ("formal", "smoke"))
    for name, grid in protocol.grids.items():
        for size in ("per_domain", "max_new_tokens"):
            most, found = getattr(formal, size), getattr(grid, size)
            expected = f"from 1 to {most}, the formal grid's"
            require(0 < found <= most, f"{where}: grids.{name}.{size}", expected=expected, found=found)
    replayed, apart = protocol.tier_grids["replay"], protocol.independent_replay.grid
    require(replayed == apart, f"{where}: tier_grids.replay", expected=f"{apart}, independent_replay's", found=replayed)
    few, least = protocol.grids[apart].per_domain, smoke.per_domain
    require(few >= least, f"{where}: grids.{apart}.per_domain", expected=f"{least} or more, as in smoke", found=few)


def _check_numbers(protocol: RegisteredStudy, where: str) -> None:
    """A seed that every generator takes, and official numbers that are some."""
    contract = protocol.decode
    seed = contract.generator_seed
    require(0 <= seed < WORD, f"{where}: decode.generator_seed", expected="from 0 to 2**32 - 1", found=seed)
    for name in ("official_temperature", "official_top_p"):
        value = getattr(contract, name)
        require(math.isfinite(value), f"{where}: decode.{name}", expected="a finite number", found=value)


def _check_fields(protocol: StudyProtocol, where: str) -> None:
    """What is compared of two runs that are made apart: nothing that `init` writes may be left out, or be unknown."""
    rules = {"placement_equivalence": GREEDY_PLACED, "independent_replay": GREEDY_REPLAYED}
    for name, needed in rules.items():
        check_fields(getattr(protocol, name).fields, needed, GREEDY_REPLAYED, f"{where}: {name}.fields")


def _check_greedy(protocol: StudyProtocol, where: str) -> None:
    for name, grid in protocol.grids.items():
        found = grid.replicates
        require(found == (GREEDY,), f"{where}: grids.{name}.replicates", expected=(GREEDY,), found=found)


def check_texts(manifest: Manifest, where: str) -> None:
    """No two chosen sources of a domain have one text: ProtocolError names both IDs. Every count takes them for two."""
    first: dict[tuple[str, str], str] = {}
    for source in manifest.sources:
        if not isinstance(source, FrozenSource):
            continue
        other = first.setdefault((source.domain, source.text_sha256), source.source_id)
        if other != source.source_id:
            raise ProtocolError(
                f"{where}: {source.domain} sources",
                expected="each text once",
                found=f"one text under the IDs {other} and {source.source_id}",
                todo="Take one of the two rows out of the file, which is then another input with its own SHA-256.",
            )


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
        pattern = compiled(judge.pattern, f"{where}.pattern")
        sure = not judge.field and all(pattern.search(text) for text in ANYTHING)
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


def judge_of(protocol: StudyProtocol, domain: str) -> Judge | None:
    """The judge of a domain; None where its outputs are observed alone."""
    return next((judge for judge in protocol.evaluators.judges if judge.domain == domain), None)
