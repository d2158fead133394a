"""The small task protocol `mini-tasks`: `nano-task-crn` over mini.py's two domains, two tasks each, two tapes.

`mini-graph` is `nano-task-crn-graph` likewise: its steps are executed over a fixed cache. Neither has a baseline. Smoke
and what is made at its budget are cut so early that most cells are cut; the formal budget lets nano's programs end.
"""

import tomllib
from pathlib import Path
from typing import Any

from harness.tapes.tape import Tape

from .mini import BUDGET, PROJECT, _mini, _write

TASKS = "mini-tasks"
GRAPH = "mini-graph"
REGISTERED_ID = "pregate-mini-tasks-v1"
TAPES = ("T0", "T1")
TOKENS = {"smoke": 8, "smoke_again": 8, "formal": BUDGET, "replay": BUDGET}
BLOCKS = {
    "smoke": [{"role": "check", "indices": [0], "replicates": ["T0", "T1"]}],
    "smoke_again": [{"role": "check", "indices": [0], "replicates": ["T0"]}],
    "formal": [
        {"role": "primary", "indices": [0, 1], "replicates": ["T0"]},
        {"role": "diagnostic", "indices": [0], "replicates": ["T1"]},
    ],
    "replay": [{"role": "check", "indices": [0], "replicates": ["T0"]}],
}


def registered_tapes(registered_id: str) -> list[dict[str, Any]]:
    """The two tapes as a protocol.toml registers them."""
    tapes = (Tape(registered_id, label) for label in TAPES)
    return [{"label": one.label, "display_seed": one.display_seed, "sha256": one.sha256} for one in tapes]


def add_tasks(root: Path, protocol_id: str = TASKS, **changes: Any) -> None:
    """Write and freeze the small task protocol in a tree."""
    _write(root, _small(root, "nano-task-crn") | {"id": protocol_id} | changes)


def add_graph_tasks(root: Path, protocol_id: str = GRAPH, *, against: str = "own_loop") -> None:
    """The same executed over a fixed cache, held against that contract."""
    content = _small(root, "nano-task-crn-graph")
    content["decode"]["graph"]["against"] = against
    _write(root, content | {"id": protocol_id})


def _small(root: Path, name: str) -> dict[str, Any]:
    path = PROJECT / f"fixtures/protocols/{name}/protocol.toml"
    nano = tomllib.loads(path.read_text(encoding="utf-8"))
    register = nano["decode"]["register"] | {"tapes": registered_tapes(REGISTERED_ID)}
    used = {name: [one for block in blocks for one in block["replicates"]] for name, blocks in BLOCKS.items()}
    fields = {
        "registered_id": REGISTERED_ID,
        "decode": nano["decode"] | {"register": register},
        "grids": {name: grid | {"replicates": used[name]} for name, grid in nano["grids"].items()},
        "grid_blocks": BLOCKS,
    }
    return _mini(path, root, TOKENS, fields, ranks=2)
