"""Plain data as leaves, so that a difference is named by its field: nested names with dots, members by name."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

# How a member of a list is called, where it has a name of its own.
NAMES = ("id", "name", "source_id", "label", "replicate")
ABSENT = "absent"


def leaves(plain: Any) -> dict[str, str]:
    """Leaf path -> value in words. A list of numbers or words is one leaf; one of tables has a leaf a
    field, and one (`path[]`) for its members and their order.
    """
    return dict(_leaves(plain, ""))


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for name in value:
            yield from _leaves(value[name], f"{path}.{name}" if path else str(name))
    elif isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        names = _names(value)
        yield f"{path}[]", ", ".join(names)
        for name, one in zip(names, value, strict=True):
            yield from _leaves(one, f"{path}[{name}]")
    else:
        yield path, value if isinstance(value, str) else msgspec.json.encode(value).decode("utf-8")


def field_of(path: str) -> str:
    """The outermost field of a leaf's path."""
    return path.partition(".")[0].partition("[")[0]


def same(one: Any, other: Any) -> bool:
    """Whether two plain values are one JSON text: 1, 1.0 and true are three values."""
    left, right = (msgspec.json.encode(value, order="deterministic") for value in (one, other))
    return left == right


def _names(tables: list[dict[str, Any]]) -> list[str]:
    """A name for each table, all different: their own, else their places."""
    for name in NAMES:
        own = [str(one.get(name, "")) for one in tables]
        if all(own) and len(set(own)) == len(own):
            return own
    return [str(at) for at in range(len(tables))]


def differing(one: Mapping[str, str], other: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """(name, one, other) of every leaf that isn't the same, field by field, in the order of the first table."""
    names = dict.fromkeys((*one, *other))
    fields = {field: at for at, field in enumerate(dict.fromkeys(map(field_of, names)))}
    for name in sorted(names, key=lambda name: fields[field_of(name)]):
        if one.get(name) != other.get(name):
            yield name, one.get(name, ABSENT), other.get(name, ABSENT)
