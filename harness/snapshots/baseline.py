"""The baseline of a completion run (R05 2): the cells of an earlier run of another protocol, by identity.

From committed, frozen bytes that the protocol names by digest; under a port, from the judged run folder that the
session names. Knows nothing of the run that is held against it.
"""

import json
from collections.abc import Iterable, Sequence

from harness.canon import sha256_hex
from harness.errors import ProtocolError, SnapshotError
from harness.files import read_bytes
from harness.journal.assemble import read_run, read_spec
from harness.journal.folder import RunFolder
from harness.places import Places
from harness.protocols.grids import UnitKey
from harness.protocols.load import LoadedProtocol, load_protocol
from harness.records.base import convert
from harness.records.protocol import CompletionProtocol, FrozenBaseline
from harness.records.run import Baseline, BaselineCell, Run
from harness.snapshots.store import VERDICTS, Frozen, altered_files, read_audit, read_frozen

TODO = "Take the frozen files back from version control; another baseline is another protocol."


def frozen_baseline(loaded: LoadedProtocol, keys: Sequence[UnitKey], tree: Places) -> Baseline:
    """The registered baseline's cells of the units; ProtocolError where it is owed, SnapshotError where altered."""
    protocol, registered = _completion(loaded), _registered(loaded)
    frozen = read_frozen(registered.protocol, tree)
    index = sha256_hex(read_bytes(frozen.folder / "index.json", what="snapshot index"))
    pairs = (
        ("index_sha256", registered.index_sha256, index),
        ("protocol_digest", registered.protocol_digest, frozen.index.protocol_digest),
        ("run_sha256", registered.run_sha256, frozen.index.run_sha256),
    )
    for name, expected, found in pairs:
        if expected != found:
            raise SnapshotError(f"baseline of {protocol.id}: {name}", expected=expected, found=found, todo=TODO)
    return Baseline(
        schema=1,
        protocol=registered.protocol,
        protocol_digest=registered.protocol_digest,
        run_sha256=registered.run_sha256,
        environment_sha256=frozen.index.environment_sha256,
        port=False,
        max_new_tokens=_budget(load_protocol(registered.protocol, tree)),
        cells=_of_units(protocol, keys, _snapshot_cells(frozen)),
    )


def baseline_of_port(loaded: LoadedProtocol, keys: Sequence[UnitKey], folder: RunFolder, tree: Places) -> Baseline:
    """The cells of a passed, unaltered formal run of the baseline's protocol that is a port too.

    That its weights and environment are this run's is judged by a gate, once this run's own were read back.
    """
    protocol = _completion(loaded)
    before = load_protocol(protocol.baseline.protocol, tree)
    audit = read_audit(folder)
    pairs: tuple[tuple[str, object, object], ...] = (
        ("protocol", before.protocol.id, audit.protocol),
        ("protocol digest", before.digest, audit.protocol_digest),
        ("tier", "formal", audit.tier),
        ("port", True, audit.port),
        ("passed", True, audit.passed),
        ("run.json", audit.run_sha256, audit.files.get("run.json", "none")),
        ("files altered after the audit", [], altered_files(folder, audit)),
    )
    for name, expected, found in pairs:
        if expected != found:
            raise SnapshotError(
                f"--baseline {folder.path}: {name}",
                expected=str(expected),
                found=str(found),
                todo=f"Name a passed formal port of {before.protocol.id} of the same weights and environment.",
            )
    run = read_run(folder, before.protocol)
    return Baseline(
        schema=1,
        protocol=run.protocol,
        protocol_digest=run.protocol_digest,
        run_sha256=audit.run_sha256,
        environment_sha256=run.environment_sha256,
        port=read_spec(folder).port,
        max_new_tokens=before.protocol.grids[run.grid].max_new_tokens,
        cells=_of_units(protocol, keys, _run_cells(run)),
    )


def _completion(loaded: LoadedProtocol) -> CompletionProtocol:
    if not isinstance(loaded.protocol, CompletionProtocol):
        raise RuntimeError(f"{loaded.protocol.id} registers no baseline")
    return loaded.protocol


def _registered(loaded: LoadedProtocol) -> FrozenBaseline:
    baseline = _completion(loaded).baseline
    if isinstance(baseline, FrozenBaseline):
        return baseline
    raise ProtocolError(
        f"{loaded.protocol.id}: baseline",
        expected=f"an accepted run of {baseline.protocol}",
        found=f"unfrozen ({baseline.reason})",
        todo="Run the protocol's shape under --port and name that port's own baseline with --baseline RUN.",
    )


def _budget(before: LoadedProtocol) -> int:
    return before.protocol.grids[before.protocol.tier_grids["formal"]].max_new_tokens


def _snapshot_cells(frozen: Frozen) -> Iterable[BaselineCell]:
    names = ("prompt_sha256", "generated_ids", "condition", "eos", "truncated", "length")
    for unit in (name for name in frozen.index.units if not name.endswith(VERDICTS)):
        path = frozen.folder / f"{unit}.json"
        content = json.loads(read_bytes(path, what="snapshot"))
        for cell in content.get("cells", []):
            plain = {name: cell.get(name) for name in names}
            identity = {name: content.get(name) for name in ("source_id", "replicate")}
            yield convert(identity | plain, BaselineCell, where=path, error=SnapshotError, todo=TODO)


def _run_cells(run: Run) -> Iterable[BaselineCell]:
    for unit in run.units:
        for cell in unit.cells:
            yield BaselineCell(
                source_id=unit.source_id,
                replicate=unit.replicate,
                condition=cell.condition,
                prompt_sha256=cell.prompt_sha256,
                generated_ids=cell.generated_ids,
                eos=cell.eos,
                truncated=cell.truncated,
                length=cell.length,
            )


def _of_units(
    protocol: CompletionProtocol, keys: Sequence[UnitKey], cells: Iterable[BaselineCell]
) -> tuple[BaselineCell, ...]:
    """The wanted cells in this run's order, each exactly once; SnapshotError where the baseline lacks one."""
    listed = tuple(cells)
    found = {(cell.source_id, cell.replicate, cell.condition): cell for cell in listed}
    wanted = [(key.source_id, key.replicate, one.id) for key in keys for one in protocol.conditions]
    lacking = [identity for identity in wanted if identity not in found]
    if lacking:
        raise SnapshotError(
            f"baseline of {protocol.id}",
            expected=f"{len(wanted)} cells",
            found=f"{len(wanted) - len(lacking)}; missing {lacking[:3]}",
            todo="Name a baseline over the same sources and conditions.",
        )
    if len(found) != len(listed):
        where = f"baseline of {protocol.id}"
        raise SnapshotError(where, expected="each cell once", found=f"{len(listed) - len(found)} doubled", todo=TODO)
    return tuple(found[identity] for identity in wanted)
