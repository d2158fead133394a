"""What every check of a protocol says where something doesn't hold: a ProtocolError with place, expected and found."""

from collections.abc import Iterable

from harness.errors import ProtocolError

TODO = "Correct the file, or take the frozen one back from version control."


def require(
    condition: bool,  # noqa: FBT001 - it reads as a sentence
    where: str,
    *,
    expected: object,
    found: object,
) -> None:
    """Raise ProtocolError unless `condition` holds."""
    if not condition:
        raise ProtocolError(where, expected=str(expected), found=str(found), todo=TODO)


def known(where: str, name: str, names: Iterable[str]) -> None:
    """Raise ProtocolError unless `name` is one of `names`."""
    require(name in set(names), where, expected=f"one of {sorted(names)}", found=name)
