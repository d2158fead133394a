"""A study's prompts: each condition's messages rendered by the model's own template, then edited in token IDs.

What stands at an edit's place is checked before it is replaced, so a prompt is either exactly the registered one or a
PromptError. Nothing is re-tokenised: the IDs before and after an edit are those of the rendered prompt.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from harness.canon import ids_sha256
from harness.errors import PromptError
from harness.inputs.sources import SourceText, registered_domain
from harness.prompts.contract import check_identity, check_round_trip, check_width, require
from harness.prompts.places import TODO, Messages, character_of, is_verbatim, token_of
from harness.prompts.records import PromptBatch, StudyCell, batch_of
from harness.prompts.render import MARKER, PLACE, render_messages
from harness.prompts.tokenizer import PromptTokenizer
from harness.records.protocol import StudyDesign
from harness.records.run import Edit
from harness.records.study import CellEdits, SpanEdit, StudyCondition

CONTENT = "{content}"


@dataclass(frozen=True, slots=True)
class Rendered:
    """A condition's official prompt: messages as rendered, its text, and its IDs, which decode to that text."""

    messages: Messages
    text: str
    ids: tuple[int, ...]


def study_batch(protocol: StudyDesign, tokenizer: PromptTokenizer, source: SourceText) -> PromptBatch:
    """All cells of one source, in the protocol's order of conditions. Raises PromptError naming source and cell."""
    _check_texts(protocol, tokenizer, source)
    content = registered_domain(protocol, source.domain).content
    tokens = {one.name: one.id for one in protocol.boundaries}
    cells = []
    for condition in protocol.conditions:
        where = f"{source.source_id} {condition.id}"
        official = official_prompt(tokenizer, condition, content, text=source.text, where=where)
        spans = placed_spans(tokenizer, condition, official, tokens=tokens, where=where)
        cells.append(edited_cell(tokenizer, condition.id, official.ids, spans))
    batch = batch_of(source, cells)
    for cell in cells:
        check_identity(cell, f"{source.source_id} {cell.condition}")
        same = [other.condition for other in cells if other.ids == cell.ids and other is not cell]
        where, expected = f"{source.source_id} {cell.condition}", "a prompt that no other condition has"
        require(not same, where, expected=expected, found=f"that of {', '.join(same)}")
    check_width(batch)
    return batch


def official_prompt(
    tokenizer: PromptTokenizer, condition: StudyCondition, content: str, *, text: str, where: str
) -> Rendered:
    """The prompt before any edit, with every message and the whole source text in it once, verbatim."""
    shell = [_message(one.role, one.content, content.replace(PLACE, MARKER)) for one in condition.messages]
    messages = [_message(one.role, one.content, content.replace(PLACE, text)) for one in condition.messages]
    rendered = render_messages(tokenizer, messages)
    if not is_verbatim(tokenizer, shell, rendered, part=text):
        raise PromptError(
            f"{where}: source text",
            expected="the source once in the prompt, verbatim",
            found="a prompt without it, or a template that altered it",
            todo="Use a template that neither strips nor escapes its messages, and a source without outer white space.",
        )
    for number, one in enumerate(messages):
        _check_message(tokenizer, messages, rendered, number, f"{where}: message {number}")
        held = [special for special in tokenizer.added_texts if special in one["content"]]
        require(not held, f"{where}: message {number}", expected="no special token's text", found=held)
    return Rendered(messages, rendered, check_round_trip(tokenizer, rendered, where=f"{where}, rendered"))


def _check_message(tokenizer: PromptTokenizer, messages: Messages, rendered: str, number: int, where: str) -> None:
    """A message that a template drops or alters is a condition that isn't what it is registered as."""
    shell = [{**one, "content": MARKER} if at == number else one for at, one in enumerate(messages)]
    if not is_verbatim(tokenizer, shell, rendered, part=messages[number]["content"]):
        raise PromptError(
            where,
            expected=f"the {messages[number]['role']} message once in the prompt, verbatim",
            found="a prompt without it, or a template that altered or repeated it",
            todo="Leave out a message that the template doesn't write, and white space that it strips.",
        )


def placed_spans(
    tokenizer: PromptTokenizer, condition: StudyCondition, official: Rendered, *, tokens: Mapping[str, int], where: str
) -> tuple[SpanEdit, ...]:
    """The condition's edits at their proven positions, in ascending order; PromptError for one that isn't there."""
    spans = []
    for edit in condition.edits:
        at = character_of(tokenizer, official.messages, official.text, place=edit.at, where=where)
        position = token_of(tokenizer, official.text, official.ids, character=at, where=where)
        taken = tuple(tokens[name] for name in edit.official)
        found = official.ids[position : position + len(taken)]
        if found != taken:
            raise PromptError(
                f"{where}: IDs from position {position}",
                expected=f"{list(taken)} ({', '.join(edit.official)})",
                found=f"{list(found)} ({tokenizer.decode(found)!r})",
                todo=TODO,
            )
        spans.append(SpanEdit(position=position, official=taken, put=tuple(tokens[name] for name in edit.put)))
    spans.sort(key=lambda one: one.position)
    for one, after in pairwise(spans):
        reach = one.position + max(1, len(one.official))
        require(
            reach <= after.position, f"{where}: edits", expected="places apart", found=[one.position, after.position]
        )
    return tuple(spans)


def edited_cell(
    tokenizer: PromptTokenizer, condition: str, official: tuple[int, ...], spans: tuple[SpanEdit, ...]
) -> StudyCell:
    """The edited prompt, whose other IDs are the official ones, and whether its text would be tokenised to it."""
    ids = apply_spans(official, spans)
    equal = all(len(one.official) == len(one.put) for one in spans)
    pairs = ((one.position, pair) for one in spans for pair in enumerate(zip(one.official, one.put, strict=False)))
    edits = tuple(Edit(position=at + offset, official=a, replaced=b) for at, (offset, (a, b)) in pairs if equal)
    return StudyCell(
        condition=condition,
        ids=ids,
        boundary_position=spans[0].position if spans else len(ids),
        edits=edits,
        sha256=ids_sha256(ids),
        length=len(ids),
        edited=CellEdits(condition=condition, edits=spans, round_trip=tokenizer.encode(tokenizer.decode(ids)) == ids),
    )


def apply_spans(official: Sequence[int], spans: Sequence[SpanEdit]) -> tuple[int, ...]:
    """The official IDs with each span's replaced. Spans are in ascending order and apart."""
    ids, reached = [], 0
    for one in spans:
        ids += [*official[reached : one.position], *one.put]
        reached = one.position + len(one.official)
    return (*ids, *official[reached:])


def _message(role: str, content: str, filled: str) -> dict[str, str]:
    return {"role": role, "content": content.replace(CONTENT, filled)}


def _check_texts(protocol: StudyDesign, tokenizer: PromptTokenizer, source: SourceText) -> None:
    """No text around or in the source holds a special token's text, which would become the token itself."""
    named = {"source text": source.text}
    named |= {f"domains.{domain.name}.content": domain.content for domain in protocol.domains}
    for condition in protocol.conditions:
        for number, one in enumerate(condition.messages):
            named[f"conditions.{condition.id}.messages[{number}]"] = one.content
    for name, value in named.items():
        held = [special for special in tokenizer.added_texts if special in value]
        require(not held, f"{source.source_id}: {name}", expected="no special token's text", found=held)
    check_round_trip(tokenizer, source.text, where=f"{source.source_id}: source text")
