"""The small sampling protocol `mini-sampling`: `nano-cross-source-sampling` over mini.py's two sources, with two seeds.

Its baseline is an accepted run of `mini-behavior`, which has the same prompts. Smoke and its replays are cut so early
that most cells are cut; the formal budget lets nano's programs end.
"""

import tomllib
from pathlib import Path
from typing import Any

import msgspec

from harness.places import Places
from harness.protocols.seeds import seed_contract
from harness.snapshots.store import accept

from .mini import BUDGET, PROJECT, _mini, _write, accepted_baseline, copy_tree

SAMPLING = "mini-sampling"
REGISTERED_ID = "pregate-mini-sampling-v1"
REPLICATES = ("R0", "R1")
TOKENS = {"smoke": 8, "smoke_again": 8, "formal": BUDGET, "replay": BUDGET}


def make_sampling_tree(behavior_run: Path, target: Path, **changes: Any) -> Path:
    """A copy of a behaviour run's tree in which that run is accepted and the baseline of the frozen `mini-sampling`.

    `changes` replace top-level fields of its protocol.toml.
    """
    tree = behavior_run.parents[2]
    accept(copy_tree(tree, target) / behavior_run.relative_to(tree), Places(target))
    add_sampling(target, **changes)
    return target


def add_sampling(root: Path, protocol_id: str = SAMPLING, **changes: Any) -> None:
    """Write and freeze another small sampling protocol in a tree in which `mini-behavior` was accepted."""
    path = PROJECT / "fixtures/protocols/nano-cross-source-sampling/protocol.toml"
    nano = tomllib.loads(path.read_text(encoding="utf-8"))
    contract = seed_contract(REGISTERED_ID, len(REPLICATES), origin="ours")
    seeds = msgspec.json.decode(msgspec.json.encode(contract))
    content = _mini(
        path,
        root,
        TOKENS,
        {
            "registered_id": REGISTERED_ID,
            "baseline": accepted_baseline(root),
            "decode": nano["decode"] | {"seeds": seeds},
            "grids": {
                name: grid | {"replicates": [one for one in grid["replicates"] if one in REPLICATES]}
                for name, grid in nano["grids"].items()
            },
        },
    )
    _write(root, content | {"id": protocol_id} | changes)
