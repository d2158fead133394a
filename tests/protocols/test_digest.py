from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from harness.places import places
from harness.protocols.load import LoadedProtocol, load_protocol, protocol_digest
from harness.records.base import Record

PROTOCOL = "deepseek-behavior"


def changes(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every way to change one leaf of a record: (path with list positions and keys as *, changed copy)."""
    match value:
        case Record():
            for name in value.__struct_fields__:
                for where, other in changes(getattr(value, name), f"{path}.{name}"):
                    yield where, msgspec.structs.replace(value, **{name: other})
        case dict():
            yield f"{path}:more", {**value, "more": "~"}
            for key, one in value.items():
                yield from ((where, {**value, key: other}) for where, other in changes(one, f"{path}.*"))
        case tuple():
            yield f"{path}:more", (*value, "~")
            for at, one in enumerate(value):
                kind = f"{path}[{type(one).__name__}]"
                yield from ((where, (*value[:at], other, *value[at + 1 :])) for where, other in changes(one, kind))
        case bool():
            yield path, not value
        case int() | float():
            yield path, value + 1
        case _:
            yield path, f"{value}~"


def table() -> dict[str, tuple[str, Any]]:
    """One change for each field of the three records, by path."""
    loaded = load_protocol(PROTOCOL, places())
    rows: dict[str, tuple[str, Any]] = {}
    for part in ("protocol", "manifest", "profile"):
        for path, other in changes(getattr(loaded, part), part):
            rows.setdefault(path, (part, other))
    return rows


TABLE = table()


def test_the_table_holds_every_field_of_the_top_records(loaded: LoadedProtocol):
    """A field that is added later is in the table too."""
    tops = {
        f"{part}.{name}"
        for part in ("protocol", "manifest", "profile")
        for name in getattr(loaded, part).__struct_fields__
    }
    assert not [top for top in tops if not any(path.startswith(top) for path in TABLE)]


@pytest.mark.parametrize("path", TABLE)
def test_one_changed_field_changes_the_protocol_digest(path: str, loaded: LoadedProtocol):
    """Protocol, manifest and profile are in the digest whole: no field can change without it."""
    part, other = TABLE[path]
    records = {"protocol": loaded.protocol, "manifest": loaded.manifest, "profile": loaded.profile, part: other}
    assert protocol_digest(**records) != loaded.digest


def test_the_same_records_give_the_same_digest(loaded: LoadedProtocol):
    """The digest is a function of the records alone."""
    assert protocol_digest(loaded.protocol, loaded.manifest, loaded.profile) == loaded.digest
