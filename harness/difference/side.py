"""One side of a comparison, whatever it was read from: units in the form in which they are frozen, and what made them.

The frozen form (`harness.snapshots.content`) is what both kinds of side have; what a run alone has stands apart.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.canon import ids_sha256, text_sha256, unescaped
from harness.errors import CanonError, ComparisonError
from harness.places import Places, places_of_run
from harness.protocols.folders import protocol_ids
from harness.protocols.grids import UnitKey
from harness.protocols.load import LoadedProtocol, load_protocol
from harness.records.difference import Judged, SideKind
from harness.records.protocol import AnyProtocol, LoopTaskProtocol, TaskCrnProtocol
from harness.records.run import Deviation, Environment, PlacementFacts, PromptRow
from harness.records.tapes import RowTape

VERIFY = "`python -m harness verify RUN` says what else doesn't hold."
Identity = tuple[str, str]
Plain = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SideUnit:
    """A unit. `plain` as frozen; `verdicts` by condition, `tensors` as frozen beside it, where there are any.

    `accounts`: the cells of `plain` have what a ledger adds. Of a run alone: `rows` by condition, `drawn` (how it was
    drawn, field by field), `tapes` (each row's account by condition), `origin` and `call` (digests of the model load
    and of the one call that made it).
    """

    key: UnitKey
    plain: Plain
    verdicts: Mapping[str, Plain]
    tensors: Plain | None
    accounts: bool
    rows: Mapping[str, PromptRow] = field(default_factory=dict)
    drawn: Mapping[str, str] = field(default_factory=dict)
    tapes: Mapping[str, RowTape] = field(default_factory=dict)
    origin: str = ""
    call: str = ""

    @property
    def identity(self) -> Identity:
        """Source and replicate."""
        return self.key.source_id, self.key.replicate

    @property
    def cells(self) -> dict[str, Plain]:
        """The frozen form of each cell, by condition."""
        return {cell["condition"]: cell for cell in self.plain["cells"]}


@dataclass(frozen=True, slots=True)
class Registered:
    """What the trees at hand say of a side's protocol. `loaded` under the side's own digest, else None and `why`.

    `kind`: a protocol of that ID, whatever its digest: the records of a side are of its family.
    """

    kind: AnyProtocol
    loaded: LoadedProtocol | None
    why: str


@dataclass(frozen=True, slots=True)
class Side:
    """A run or frozen results. `planned`: the cells of its grid as (source, replicate, condition), None where unknown.

    `environment` and `placement` only where the side holds them; `checkpoint` by file, also from the profile's pins.
    `judging`: what judges outputs and makes none. `origins`: of frozen results, the accepted run's model loads.
    `judge`: who judged, by the audit record of the last session; None where the side has none.
    """

    kind: SideKind
    path: Path
    name: str
    protocol: str
    digest: str
    registered: Registered
    tier: str
    grid: str
    port: bool
    deviations: tuple[Deviation, ...]
    run_sha256: str
    environment_sha256: str
    environment: Environment | None
    placement: PlacementFacts | None
    checkpoint: Mapping[str, str] | None
    state: Judged
    units: Mapping[Identity, SideUnit]
    planned: frozenset[tuple[str, str, str]] | None
    judging: Mapping[str, str]
    origins: frozenset[str]
    judge: Mapping[str, str] | None

    @property
    def family(self) -> str:
        """The kind of its protocol; what executes the steps of tasks under tapes makes no other kind."""
        kind = self.registered.kind
        tagged = LoopTaskProtocol if isinstance(kind, TaskCrnProtocol) else type(kind)
        return str(tagged.__struct_config__.tag)

    @property
    def budget(self) -> int:
        """New tokens that a cell is cut at; 0 for a trace. One grid has one budget."""
        return int(max(unit.plain.get("max_new_tokens", 0) for unit in self.units.values()))


def registered(protocol_id: str, digest: str, path: Path, tree: Places) -> Registered:
    """The protocol under its digest, from the tree that the folder lies in or the one in use, whichever has it.

    ComparisonError where neither has a protocol of that name: then nothing says what the records are.
    """
    tree = places_of_run(path, tree)
    trees = [one for one in (_own_tree(path, protocol_id), tree) if one and protocol_id in protocol_ids(one)]
    if not trees:
        raise ComparisonError(
            f"{path}: protocol {protocol_id}",
            expected="a protocol of this tree or of the folder's own",
            found="no such folder",
            todo="Add the protocol's folder to fixtures/protocols, or name an author's own in HARNESS_PROTOCOLS.",
        )
    kinds, why = [], []
    for one in trees:
        loaded = load_protocol(protocol_id, one, digest)
        if loaded.digest == digest:
            return Registered(loaded.protocol, loaded, "")
        why.append(f"it has digest {loaded.digest[:16]} here")
        kinds.append(loaded.protocol)
    return Registered(kinds[0], None, why[0])


def _own_tree(path: Path, protocol_id: str) -> Places | None:
    """The nearest tree above a folder that has the protocol."""
    trees = (Places(parent) for parent in path.parents)
    return next((one for one in trees if (one.protocols / protocol_id / "protocol.toml").is_file()), None)


def planned_cells(loaded: LoadedProtocol, grid: str, domains: tuple[str, ...]) -> frozenset[tuple[str, str, str]]:
    """The cells of a grid over these domains."""
    names = [condition.id for condition in loaded.protocol.conditions]
    units = loaded.units(grid, domains)
    return frozenset((unit.source_id, unit.replicate, name) for unit in units for name in names)


def units_once(path: Path, units: list[SideUnit]) -> dict[Identity, SideUnit]:
    """Units by identity. ComparisonError for a unit or condition that is there twice, for a cell whose IDs aren't what
    its digest says, and for units of several budgets.
    """
    found: dict[Identity, SideUnit] = {}
    for unit in units:
        names = [cell["condition"] for cell in unit.plain["cells"]]
        if unit.identity in found or len(set(names)) != len(names):
            where = f"{path}: unit {unit.key.name}"
            raise ComparisonError(where, expected="each unit and condition once", found="one twice", todo=VERIFY)
        for cell in unit.plain["cells"]:
            _require_ids(f"{path}: {unit.key.name} {cell['condition']}", cell)
        found[unit.identity] = unit
    budgets = {unit.plain.get("max_new_tokens", 0) for unit in units}
    if len(budgets) != 1:
        raise ComparisonError(f"{path}: max_new_tokens", expected="one budget", found=str(sorted(budgets)), todo=VERIFY)
    return found


def _require_ids(where: str, cell: Plain) -> None:
    """Digests and length of a generated cell follow from its IDs and its text, also in a frozen file."""
    if "generated_ids" not in cell:
        return
    made = (ids_sha256(cell["generated_ids"]), len(cell["generated_ids"]))
    said = (cell["generated_sha256"], cell["length"])
    if made != said:
        raise ComparisonError(f"{where}: generated IDs", expected=str(made), found=str(said), todo=VERIFY)
    if "text_escaped" in cell and (text := _text_sha256(cell["text_escaped"])) != cell["text_sha256"]:
        raise ComparisonError(f"{where}: text_sha256", expected=text, found=str(cell["text_sha256"]), todo=VERIFY)


def _text_sha256(escaped: object) -> str:
    try:
        return text_sha256(unescaped(str(escaped)))
    except (UnicodeError, CanonError) as error:
        return f"an escaped text, {error}"


def require_planned(path: Path, units: Mapping[Identity, SideUnit], planned: frozenset[tuple[str, str, str]]) -> None:
    """ComparisonError for a cell that the side's own grid doesn't have."""
    here = {(*identity, name) for identity, unit in units.items() for name in unit.cells}
    if here - planned:
        first = " ".join(min(here - planned))
        raise ComparisonError(str(path), expected="cells of its own grid", found=f"a stranger, {first}", todo=VERIFY)
