"""What a protocol registers of its prompts: texts, template, conditions, tokens and places of edits, comparisons."""

from typing import Literal

from harness.records.base import Record

EditedBoundary = Literal["assistant_history_end", "assistant_turn_end"]


class Boundary(Record):
    """A token that may stand at the historical boundary, or that a study's edit puts: its text and its ID."""

    name: str
    token: str
    id: int


class NamedCondition(Record):
    """What every family's condition has: the name of its cells."""

    id: str


class Condition(NamedCondition):
    """One cell of the factorial: system text on or off, and which boundary. `edits` single-ID replacements."""

    system: bool
    boundary: str
    edits: int


class Edge(Record):
    """A registered paired comparison within a source, left to right."""

    id: str
    kind: Literal["system", "direct"]
    left: str
    right: str


class PromptRules(Record):
    """What all prompts follow. `template` is the tokenizer's own chat template, used through its hashed file."""

    template: Literal["tokenizer_config"]
    padding_side: Literal["left"]


class PromptContract(PromptRules):
    """Texts around the source of the families whose conditions differ at the historical boundary.

    `edited_boundary`: which EOS is the historical boundary. `assistant_history_end`: the prompt's only EOS; its only
    BOS stands at the start. `assistant_turn_end`: every turn begins with BOS and ends with EOS; the boundary is the EOS
    that ends the one-shot answer, the third of four closed turns (system, question, answer, task). In either case the
    text before it ends with the one-shot answer.
    """

    system_text: str
    one_shot_question: str
    one_shot_answer: str
    edited_boundary: EditedBoundary
