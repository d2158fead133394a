"""The working tree's state, for the observations: a dirty tree is recorded, not refused."""

import subprocess
from pathlib import Path

from harness.canon import sha256_hex


def working_tree(root: Path) -> dict[str, str]:
    """Commit, and SHA-256 of `git status` and `git diff` where the tree is dirty; or why there is neither."""
    commit = _git(root, "rev-parse", "HEAD")
    status = _git(root, "status", "--porcelain")
    if commit is None or status is None:
        return {"commit": "none: not a git checkout, or no git"}
    if not status:
        return {"commit": commit.decode().strip(), "state": "clean"}
    changed = status + (_git(root, "diff", "HEAD") or b"")
    return {"commit": commit.decode().strip(), "state": "dirty", "changes_sha256": sha256_hex(changed)}


def _git(root: Path, *arguments: str) -> bytes | None:
    try:
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None
