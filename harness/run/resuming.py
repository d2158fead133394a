"""Whether a run folder that has journals may be gone on with: it is this session's run, and its protocol resumes."""

from harness.errors import JournalError, SessionError
from harness.journal.assemble import read_spec
from harness.journal.folder import RunFolder, journals
from harness.protocols.load import LoadedProtocol
from harness.run.request import Request


def require_resumable(loaded: LoadedProtocol, folder: RunFolder, request: Request) -> None:
    """A folder with journals is this request's run; an incomplete one is resumed only where the protocol allows it."""
    begun = list(journals(folder))
    if not begun:
        return
    spec = read_spec(folder)
    pairs = (
        ("protocol_digest", loaded.digest, spec.protocol_digest),
        ("tier", request.tier, spec.tier),
        ("placement", request.placement.id, spec.placement),
        ("port", str(request.port), str(spec.port)),
        ("domains", str(request.domains), str(spec.domains)),
    )
    for name, expected, found in pairs:
        if expected != found:
            raise JournalError(
                f"{folder.path}: {name}",
                expected=expected,
                found=found,
                todo="Judge this run with its own options, or start a new one.",
            )
    units = loaded.units(request.grid, request.domains)
    if len(begun) < len(units) and not loaded.protocol.resume:
        raise SessionError(
            str(folder.path),
            expected=f"all {len(units)} units or none",
            found=f"{len(begun)} units of a run that ended",
            todo="This protocol doesn't resume: the journals stay as evidence; start the whole run again.",
        )
