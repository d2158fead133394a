"""What this machine's environment is without loading a model or torch: enough to find a smoke record that may serve.

The gate compares the whole environment once the formal run has read its own back.
"""

import importlib.metadata
import platform
from dataclasses import dataclass
from pathlib import Path

from harness.model.cpu import cpu_name
from harness.model.identity import checkpoint_digests
from harness.protocols.load import LoadedProtocol
from harness.records.run import Environment

PACKAGES = ("torch", "transformers", "accelerate", "tokenizers", "safetensors", "numpy")


@dataclass(frozen=True, slots=True)
class Here:
    """Package versions (torch's without its build label), interpreter, CPU and checkpoint."""

    packages: dict[str, str]
    python: str
    cpu: str
    checkpoint: dict[str, str]

    def agrees(self, environment: Environment) -> bool:
        """Whether a recorded environment can be this one."""
        recorded = {name: version.split("+")[0] for name, version in environment.packages.items()}
        return (recorded, environment.python, environment.cpu, environment.checkpoint) == (
            self.packages,
            self.python,
            self.cpu,
            self.checkpoint,
        )


def environment_here(loaded: LoadedProtocol, checkpoint: Path) -> Here:
    """Read it now."""
    return Here(
        packages={name: _version(name).split("+")[0] for name in PACKAGES},
        python=platform.python_version(),
        cpu=cpu_name(),
        checkpoint=checkpoint_digests(loaded.profile, checkpoint),
    )


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
