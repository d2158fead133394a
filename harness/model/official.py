"""What a model's publisher recommends for sampling, as its generation config says. No torch here."""

import math
from dataclasses import dataclass
from pathlib import Path

from harness.errors import ModelError
from harness.model.json_file import json_object

GENERATION_CONFIG = "generation_config.json"
TODO = "Take the model's file again."


@dataclass(frozen=True, slots=True)
class Official:
    """What a model's own config says of sampling; the library's neutral 1.0 where it says nothing."""

    temperature: float
    top_p: float


def official_sampling(checkpoint: Path) -> Official:
    """Temperature and top-p of generation_config.json; ModelError where they aren't finite numbers."""
    path = checkpoint / GENERATION_CONFIG
    said = json_object(path, todo=TODO) if path.is_file() else {}
    values = {name: 1.0 if said.get(name) is None else said[name] for name in ("temperature", "top_p")}
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ModelError(f"{path}: {name}", expected="a finite number", found=str(value), todo=TODO)
    return Official(float(values["temperature"]), float(values["top_p"]))
