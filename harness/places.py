"""Where the project's fixed folders are. HARNESS_ROOT names another tree (a copy under test)."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Places:
    """The top-level folders of one tree."""

    root: Path

    @property
    def protocols(self) -> Path:
        """fixtures/protocols/"""
        return self.root / "fixtures" / "protocols"

    @property
    def models(self) -> Path:
        """fixtures/models/"""
        return self.root / "fixtures" / "models"

    @property
    def embedded_inputs(self) -> Path:
        """fixtures/nano/pools/"""
        return self.root / "fixtures" / "nano" / "pools"

    @property
    def gates(self) -> Path:
        """gates/"""
        return self.root / "gates"

    @property
    def snapshots(self) -> Path:
        """snapshots/"""
        return self.root / "snapshots"

    @property
    def reports(self) -> Path:
        """reports/"""
        return self.root / "reports"


def places() -> Places:
    """The folders of the tree that is in use."""
    named = os.environ.get("HARNESS_ROOT")
    return Places(Path(named).resolve() if named else Path(__file__).resolve().parents[1])
