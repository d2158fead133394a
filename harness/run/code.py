"""The code that a process runs, as one digest: of who judged, and of a run's workers, who must have the same."""

from functools import cache
from pathlib import Path

import harness
from harness.canon import digest
from harness.files import file_sha256


@cache
def code_sha256() -> str:
    """SHA-256 over names and SHA-256 of the package's source files, as they lie where this process imports it from."""
    package = Path(harness.__file__).parent
    sources = sorted(package.rglob("*.py"))
    return digest({path.relative_to(package).as_posix(): file_sha256(path, what="source file") for path in sources})
