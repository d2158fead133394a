"""The baseline of a completion run or a trace (R05 2, R05 depth): cells of an earlier run of another protocol.

From committed, frozen bytes that the protocol names by digest; under a port, from the judged run folder that the
session names. Knows nothing of the run that is held against it.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from harness.canon import sha256_hex
from harness.errors import ProtocolError, SnapshotError
from harness.files import read_bytes
from harness.journal.assemble import read_environment, read_run, read_spec
from harness.journal.folder import RunFolder
from harness.places import Places
from harness.protocols.grids import UnitKey
from harness.protocols.load import LoadedProtocol, load_protocol
from harness.records.base import Frozen as FrozenPin
from harness.records.base import convert
from harness.records.depth import TraceBaseline
from harness.records.kinds import AnyRun
from harness.records.protocol import BaselinedProtocol, DepthProtocol, FrozenBaseline, SamplingProtocol
from harness.records.run import Baseline, BaselineCell, CellRecord
from harness.snapshots.store import VERDICTS, Frozen, altered_files, read_audit, read_frozen

TODO = "Take the frozen files back from version control; another baseline is another protocol."


def frozen_baseline(loaded: LoadedProtocol, keys: Sequence[UnitKey], tree: Places) -> Baseline:
    """The registered baseline's cells of the units; ProtocolError where it is owed, SnapshotError where altered.

    A TraceBaseline where the protocol traces: with the checkpoint's pinned digests and the source texts'.
    """
    protocol, registered = _baselined(loaded), _registered(loaded)
    before = load_protocol(registered.protocol, tree, registered.protocol_digest)
    frozen = read_frozen(before.results, tree)
    index = sha256_hex(read_bytes(frozen.folder / "index.json", what="snapshot index"))
    pairs = (
        ("index_sha256", registered.index_sha256, index),
        ("protocol_digest", registered.protocol_digest, frozen.index.protocol_digest),
        ("run_sha256", registered.run_sha256, frozen.index.run_sha256),
    )
    for name, expected, found in pairs:
        if expected != found:
            raise SnapshotError(f"baseline of {protocol.id}: {name}", expected=expected, found=found, todo=TODO)
    contents = list(_snapshots(frozen))
    baseline = Baseline(
        schema=1,
        protocol=registered.protocol,
        protocol_digest=registered.protocol_digest,
        run_sha256=registered.run_sha256,
        environment_sha256=frozen.index.environment_sha256,
        port=False,
        max_new_tokens=_budget(before),
        cells=_of_units(loaded, before, keys, _snapshot_cells(contents)),
    )
    texts = {content["source_id"]: content["source_text_sha256"] for _, content in contents}
    pins = {file.name: file.digest.sha256 for file in before.profile.files if isinstance(file.digest, FrozenPin)}
    return _of_kind(protocol, baseline, checkpoint=pins, texts=texts)


def baseline_of_port(loaded: LoadedProtocol, keys: Sequence[UnitKey], folder: RunFolder, tree: Places) -> Baseline:
    """The cells of a passed, unaltered formal run of the baseline's protocol that is a port too.

    That its weights and environment are this run's is judged by a gate, once this run's own were read back.
    """
    protocol = _baselined(loaded)
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
    baseline = Baseline(
        schema=1,
        protocol=run.protocol,
        protocol_digest=run.protocol_digest,
        run_sha256=audit.run_sha256,
        environment_sha256=run.environment_sha256,
        port=read_spec(folder).port,
        max_new_tokens=before.protocol.grids[run.grid].max_new_tokens,
        cells=_of_units(loaded, before, keys, _run_cells(run)),
    )
    texts = {unit.source_id: unit.source_text_sha256 for unit in run.units}
    return _of_kind(protocol, baseline, checkpoint=read_environment(folder).checkpoint, texts=texts)


def _of_kind(
    protocol: BaselinedProtocol, baseline: Baseline, *, checkpoint: dict[str, str], texts: dict[str, str]
) -> Baseline:
    """The baseline as the protocol's kind records it; source texts of its own units alone."""
    if not isinstance(protocol, DepthProtocol):
        return baseline
    named = {cell.source_id for cell in baseline.cells}
    return TraceBaseline(
        **{name: getattr(baseline, name) for name in baseline.__struct_fields__},
        checkpoint=checkpoint,
        source_texts={name: text for name, text in texts.items() if name in named},
    )


def _baselined(loaded: LoadedProtocol) -> BaselinedProtocol:
    if not isinstance(loaded.protocol, BaselinedProtocol):
        raise RuntimeError(f"{loaded.protocol.id} registers no baseline")
    return loaded.protocol


def _registered(loaded: LoadedProtocol) -> FrozenBaseline:
    baseline = _baselined(loaded).baseline
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


def _snapshots(frozen: Frozen) -> Iterable[tuple[Path, dict[str, Any]]]:
    """Every unit's frozen content, with its file."""
    for unit in (name for name in frozen.index.units if not name.endswith(VERDICTS)):
        path = frozen.folder / f"{unit}.json"
        yield path, json.loads(read_bytes(path, what="snapshot"))


def _snapshot_cells(contents: Iterable[tuple[Path, dict[str, Any]]]) -> Iterable[BaselineCell]:
    names = ("prompt_sha256", "generated_ids", "condition", "eos", "truncated", "length")
    for path, content in contents:
        for cell in content.get("cells", []):
            plain = {name: cell.get(name) for name in names}
            identity = {name: content.get(name) for name in ("source_id", "replicate")}
            yield convert(identity | plain, BaselineCell, where=path, error=SnapshotError, todo=TODO)


def _run_cells(run: AnyRun) -> Iterable[BaselineCell]:
    for unit in run.units:
        for cell in (one for one in unit.cells if isinstance(one, CellRecord)):
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
    loaded: LoadedProtocol, before: LoadedProtocol, keys: Sequence[UnitKey], cells: Iterable[BaselineCell]
) -> tuple[BaselineCell, ...]:
    """The wanted cells in this run's order, each exactly once; SnapshotError where the baseline lacks one."""
    listed, protocol = tuple(cells), loaded.protocol
    found = {(cell.source_id, cell.replicate, cell.condition): cell for cell in listed}
    places = ((key.source_id, _replicate(loaded, before, key), one.id) for key in keys for one in protocol.conditions)
    wanted = list(dict.fromkeys(places))  # several seeds of a source are held against one greedy cell
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


def _replicate(loaded: LoadedProtocol, before: LoadedProtocol, key: UnitKey) -> str:
    """The baseline's replicate that a unit is held against: its own, or for traces and samples the only one."""
    if not isinstance(loaded.protocol, DepthProtocol | SamplingProtocol):
        return key.replicate
    replicates = before.protocol.grids[before.protocol.tier_grids["formal"]].replicates
    if len(replicates) != 1:
        raise ProtocolError(
            f"{loaded.protocol.id}: baseline {before.protocol.id}",
            expected="one replicate a source",
            found=", ".join(replicates),
            todo="Join the trace to a greedy run.",
        )
    return replicates[0]
