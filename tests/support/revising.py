"""A tree with one frozen protocol and the embedded model, in which protocols are amended; outputs that only say so."""

import json
import shutil
from pathlib import Path

from pregate_support.mini import PROJECT

from harness.canon import canonical_bytes
from harness.cli.freezing import Named, freeze_folder
from harness.places import Places
from harness.protocols.amend import revise, staged
from harness.protocols.load import LoadedProtocol, load_protocol

PROTOCOL = "nano-behavior"
AT_US = 1_800_000_000_000_000


def nano_tree(root: Path, *protocols: str) -> Places:
    """The frozen protocols (default: one), the profile; checkpoint and pools are links."""
    tree, own = Places(root), Places(PROJECT)
    for name in protocols or (PROTOCOL,):
        shutil.copytree(own.protocols / name, tree.protocols / name)
    model = tree.models / "nano"
    model.mkdir(parents=True)
    shutil.copy(own.models / "nano" / "profile.toml", model / "profile.toml")
    (model / "checkpoint").symlink_to(own.models / "nano" / "checkpoint")
    (root / "fixtures/nano").mkdir()
    (root / "fixtures/nano/pools").symlink_to(own.embedded_inputs)
    return tree


def propose(tree: Places, title: str, protocol: str = PROTOCOL) -> Path:
    """amendment/ with the protocol in force under another title."""
    folder = tree.protocols / protocol
    lines = (folder / "protocol.toml").read_text("utf-8").splitlines()
    changed = [f"title = {json.dumps(title)}" if line.startswith("title = ") else line for line in lines]
    target = folder / "amendment" / "protocol.toml"
    target.parent.mkdir(exist_ok=True)
    target.write_text("\n".join(changed) + "\n", "utf-8")
    return target


def amended(tree: Places, title: str, *, reason: str = "a clearer title", protocol: str = PROTOCOL) -> LoadedProtocol:
    """The protocol after one more revision, which changes its title."""
    propose(tree, title, protocol)
    return amend(tree, reason=reason, protocol=protocol)


def amend(tree: Places, *, reason: str = "a clearer title", protocol: str = PROTOCOL) -> LoadedProtocol:
    """The protocol with what lies in amendment/ in force."""
    named = Named(tree.protocols / protocol, tree)
    with staged(load_protocol(protocol, tree), tree) as staging:
        inputs = [tree.embedded_inputs]
        content, _ = freeze_folder(named, inputs, checkpoint=None, folder=staging.folder)
        revise(staging, content, reason=reason, at_us=AT_US)
    return load_protocol(protocol, tree)


def put_run(tree: Places, digest: str, name: str = "formal-1", protocol: str = PROTOCOL) -> Path:
    """A run folder that says nothing but its protocol digest."""
    return _put(tree.reports / protocol / name / "spec.json", {"protocol_digest": digest})


def put_attempt(tree: Places, digest: str, run_id: str = "formal-1", protocol: str = PROTOCOL) -> Path:
    """An attempts file with one line."""
    path = _put(tree.reports / protocol / "attempts.jsonl", {"protocol_digest": digest, "run_id": run_id})
    path.write_bytes(path.read_bytes() + b"\n")
    return path


def put_results(tree: Places, digest: str, results: str = PROTOCOL) -> Path:
    """Frozen results that say nothing but their protocol digest."""
    return _put(tree.snapshots / results / "formal" / "index.json", {"protocol_digest": digest})


def _put(path: Path, plain: dict[str, str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(canonical_bytes(plain))
    return path
