"""Where a source's text stands in the prompts of its batch, in tokens (R05 depth 7.2).

A prompt's text is cut into tokens without regard to where the source begins, so a token at either end may hold
characters of both sides. Only tokens that lie wholly inside the source's characters are the target; the others are
counted and left out, or a stage would be compared at tokens that aren't the same.
"""

from dataclasses import dataclass

from harness.canon import ids_sha256
from harness.errors import PromptError
from harness.inputs.sources import SourceText
from harness.prompts.build import render_source
from harness.prompts.records import PromptBatch
from harness.prompts.render import RenderedPrompt
from harness.prompts.tokenizer import PromptTokenizer
from harness.records.depth import TargetTokens
from harness.records.protocol import BoundaryProtocol

TODO = "The prompt contract is registered: find what changed in texts, template or tokenizer."


@dataclass(frozen=True, slots=True)
class SourceTargets:
    """The target of one source in each of its cells, in the batch's order, and what they have in common.

    `content_token_ids_sha256`: over the canonical list of the target's token IDs; `tokens`: how many there are.
    """

    content_token_ids_sha256: str
    tokens: int
    cells: tuple[TargetTokens, ...]


def source_targets(
    protocol: BoundaryProtocol, tokenizer: PromptTokenizer, source: SourceText, batch: PromptBatch
) -> SourceTargets:
    """The targets of a source's cells, whose token IDs were seen to be the same in all of them.

    Raises PromptError naming source and cell: no token wholly inside, or other tokens than in the first cell.
    """
    levels = {
        system: target_tokens(
            tokenizer,
            render_source(protocol, tokenizer, source, system=system),
            where=f"{source.source_id} rendered with system={system}",
        )
        for system in dict.fromkeys(condition.system for condition in protocol.conditions)
    }
    systems = {condition.id: condition.system for condition in protocol.conditions}
    cells = tuple(levels[systems[cell.condition]] for cell in batch.cells)
    contents = [cell.ids[target.start : target.end] for cell, target in zip(batch.cells, cells, strict=True)]
    for cell, content in zip(batch.cells, contents, strict=True):
        if content != contents[0]:
            raise PromptError(
                f"{source.source_id} {cell.condition}: target tokens",
                expected=f"the {len(contents[0])} IDs of {batch.cells[0].condition}",
                found=f"{len(content)} IDs, others",
                todo=TODO,
            )
    return SourceTargets(ids_sha256(contents[0]), len(contents[0]), cells)


def target_tokens(tokenizer: PromptTokenizer, rendered: RenderedPrompt, *, where: str) -> TargetTokens:
    """The tokens of a rendered prompt that lie wholly inside its source, and how many its two ends cut."""
    start, end = rendered.target_start, rendered.target_end
    spans = tokenizer.spans(rendered.text)
    inside = [place for place, (first, last) in enumerate(spans) if start <= first and last <= end]
    crossing = [one for one in spans if any(one[0] < edge < one[1] for edge in (start, end))]
    if not inside:
        raise PromptError(
            f"{where}: target tokens",
            expected="a token wholly inside the source's text",
            found=f"none of {len(spans)}",
            todo="Choose a longer source: nothing of this one can be compared.",
        )
    return TargetTokens(start=inside[0], end=inside[-1] + 1, crossing=len(crossing))
