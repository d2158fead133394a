"""The environment fingerprint, read back from the loaded model and libraries (rule: observations, not intentions)."""

import importlib.metadata
import json
import platform
from typing import Any

import torch

from harness.errors import ModelError
from harness.model.cpu import cpu_instructions, cpu_name
from harness.model.here import PACKAGES
from harness.model.load import LoadedModel
from harness.model.process import steering
from harness.records.protocol import Software
from harness.records.run import Deviation, Environment
from harness.snapshots.environments import INSTRUCTIONS, VARIABLE


def package_versions() -> dict[str, str]:
    """Versions of what can change a token; torch with its local build label."""
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    versions["torch"] = str(torch.__version__)
    return versions


def software_deviations(software: Software, *, port: bool) -> tuple[Deviation, ...]:
    """Pins that don't match: a ModelError, or a port's deviations."""
    versions = package_versions()
    found = []
    for name, pinned in software.packages.items():
        if versions.get(name) == pinned:
            continue
        if not port:
            raise ModelError(
                f"software {name}",
                expected=pinned,
                found=versions.get(name, "not installed"),
                todo="Install the pinned version, or run the protocol's shape under --port.",
            )
        found.append(Deviation(field=f"software.{name}", registered=pinned, actual=versions.get(name, "not installed")))
    return tuple(found)


def read_environment(loaded: LoadedModel, effective: dict[str, Any], checkpoint: dict[str, str]) -> Environment:
    """What must match between compared runs. `effective` is the generation config as the model holds it."""
    model = loaded.model
    return Environment(
        packages=package_versions(),
        python=platform.python_version(),
        machine=platform.machine(),
        cpu=cpu_name(),
        cpu_capability=torch.backends.cpu.get_cpu_capability(),
        gpus=tuple(torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())),
        cuda=torch.version.cuda or "none",
        dtype=str(model.dtype).removeprefix("torch."),
        attention=str(model.config._attn_implementation),
        experts=_experts(loaded),
        threads=torch.get_num_threads(),
        interop_threads=torch.get_num_interop_threads(),
        deterministic_algorithms=torch.are_deterministic_algorithms_enabled(),
        float32_matmul_precision=torch.get_float32_matmul_precision(),
        kernels=_kernels(),
        generation_config={name: json.dumps(value) for name, value in sorted(effective.items())},
        checkpoint=checkpoint,
    )


def _experts(loaded: LoadedModel) -> str:
    """Which implementation computes the experts; `none` where no module of the model has any."""
    # transformers names an implementation in the config of a dense model too.
    if not any(name.rsplit(".", maxsplit=1)[-1] == "experts" for name, _ in loaded.model.named_modules()):
        return "none"
    return str(getattr(loaded.model.config, "_experts_implementation", None) or loaded.execution.experts)


def _kernels() -> dict[str, str]:
    return {f"{VARIABLE}{name}": value for name, value in steering().items()} | {
        INSTRUCTIONS: cpu_instructions(),
        "mkldnn": str(torch.backends.mkldnn.is_available()),  # type: ignore[no-untyped-call]
        "mkl": str(torch.backends.mkl.is_available()),  # type: ignore[no-untyped-call]
        "tf32_matmul": str(torch.backends.cuda.matmul.allow_tf32),
        "cudnn": str(torch.backends.cudnn.version()),  # type: ignore[no-untyped-call]
    }
