"""The order in which files of tests are given out names files that are there."""

from pathlib import Path
from types import SimpleNamespace

from pregate_support.order import LONGEST, longest_first

TESTS = Path(__file__).parents[1]


def test_every_named_file_is_there_once():
    """A file that was renamed would begin last again, unseen."""
    assert [name for name in LONGEST if not (TESTS / name).is_file()] == []
    assert len(set(LONGEST)) == len(LONGEST)


def test_named_files_begin_and_nothing_is_lost():
    """Within a file, and among files that aren't named, the order is that of collection."""
    paths = ["a/test_a.py", LONGEST[1], "b/test_b.py", LONGEST[0], LONGEST[1]]
    items = [SimpleNamespace(path=TESTS / path, at=at) for at, path in enumerate(paths)]
    assert [item.at for item in longest_first(items, TESTS)] == [3, 1, 4, 0, 2]
