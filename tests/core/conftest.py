"""An instance of every record type, built from its annotations alone, and every single-field change of it."""

import dataclasses
import importlib
import pkgutil
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import msgspec
import pytest
from msgspec import inspect as types

import harness.records
from harness.records.base import Frozen, Record, Unfrozen


def record_types() -> tuple[type[Record], ...]:
    """Every record class in harness/records, by name; the base alone holds nothing."""
    found: set[type[Record]] = {Frozen, Unfrozen}
    for module in pkgutil.iter_modules(harness.records.__path__):
        loaded = importlib.import_module(f"harness.records.{module.name}")
        found |= {one for one in vars(loaded).values() if isinstance(one, type) and issubclass(one, Record)}
    return tuple(sorted(found - {Record}, key=name_of))


def name_of(kind: type[Record]) -> str:
    """Module and class: two modules may each have a record of one name."""
    return f"{kind.__module__.rpartition('.')[2]}.{kind.__qualname__}"


def example(kind: types.Type) -> Any:  # noqa: C901, PLR0911 - a line a kind of type
    """A plain value of a type; unions give their first member."""
    match kind:
        case types.StructType():
            return plain_record(kind)
        case types.UnionType():
            return example(kind.types[0])
        case types.LiteralType():
            return kind.values[0]
        case types.VarTupleType():
            return [example(kind.item_type)]
        case types.TupleType():
            return [example(one) for one in kind.item_types]
        case types.DictType():
            return {example(kind.key_type): example(kind.value_type)}
        case types.StrType():
            return "word"
        case types.IntType():
            return 3
        case types.FloatType():
            return 0.5
        case types.BoolType():
            return False
        case types.NoneType():
            return None
    raise NotImplementedError(f"records have no {kind}")


def plain_record(kind: types.StructType) -> dict[str, Any]:
    """A struct as plain data, its tag included."""
    plain = {field.encode_name: example(field.type) for field in kind.fields}
    return plain | ({kind.tag_field: kind.tag} if kind.tag_field is not None else {})


def others(kind: types.Type, value: Any) -> Iterator[Any]:  # noqa: C901, PLR0912 - a case a kind of type
    """Other plain values of the type that `value` has; nothing where the type has only one value."""
    match kind:
        case types.StructType():
            for field in kind.fields:
                for other in others(field.type, value[field.encode_name]):
                    yield value | {field.encode_name: other}
        case types.UnionType():
            yield from (example(other) for other in kind.types[1:])
            yield from others(kind.types[0], value)
        case types.LiteralType():
            yield from kind.values[1:]
        case types.VarTupleType():
            yield []
            yield [*value, *value]
            yield from ([other] for other in others(kind.item_type, value[0]))
        case types.TupleType():
            for place, one in enumerate(kind.item_types):
                yield from ([*value[:place], other, *value[place + 1 :]] for other in others(one, value[place]))
        case types.DictType():
            yield {}
            name, one = next(iter(value.items()))
            yield {next(others(kind.key_type, name)): one}
            yield from ({name: other} for other in others(kind.value_type, one))
        case types.StrType():
            yield "words"
            yield ""
        case types.IntType():
            yield 4
        case types.FloatType():
            yield 0.25
        case types.BoolType():
            yield True


@dataclasses.dataclass(frozen=True)
class Example:
    """A record type with one plain instance."""

    kind: type[Record]

    @cached_property
    def info(self) -> types.StructType:
        """What msgspec knows of the type."""
        info = types.type_info(self.kind)
        assert isinstance(info, types.StructType)
        return info

    @property
    def fields(self) -> tuple[str, ...]:
        """The type's fields."""
        return tuple(field.name for field in self.info.fields)

    @cached_property
    def plain(self) -> dict[str, Any]:
        """A plain instance."""
        return plain_record(self.info)

    @property
    def record(self) -> Record:
        """The instance as a record."""
        return msgspec.convert(self.plain, self.kind, strict=True)

    @cached_property
    def changes(self) -> dict[str, list[Record]]:
        """By field: the instance with another value in it, every value that the field's type offers."""
        return {info.name: self._changes(info) for info in self.info.fields}

    def _changes(self, info: types.Field) -> list[Record]:
        changed = (self.plain | {info.encode_name: other} for other in others(info.type, self.plain[info.encode_name]))
        return [msgspec.convert(one, self.kind, strict=True) for one in changed]


EXAMPLES = {name_of(one): Example(one) for one in record_types()}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One case a record type."""
    if "record_example" in metafunc.fixturenames:
        metafunc.parametrize("record_example", [pytest.param(one, id=name) for name, one in EXAMPLES.items()])
