"""Whether prompts and new tokens fit a model's context."""

from harness.errors import ProtocolError
from harness.records.manifest import FrozenSource, Manifest
from harness.records.protocol import DepthProtocol, Protocol


def check_fit(protocol: Protocol, manifest: Manifest, context: int | None) -> int:
    """The longest prompt with its grid's new tokens, in tokens; ProtocolError where it isn't within the context, or
    where a grid that generates has no budget.
    """
    longest = 0
    for name, grid in protocol.grids.items():
        where = f"protocol {protocol.id}: grids.{name}.max_new_tokens"
        if not isinstance(protocol, DepthProtocol) and grid.max_new_tokens < 1:
            raise ProtocolError(where, expected="1 or more", found=str(grid.max_new_tokens), todo="Give it a budget.")
        for source in manifest.sources:
            if not isinstance(source, FrozenSource) or source.index >= grid.per_domain:
                continue
            prompt = max(entry.length for entry in source.prompts.values())
            longest = max(longest, prompt + grid.max_new_tokens)
            if context is not None and prompt + grid.max_new_tokens > context:
                found = f"{prompt} of {source.source_id} and {grid.max_new_tokens} new ones"
                todo = "Lower the budget, choose shorter sources, or another model."
                raise ProtocolError(where, expected=f"at most {context} tokens in all", found=found, todo=todo)
    return longest
