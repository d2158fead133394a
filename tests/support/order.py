"""Which files of tests begin first where several workers share them: those that take longest, so that none ends alone.

A file goes to one worker as a whole, and xdist gives files out in the order in which they were collected.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

# Files of 20 s and more, longest first, by `--durations=0`. The first two share nothing.
LONGEST = (
    "cluster/test_ray.py",
    "controls/test_sampling_checks.py",
    "controls/test_depth_sessions.py",
    "plugin/test_runs.py",
    "run/test_kills.py",
    "verify/test_verify.py",
    "controls/test_sampling_faults.py",
    "controls/test_tapes_checks.py",
    "controls/test_depth_faults.py",
    "docs/test_tutorial.py",
    "ladder/test_descent.py",
    "authoring/test_sessions.py",
    "verify/test_attestation.py",
    "controls/test_depth_checks.py",
    "plugin/test_attempts.py",
    "plugin/test_completion_runs.py",
    "report/test_page.py",
    "explain/test_rerun.py",
    "plugin/test_books.py",
    "authoring/test_revised.py",
    "sandbox/test_humaneval.py",
    "controls/test_sessions.py",
    "controls/test_graph_checks.py",
    "report/test_browser.py",
    "report/test_attempts.py",
    "controls/test_completion_sessions.py",
    "plugin/test_devices.py",
    "authoring/test_programs.py",
    "decode/test_loop.py",
)


def longest_first(items: Iterable[Any], tests: Path) -> list[Any]:
    """The items, those of LONGEST before all others, each file's in their own order. `tests`: their folder."""
    rank = {tests / name: at for at, name in enumerate(LONGEST)}
    return sorted(items, key=lambda item: rank.get(item.path, len(rank)))
