"""A token's text by the registered tokenizer, from hash-checked files; or the reason why there is none."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from harness.canon import escaped
from harness.difference.side import Side
from harness.errors import HarnessError
from harness.places import Places, places
from harness.prompts.tokenizer import PromptTokenizer, locate_tokenizer
from harness.records.difference import Decoded, NotDecoded
from harness.records.protocol import AnyProtocol


@dataclass(frozen=True, slots=True)
class Decoder:
    """Token texts of one side. `tokenizer`: a verified one, or why there is none."""

    tokenizer: PromptTokenizer | str

    def text(self, token: int) -> Decoded | NotDecoded:
        """The text of one token alone."""
        if isinstance(self.tokenizer, str):
            return NotDecoded(reason=self.tokenizer)
        if not 0 <= token < 2**32 or self.tokenizer.backend.id_to_token(token) is None:
            return NotDecoded(reason="the tokenizer has no such ID")
        return Decoded(text_escaped=escaped(self.tokenizer.decode([token])))


@dataclass(frozen=True)
class Decoders:
    """The decoders of both sides, each made when its first token is decoded."""

    sides: tuple[Side, Side]
    checkpoint: Path | None

    @cached_property
    def a(self) -> Decoder:
        """A's."""
        return _decoder_of(self.sides[0], self.checkpoint)

    @cached_property
    def b(self) -> Decoder:
        """B's."""
        return _decoder_of(self.sides[1], self.checkpoint)


def _decoder_of(side: Side, checkpoint: Path | None) -> Decoder:
    """The decoder of a side: its own profile's tokenizer, from `checkpoint` or from the tree that has the protocol."""
    found = side.registered
    if found.loaded is None:
        return Decoder(f"protocol {side.protocol} isn't here under the side's digest: {found.why}")
    if (reason := _foreign(side, found.loaded.protocol, found.loaded.manifest.tokenizer_sha256)) is not None:
        return Decoder(reason)
    try:
        return Decoder(locate_tokenizer(found.loaded, checkpoint, _tree_of(found.loaded.home)))
    except HarnessError as error:
        return Decoder(str(error))


def _tree_of(home: Path) -> Places:
    """The tree that a protocol's folder lies in; for an author's own, which may lie anywhere, the one in use."""
    tree = Places(home.parent.parent.parent)
    return tree if tree.protocols == home.parent else places()


def _foreign(side: Side, protocol: AnyProtocol, registered: str) -> str | None:
    """Why the registered tokenizer isn't what a port generated with; None where it is, or nothing says otherwise."""
    if side.environment is None or registered in side.environment.checkpoint.values():
        return None
    return f"the run's checkpoint doesn't hold the tokenizer of {protocol.id}"
