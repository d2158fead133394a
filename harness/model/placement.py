"""Where the parameters really are, read from the loaded model (R04 1: device map, bytes by device, offload facts).

An offloaded module is one whose parameters are on the meta device between forwards: accelerate's hook brings them to
the execution device for each forward, so the record never says that an offloaded layer computes where it is kept.
"""

import re
from typing import Any

import psutil
import torch

from harness.records.profile import Profile
from harness.records.run import PlacementFacts

_LAYER = re.compile(r"^model\.layers\.(\d+)$")


def placement_facts(model: Any, placement_id: str, profile: Profile, device: torch.device) -> PlacementFacts:
    """Read back the device map, parameter bytes (by device, `offloaded:<device>` apart) and the offloaded modules."""
    raw = getattr(model, "hf_device_map", None)
    device_map = {str(name): _device_name(where) for name, where in raw.items()} if raw else {"": str(device)}
    sizes: dict[str, int] = {}
    away: set[str] = set()
    for name, parameter in model.named_parameters():
        owner = _owner(name, device_map)
        if parameter.device.type == "meta":
            away.add(owner)
            where = f"offloaded:{device_map[owner]}"
        else:
            where = str(parameter.device)
        sizes[where] = sizes.get(where, 0) + parameter.numel() * parameter.element_size()
    layers = sorted(int(match[1]) for name in away if (match := _LAYER.match(name)))
    return PlacementFacts(
        id=placement_id,
        dispatched=raw is not None and len(set(device_map.values())) > 1,
        device_map=dict(sorted(device_map.items())),
        parameter_bytes=dict(sorted(sizes.items())),
        offloaded=tuple(sorted(away)),
        offloaded_moe_layers=tuple(layer for layer in layers if layer >= profile.shape.dense_layers),
    )


def memory_observation() -> dict[str, int]:
    """Peak CUDA bytes by device, and this process's resident bytes now. An observation, never evidence."""
    peaks = {f"cuda:{index}": torch.cuda.max_memory_allocated(index) for index in range(torch.cuda.device_count())}
    return {**peaks, "rss": psutil.Process().memory_info().rss}


def _device_name(where: object) -> str:
    return f"cuda:{where}" if isinstance(where, int) else str(where)


def _owner(parameter: str, device_map: dict[str, str]) -> str:
    owners = [name for name in device_map if name in ("", parameter) or parameter.startswith(f"{name}.")]
    return max(owners, key=len)
