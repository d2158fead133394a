"""`freeze`: manifest and digest files of a protocol, before anything was made of it; with `--anchor` in time too."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from harness.cli import show
from harness.cli.anchor import asked
from harness.cli.errors import errors_to_stderr
from harness.cli.freezing import Named as Place
from harness.cli.freezing import freeze_folder, named_folder
from harness.cli.options import Authority, Checkpoint, Folders, Json, Named
from harness.cli.working import working
from harness.errors import SessionError
from harness.files import read_bytes, read_given
from harness.places import Places, places
from harness.protocols.anchor import anchor_words
from harness.protocols.freeze import require_unused
from harness.protocols.load import CANONICAL, LoadedProtocol, load_line
from harness.records.verbs import FreezeChecks, FrozenProtocol
from harness.verify.rfc3161 import require_client

ANEW = "frozen before, otherwise: what was made under the earlier digest, on another machine, is of no protocol here"

Anchor = Annotated[
    str | None, typer.Option("--anchor", metavar="URL", help="Time-stamp authority that is asked for a token.")
]


def freeze(  # noqa: PLR0913  a parameter an option
    protocol: Named,
    inputs: Folders = None,
    checkpoint: Checkpoint = None,
    anchor: Anchor = None,
    authority: Authority = None,
    *,
    json: Json = False,
) -> None:
    """Write manifest.json and the digest files of PROTOCOL, from its inputs and tokenizer.

    Exit 0: frozen; 1: refused, where something was made of it already, or something isn't as registered.
    """
    with errors_to_stderr(), working("freeze") as note:
        certificates = _trusted(anchor, authority)
        note("sources and prompts")
        named = named_folder(protocol, places())
        before = _digests(named.folder)
        loaded, checks = _frozen(named, inputs or [], checkpoint)
        if anchor is not None and certificates is not None:
            note(f"asking {anchor}")
            asked(loaded, anchor, certificates)
        words = anchor_words(loaded)
    made = FrozenProtocol(
        schema=1,
        protocol=loaded.protocol.id,
        protocol_digest=loaded.digest,
        frozen=len(loaded.manifest.sources) - len(loaded.unfrozen),
        unfrozen=loaded.unfrozen,
        anew=before not in (None, _digests(loaded.folder)),
        checks=checks,
        timestamp=words,
    )
    if json:
        show.document(made)
    else:
        _show(made)


def freeze_protocol(protocol: str, folders: Sequence[Path], *, checkpoint: Path | None, tree: Places) -> LoadedProtocol:
    """Freeze one protocol and load it, as a run will.

    Raises ProtocolError for a protocol in use, a pin that isn't right or records that don't agree; InputError,
    ModelError and PromptError where an input, the tokenizer or a prompt isn't as registered.
    """
    return _frozen(named_folder(protocol, tree), folders, checkpoint)[0]


def _frozen(named: Place, folders: Sequence[Path], checkpoint: Path | None) -> tuple[LoadedProtocol, FreezeChecks]:
    require_unused(named.folder, named.tree)
    _, checks = freeze_folder(named, folders, checkpoint=checkpoint)
    return load_line(named.folder, named.tree)[-1], checks


def _digests(folder: Path) -> bytes | None:
    """What the folder's files say of what is frozen, all in one; None where nothing is."""
    path = folder / CANONICAL
    return read_bytes(path, what="digest file") if path.is_file() else None


def _trusted(anchor: str | None, authority: Path | None) -> bytes | None:
    """The authority's certificates, read before anything is frozen; SessionError for one without the other."""
    if (anchor is None) != (authority is None):
        todo = "Name an authority and the file of its certificates, or neither."
        found = "--anchor alone" if authority is None else "--authority alone"
        raise SessionError("freeze", expected="--anchor with --authority", found=found, todo=todo)
    if authority is None:
        return None
    require_client()
    return read_given(authority, what="file of certificates")


def _show(made: FrozenProtocol) -> None:
    count, owed = made.frozen, len(made.unfrozen)
    show.line(f"{made.protocol}: {count} sources frozen, {owed} unfrozen, protocol digest {made.protocol_digest}")
    if made.anew:
        show.line(ANEW)
    for words in said(made.checks):
        show.line(words)
    show.line(made.timestamp)
    rows = [(one.domain, one.source_id, f"unfrozen: {one.reason}") for one in made.unfrozen]
    show.table(("domain", "source", "state"), rows)


def said(checks: FreezeChecks) -> Iterator[str]:
    """What was checked, a line each."""
    yield f"claims: {checks.claims_note or f'{checks.claims} permitted, each can hold and can fail'}"
    yield f"inputs: {checks.inputs} of {checks.inputs_of} here, by digest"
    yield f"model files: {checks.checkpoint_files} of {checks.checkpoint_files_of} here, by digest"
    for one in checks.checkpoint_owed:
        yield f"model files: the profile owes the digest of {one}"
    yield f"context: {checks.context_note or f'{checks.longest} of {checks.context} tokens at most'}"
