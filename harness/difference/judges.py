"""Who judged two sides, as their audit records have it: bytes of the gates and the harness, plug-ins of pytest.

A session has its plug-ins where it judges and where it generates. What one does no record holds, only its name.
"""

from collections.abc import Iterator, Mapping

from harness.difference.leaves import ABSENT
from harness.difference.side import Side
from harness.records.difference import JudgedBy, JudgedField

# Fields of an audit record's `judge`. Commit, words of the call and folders differ between any two sessions.
DIGESTS = ("gates_sha256", "library_sha256")
LISTS = ("named_plugins", "named_by_environment", "plugins")
NONE = "none"
SHOWN = 16


def judged_by(a: Side, b: Side) -> JudgedBy:
    """Same, different by field, or unknown where a side has no audit record."""
    if a.judge is None or b.judge is None:
        lacking = [f"{name} {_why(side)}" for name, side in (("A", a), ("B", b)) if side.judge is None]
        return JudgedBy(state="unknown", held="", differing=(), why="; ".join(lacking))
    found = tuple(_differing(a.judge, b.judge))
    named = f"named plug-ins {a.judge.get(LISTS[0]) or NONE}"
    held = ", ".join([*(f"{name} {a.judge.get(name, ABSENT)[:SHOWN]}" for name in DIGESTS), named])
    return JudgedBy(state="differs" if found else "same", held="" if found else held, differing=found, why="")


def _why(side: Side) -> str:
    return "is frozen results, which hold the audit record's digest alone" if side.kind == "frozen" else "wasn't judged"


def _differing(one: Mapping[str, str], other: Mapping[str, str]) -> Iterator[JudgedField]:
    """Lists as sets, each side's own members; then digests."""
    for name in LISTS:
        left, right = (_members(side.get(name, ABSENT)) for side in (one, other))
        if left != right:
            yield JudgedField(field=name, a=_words(left - right), b=_words(right - left))
    for name in DIGESTS:
        if one.get(name) != other.get(name):
            yield JudgedField(field=name, a=one.get(name, ABSENT), b=other.get(name, ABSENT))


def _members(text: str) -> set[str]:
    return {one.strip() for one in text.split(",") if one.strip()}


def _words(members: set[str]) -> str:
    return ", ".join(sorted(members)) or NONE
