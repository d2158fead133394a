"""A cell's text as evaluators read it. Knows the EOS token's text from the protocol, and no tokenizer."""

from harness.canon import unescaped
from harness.compare import TODO
from harness.errors import JournalError, ProtocolError
from harness.records.protocol import Protocol
from harness.records.run import CellRecord


def observed_text(protocol: Protocol, cell: CellRecord, *, where: str) -> str:
    """A cell's text as evaluators read it: without the EOS token's own text at its end, everything else kept.

    Recorded text keeps special tokens; with its EOS no whole text could parse as Python. JournalError where a cell that
    ended by EOS doesn't end in that text, or where the recorded text isn't an escaped one.
    """
    try:
        text = unescaped(cell.text_escaped)
    except UnicodeError as error:
        raise JournalError(f"{where}: text_escaped", expected="escaped text", found=str(error), todo=TODO) from error
    if not cell.eos:
        return text
    eos = eos_text(protocol)
    if not text.endswith(eos):
        raise JournalError(f"{where}: text_escaped", expected=f"an end of {eos!r}", found=f"{text[-20:]!r}", todo=TODO)
    return text.removesuffix(eos)


def eos_text(protocol: Protocol) -> str:
    """The EOS token's text, which the protocol registers as its boundary `eos`."""
    for boundary in protocol.boundaries:
        if boundary.name == "eos":
            return boundary.token
    names = [boundary.name for boundary in protocol.boundaries]
    where, todo = f"protocol {protocol.id}: boundaries", "Register the official boundary."
    raise ProtocolError(where, expected="one named eos", found=str(names), todo=todo)
