"""What a protocol registers of its prompts besides the sources: texts, template, and which place is edited."""

from typing import Literal

from harness.records.base import Record

EditedBoundary = Literal["assistant_history_end", "assistant_turn_end"]


class PromptContract(Record):
    """Texts around the source. `template` is the tokenizer's own chat template, used through its hashed file.

    `edited_boundary`: which EOS is the historical boundary. `assistant_history_end`: the prompt's only EOS; its only
    BOS stands at the start. `assistant_turn_end`: every turn begins with BOS and ends with EOS; the boundary is the EOS
    that ends the one-shot answer, the third of four closed turns (system, question, answer, task). In either case the
    text before it ends with the one-shot answer.
    """

    template: Literal["tokenizer_config"]
    system_text: str
    one_shot_question: str
    one_shot_answer: str
    padding_side: Literal["left"]
    edited_boundary: EditedBoundary
