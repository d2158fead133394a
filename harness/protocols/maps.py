"""A placement's budgets, and a registered one beside a library's device map: one wording to refuse and to judge it."""

from collections.abc import Mapping

from harness.records.protocol import Placement


def gpu_budgets(text: str) -> tuple[str, ...]:
    """One budget a GPU, in their order: `29GiB` is one GPU's, `20GiB,20GiB` are two GPUs', `none` is none."""
    return () if text == "none" else tuple(one.strip() for one in text.split(","))


def map_difference(placement: Placement, device_map: Mapping[str, str]) -> tuple[str, str] | None:
    """(registered, found) where the map hasn't exactly the registered modules resident and offloaded; None: it has."""
    away = {name for name, device in device_map.items() if device == placement.offload_device}
    if placement.device_map == "single":
        whole = len(set(device_map.values())) == 1
        return None if whole else ("the whole model on one device", str(sorted(device_map)))
    stay = set(device_map) - away
    if (away, stay) == (set(placement.offloaded), set(placement.resident)):
        return None
    registered = f"offloaded {sorted(placement.offloaded)}, resident {sorted(placement.resident)}"
    return registered, f"offloaded {sorted(away)}, resident {sorted(stay)}"


def map_field(placement_id: str) -> str:
    """The field of a port's deviation for a registered placement whose map is another here."""
    return f"placement.{placement_id}"
