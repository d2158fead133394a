"""A small completion protocol with a ladder of two placements, and runs of it without a session.

`mini-completion` is nano-completion with two domains, one source each in the smoke grid and two in the formal one.
"""

import tomllib
from pathlib import Path
from typing import Any

from harness.canon import sha256_hex
from harness.cli.freeze import freeze_protocol
from harness.errors import ProtocolError
from harness.journal.assemble import read_spec
from harness.journal.folder import RunFolder, write_record
from harness.ledgers.close import close_generation
from harness.places import Places
from harness.protocols.grids import gate_rows, unit_keys
from harness.protocols.load import LoadedProtocol, load_protocol, read_profile
from harness.records.audit import SmokeReference
from harness.records.base import convert
from harness.records.protocol import CompletionProtocol
from harness.records.run import Baseline, BaselineCell

from .mini import DOMAINS, PROJECT, _toml

LADDER = "mini-completion"
TOKENS = 12
PER_DOMAIN = {"smoke": 1, "formal": 2, "independent": 1}


def add_ladder(tree: Path) -> LoadedProtocol:
    """Write and freeze `mini-completion` in a tree of `make_tree`."""
    folder = tree / "fixtures/protocols" / LADDER
    folder.mkdir(parents=True)
    content = _content(tree)
    (folder / "protocol.toml").write_text(_toml(content), encoding="utf-8")
    return freeze_protocol(LADDER, [], checkpoint=None, tree=Places(tree))


def _content(tree: Path) -> dict[str, Any]:
    path = PROJECT / "fixtures/protocols/nano-completion/protocol.toml"
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    content |= {"id": LADDER, "registered_id": "pregate-mini-completion-v1"}
    content["baseline"] = {"state": "unfrozen", "protocol": "mini-behavior", "reason": "a test's"}
    content["domains"] = [one for one in content["domains"] if one["name"] in DOMAINS]
    used = {one["input"] for one in content["domains"]}
    content["inputs"] = [one for one in content["inputs"] if one["name"] in used]
    for name, grid in content["grids"].items():
        grid |= {"per_domain": PER_DOMAIN[name], "max_new_tokens": TOKENS}
    tagged = {"kind": "completion"} | content
    protocol = convert(tagged, CompletionProtocol, where="mini", error=ProtocolError, todo="")
    profile = read_profile(tree / "fixtures/models/nano/profile.toml")
    sources = {(name, at): f"{name}-{at}" for name in DOMAINS for at in range(max(PER_DOMAIN.values()))}
    for gate, plain in zip(protocol.gates, content["gates"], strict=True):
        for at in plain["tiers"].values():
            at["count"] = len(gate_rows(protocol, profile, gate, unit_keys(protocol, sources, at["grid"], DOMAINS)))
    return tagged


def close_part(part: RunFolder) -> None:
    """What a session does with a part made apart, but with a baseline that its own cells agree with."""
    loaded = load_protocol(LADDER)
    keys = loaded.units(read_spec(part).grid, loaded.domains)
    cells = tuple(
        BaselineCell(
            source_id=key.source_id,
            replicate=key.replicate,
            condition=condition.id,
            prompt_sha256="0" * 64,
            generated_ids=(),
            eos=False,
            truncated=True,
            length=0,
        )
        for key in keys
        for condition in loaded.protocol.conditions
    )
    baseline = Baseline(
        schema=1,
        protocol="mini-behavior",
        protocol_digest="0" * 64,
        run_sha256="0" * 64,
        environment_sha256="0" * 64,
        port=False,
        max_new_tokens=TOKENS,
        cells=cells,
    )
    write_record(part.file("baseline.json"), baseline)
    write_record(part.file("tasks.json"), {})
    close_generation(part, loaded)


def note_smoke(folder: RunFolder, smoke: RunFolder) -> None:
    """smoke.json of a run that stands on a smoke run beside it."""
    sha256 = sha256_hex(smoke.file("run.json").read_bytes())
    folder.create()
    write_record(
        folder.file("smoke.json"),
        SmokeReference(run_id=smoke.path.name, audit_sha256="0" * 64, run_sha256=sha256),
    )
