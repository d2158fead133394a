"""What this machine's environment is without loading a model or torch: enough to find a smoke record that may serve.

The gate compares the whole environment once the formal run has read its own back.
"""

import importlib.metadata
import platform
from dataclasses import dataclass
from pathlib import Path

from harness.model.cpu import cpu_instructions, cpu_name
from harness.model.identity import digests_of_a_run
from harness.protocols.load import LoadedProtocol
from harness.records.run import Environment
from harness.snapshots.environments import Machine, best_kernels

PACKAGES = ("torch", "transformers", "accelerate", "tokenizers", "safetensors", "numpy")


@dataclass(frozen=True, slots=True)
class Here:
    """A machine with a checkpoint."""

    machine: Machine
    checkpoint: dict[str, str]

    def agrees(self, environment: Environment) -> bool:
        """Whether a recorded environment can be this one."""
        return not self.machine.differences(environment) and environment.checkpoint == self.checkpoint


def here() -> Machine:
    """Read it now."""
    packages = {name: _version(name).split("+")[0] for name in PACKAGES}
    offered = cpu_instructions()
    return Machine(packages, platform.python_version(), cpu_name(), offered, best_kernels(offered))


def environment_here(loaded: LoadedProtocol, checkpoint: Path) -> Here:
    """The same, with the checkpoint's digests."""
    return Here(here(), digests_of_a_run(loaded.profile, checkpoint))


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
