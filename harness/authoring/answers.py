"""What an author answers, by flags or at the prompt: model, sources, conditions, sizes, claims. Plain values alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import ProtocolError
from harness.protocols.check_taped_study import AT_LEAST, COOLEST, HOTTEST

EMBEDDED = "nano"
JUDGES = ("none", "number", "program", "exact", "regex", "function")
COUNTED = "statistics."  # what begins the name of a count
OPEN = ("pattern", "content")  # they may hold commas, so they take the rest of the words
TODO = "See `python -m harness init --help` and docs/authoring.md."


@dataclass(frozen=True, slots=True)
class SourceAnswer:
    """A file of sources: its domain's name, which fields are its IDs and texts, and how outputs are judged.

    `file`: None for a pool of the embedded model. `gold`: the field that a judge compares with, or several.
    `function`: `module:name` beside protocol.toml. `content` holds `{text}`.
    """

    name: str
    file: Path | None
    id: str
    text: str
    judge: str
    gold: tuple[str, ...]
    pattern: str
    function: str
    content: str


@dataclass(frozen=True, slots=True)
class ClaimAnswer:
    """At least `least` cells of a domain succeed under a condition."""

    domain: str
    condition: str
    least: int


@dataclass(frozen=True, slots=True)
class CountAnswer:
    """At least `least` in any count of the study, by its source's name: `statistics.ids_exact.math.x_plain`."""

    source: str
    least: int


@dataclass(frozen=True, slots=True)
class SamplingAnswer:
    """Drawn under so many tapes, two or more. `temperature`, `top_p`: None for what the model's own config says."""

    tapes: int
    temperature: float | None
    top_p: float | None


@dataclass(frozen=True, slots=True)
class Answers:
    """Everything that init needs. `checkpoint`: None for the embedded model. `edits`: name -> token's text.

    `sampling`: None for greedy decoding.
    """

    id: str
    title: str
    checkpoint: Path | None
    sources: tuple[SourceAnswer, ...]
    system: str
    shot: tuple[str, str] | None
    edits: dict[str, str]
    smoke: int
    formal: int
    smoke_tokens: int
    tokens: int
    device: str
    dtype: str
    sampling: SamplingAnswer | None
    claims: tuple[ClaimAnswer | CountAnswer, ...]


def source_of(words: str) -> SourceAnswer:
    """`NAME=FILE,id=FIELD,text=FIELD,judge=KIND,gold=FIELD`; a pattern or content comes last. Or a ProtocolError."""
    name, _, rest = words.partition("=")
    found, parts = {"name": name.strip()}, rest.split(",")
    found["file"] = parts[0]
    for at, part in enumerate(parts[1:], start=1):
        key, equals, value = part.partition("=")
        if not equals or key.strip() not in _FIELDS:
            raise _wrong(words, f"one of {', '.join(_FIELDS)}", part)
        if key.strip() in OPEN:
            found[key.strip()] = ",".join([value, *parts[at + 1 :]])
            break
        found[key.strip()] = value
    if not all(found[one] for one in ("name", "file")):
        raise _wrong(words, "NAME=FILE", words)
    return answered(found, words)


_FIELDS = ("id", "text", "judge", "gold", "function", *OPEN)


def answered(found: dict[str, str], where: str) -> SourceAnswer:
    """A source from its words; ProtocolError where its judge lacks what it needs, or has what it can't use."""
    judge, gold = found.get("judge", "none"), tuple(one for one in found.get("gold", "").split("+") if one)
    if judge not in JUDGES:
        raise _wrong(where, f"a judge, one of {', '.join(JUDGES)}", judge)
    needed = {"number": bool(gold), "exact": bool(gold), "regex": bool(found.get("pattern"))}
    needed |= {"function": ":" in found.get("function", "")}
    if not needed.get(judge, True):
        wants = {"regex": "pattern=PATTERN", "function": "function=MODULE:NAME"}.get(judge, "gold=FIELD")
        raise _wrong(where, f"{wants} for the judge {judge}", "none")
    if judge == "program":
        gold = gold or ("entry_point", "test")
    content = found.get("content", "{text}")
    if content.count("{text}") != 1:
        raise _wrong(where, "{text} once in content", content)
    return SourceAnswer(
        name=found["name"],
        file=Path(found["file"]) if found.get("file") else None,
        id=found.get("id", "id"),
        text=found.get("text", "text"),
        judge=judge,
        gold=gold,
        pattern=found.get("pattern", ""),
        function=found.get("function", ""),
        content=content,
    )


def claim_of(words: str) -> ClaimAnswer | CountAnswer:
    """`DOMAIN:CONDITION:N`, or `statistics.MEASURE...:N` of any count; ProtocolError for anything else."""
    parts = words.split(":")
    if all(parts) and parts[-1].isdecimal():
        if len(parts) == 3:
            return ClaimAnswer(parts[0], parts[1], int(parts[2]))
        if len(parts) == 2 and parts[0].startswith(COUNTED):
            return CountAnswer(parts[0], int(parts[1]))
    raise _wrong(words, f"DOMAIN:CONDITION:N, or {COUNTED}MEASURE...:N", words)


def sampling_of(tapes: int, temperature: float | None, top_p: float | None) -> SamplingAnswer | None:
    """How tokens are drawn; None for greedy decoding. ProtocolError for one tape, or for numbers that mean nothing."""
    given = [name for name, value in (("--temperature", temperature), ("--top-p", top_p)) if value is not None]
    if tapes == 0 and given:
        raise _wrong(" and ".join(given), "--tapes N beside it: greedy decoding has neither", "no tapes")
    if tapes == 0:
        return None
    if tapes < AT_LEAST:
        raise _wrong("--tapes", f"{AT_LEAST} or more, or 0 for greedy decoding", str(tapes))
    for name, (bounds, found) in undrawable(temperature, top_p).items():
        raise _wrong(name, bounds, str(found))
    return SamplingAnswer(tapes, temperature, top_p)


def undrawable(temperature: float | None, top_p: float | None) -> dict[str, tuple[str, float]]:
    """Of numbers that nothing can be drawn with: by flag its bounds, and what was found. None is no number yet."""
    wrong = {}
    if temperature is not None and not COOLEST <= temperature <= HOTTEST:
        wrong["--temperature"] = (f"from {COOLEST} to {HOTTEST}", temperature)
    if top_p is not None and not 0 < top_p <= 1:
        wrong["--top-p"] = ("above 0, at most 1", top_p)
    return wrong


def edit_of(words: str) -> tuple[str, str]:
    """`NAME=TOKEN`; ProtocolError for anything else."""
    name, equals, token = words.partition("=")
    if not (name and equals and token):
        raise _wrong(words, "NAME=TOKEN", words)
    return name, token


def require_shot(edits: Sequence[str], question: str) -> None:
    """ProtocolError for edits without a one-shot turn, at the end of whose answer they are made."""
    if edits and not question:
        raise _wrong(
            f"--edit {edits[0]}", "--question and --answer beside it: the edit is at the answer's end", "neither"
        )


def embedded_sources() -> tuple[SourceAnswer, ...]:
    """Pools of the embedded model: texts that are only observed, and problems with a number."""
    english = {"name": "english", "content": "Continue this text:\n\n{text}"}
    math = {"name": "math", "id": "n", "text": "question", "judge": "number", "gold": "answer"}
    math["content"] = "{text}\nSolve the problem step by step."
    return answered(english, "english"), answered(math, "math")


def _wrong(where: str, expected: str, found: str) -> ProtocolError:
    return ProtocolError(f"init: {where}", expected=expected, found=found, todo=TODO)
