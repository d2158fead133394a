"""What a study registers (conditions as messages with placed edits, judges by domain), and what its runs leave."""

from typing import Literal

from harness.records.base import Record
from harness.records.evaluation import CodeRule, NumericRule
from harness.records.prompt import NamedCondition
from harness.records.run import CodeTask, Run, UnitEvidence, UnitObservation


class Message(Record):
    """One message. `content` is taken verbatim; in one message of a condition `{content}` is the domain's content."""

    role: Literal["system", "user", "assistant"]
    content: str


class PromptStart(Record, tag_field="place", tag="prompt_start"):
    """Before the prompt's first token."""


class MessageEnd(Record, tag_field="place", tag="message_end"):
    """Where the content of a message ends, and what the template writes after it begins. `message`: from 0."""

    message: int


class HistoryEnd(Record, tag_field="place", tag="history_end"):
    """The same of the last assistant message."""


class BeforeGeneration(Record, tag_field="place", tag="before_generation"):
    """Where the template's generation prompt begins."""


Place = PromptStart | MessageEnd | HistoryEnd | BeforeGeneration


class PlacedEdit(Record):
    """Tokens of the rendered prompt that are replaced, by their registered names.

    From the place on stand the `official` tokens, which is checked; the edited prompt has those of `put` instead. One
    of the two may be empty: then nothing is taken away, or nothing is put.
    """

    at: Place
    official: tuple[str, ...]
    put: tuple[str, ...]


class StudyCondition(NamedCondition):
    """One prompt of every source: messages that the template renders, then edits of its token IDs."""

    messages: tuple[Message, ...]
    edits: tuple[PlacedEdit, ...]


class NumberJudge(Record, tag_field="judge", tag="number"):
    """A number is taken by the study's numeric rule and compared with the number in the gold field."""

    domain: str
    field: str


class ProgramJudge(Record, tag_field="judge", tag="program"):
    """A program is taken by the study's code rule and executed against the domain's tests, in the sandbox."""

    domain: str


class ExactJudge(Record, tag_field="judge", tag="exact"):
    """The whole text is the gold field's: as it stands, without outer white space, or without regard to case too."""

    domain: str
    field: str
    compare: Literal["verbatim", "stripped", "stripped_casefold"]


class PatternJudge(Record, tag_field="judge", tag="regex"):
    """The last match of a pattern (its first group, if any), compared with the gold field; empty: any match will do."""

    domain: str
    pattern: str
    field: str


class FunctionJudge(Record, tag_field="judge", tag="function"):
    """A function of the author's own: `module` (dotted) beside protocol.toml, under the SHA-256 of its source.

    It is called in a process apart with the text and the domain's gold fields, and has `timeout_ms` for each cell.
    """

    domain: str
    module: str
    function: str
    source_sha256: str
    timeout_ms: int


Judge = NumberJudge | ProgramJudge | ExactJudge | PatternJudge | FunctionJudge


class StudyEvaluators(Record):
    """Versions of the rules, and which judge a domain has: one at most; a domain without one is observed alone."""

    numeric: NumericRule
    code: CodeRule
    terminal: Literal["terminal-r05"]
    similarity: Literal["levenshtein-max"]
    judges: tuple[Judge, ...]


class SpanEdit(Record):
    """IDs replaced at `position` (from 0) of the official prompt, which is the rendered one before any edit."""

    position: int
    official: tuple[int, ...]
    put: tuple[int, ...]


class CellEdits(Record):
    """A cell's edits in the order of their positions. `round_trip`: tokenising the edited prompt's text gives its IDs.

    Where it doesn't, no text would have given the model this prompt: the tokenizer joins a put token with a neighbour.
    """

    condition: str
    edits: tuple[SpanEdit, ...]
    round_trip: bool


class StudyEvidence(UnitEvidence):
    """A unit of a study. `edited`: the edits of each cell, in the protocol's order of conditions."""

    edited: tuple[CellEdits, ...]


class StudyJournal(Record):
    """journal/<unit>.json of a study: evidence with its digest, and apart from it the observation."""

    schema: Literal[1]
    evidence: StudyEvidence
    evidence_sha256: str
    observation: UnitObservation


class FunctionScore(Record):
    """What the author's function gave for one cell's text. `value`: canonical JSON of what it returned, else empty.

    `detail`: the class name of what it raised, and nothing of its message.
    """

    source_id: str
    replicate: str
    condition: str
    text_sha256: str
    source_sha256: str
    outcome: Literal["returned", "raised", "timeout", "ended"]
    value: str
    detail: str


class StudyRun(Run):
    """run.json of a study: code tasks and expected texts by source ID and what functions gave are part of it."""

    tasks: dict[str, CodeTask]
    answers: dict[str, str]
    scores: tuple[FunctionScore, ...]
    units: tuple[StudyEvidence, ...]
