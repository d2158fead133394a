"""The mini protocol's passed formal run: read only, or a copy with its tree to damage and to freeze in."""

from pathlib import Path

import pytest

from harness.evidence import RunEvidence
from harness.journal.folder import RunFolder
from harness.places import Places
from harness.protocols.load import LoadedProtocol, load_protocol


@pytest.fixture(scope="session")
def loaded(formal_run) -> LoadedProtocol:
    """The mini protocol of the run's tree."""
    return load_protocol(formal_run.parent.name, Places(formal_run.parents[2]))


@pytest.fixture(scope="session")
def evidence(formal_run, loaded) -> RunEvidence:
    """The run's evidence. Read only."""
    return RunEvidence(loaded, RunFolder(formal_run))


@pytest.fixture
def tree(fresh_run) -> Places:
    """The tree of the copied run."""
    return Places(fresh_run.parents[2])


@pytest.fixture
def run(fresh_run) -> Path:
    """The copied run's folder."""
    return fresh_run
