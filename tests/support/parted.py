"""Runs that really part: made in this process over a small tree, with weights in which a last bit decides a token.

Two tokens tie where the output row of one is that of the other plus a vector that is orthogonal to the mean of two
hidden states and not to their difference: the smallest difference between two ways of computing decides which is
larger.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from safetensors.torch import load_file, save_file

from harness.decode.forced import step_logits
from harness.journal.folder import RunFolder
from harness.model.load import LoadedModel, load_model
from harness.places import Places
from harness.protocols.load import load_protocol
from harness.rerun.child import forced_of
from harness.rerun.trial import Forward, Load, execution_of
from harness.run.produce import produce
from harness.run.request import Options, make_request

SPARE = 1999  # an ID that no prompt and no answer of these sources has
GAP = 1e-3  # between the two tied logits, up or down
WEIGHTS, HEAD = "model.safetensors", "lm_head.weight"


def make_run(tree: Path, protocol: str, run_id: str, *, checkpoint: Path | None = None, **execution: Any) -> Path:
    """A port's smoke run, not judged. HARNESS_ROOT must name the tree. `execution`: settings other than registered."""
    loaded = load_protocol(protocol, Places(tree))
    options = Options(checkpoint=checkpoint, inputs=(), gpu_memory=None, cpu_memory=None, port=True)
    request = make_request(loaded, "smoke", run_id, options, Places(tree))
    request = msgspec.structs.replace(request, execution=msgspec.structs.replace(request.execution, **execution))
    folder = RunFolder(tree / "reports" / protocol / run_id)
    folder.create()
    produce(loaded, request, folder)
    return folder.path


def hidden_of(load: Load, forwards: Sequence[Forward]) -> list[np.ndarray]:
    """The row's last hidden state of each forward, float64 [size], as the output layer gets it."""
    model = load_model(load.profile, execution_of(load), load.placement, Path(load.checkpoint))
    try:
        return [_hidden(model, load, one) for one in forwards]
    finally:
        model.close()


def _hidden(model: LoadedModel, load: Load, forward: Forward) -> np.ndarray:
    seen: list[torch.Tensor] = []
    handle = model.model.lm_head.register_forward_pre_hook(lambda _module, inputs: seen.append(inputs[0]))
    try:
        ids = load.profile.special_ids
        forced = forced_of(forward, ids.pad)
        step_logits(model, forced, program=forward.program, contract=forward.contract, ids=ids)
    finally:
        handle.remove()
    return seen[-1][forward.row, -1].double().numpy()


def tied(checkpoint: Path, target: Path, *, token: int, one: np.ndarray, other: np.ndarray) -> Path:
    """A copy of the checkpoint in which SPARE's logit is above the token's at `one`, and below it at `other`."""
    shutil.copytree(checkpoint, target)
    weights = load_file(target / WEIGHTS)
    head = weights[HEAD].float()
    mean, apart = (one + other) / 2, one - other
    apart -= mean * (apart @ mean) / (mean @ mean)
    added = apart * (GAP / (apart @ (one - other)) * 2)
    head[SPARE] = torch.from_numpy(head[token].double().numpy() + added).float()
    save_file(weights | {HEAD: head}, target / WEIGHTS, metadata={"format": "pt"})
    return target


def scaled(checkpoint: Path, target: Path, *, name: str, factor: float) -> Path:
    """A copy of the checkpoint in which one tensor is multiplied."""
    shutil.copytree(checkpoint, target)
    weights = load_file(target / WEIGHTS)
    save_file(weights | {name: weights[name] * factor}, target / WEIGHTS, metadata={"format": "pt"})
    return target
