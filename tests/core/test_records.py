"""Every record type: frozen, strict, without defaults, and each field of it reaches the digest."""

import msgspec
import pytest

from harness.canon import canonical_bytes, digest
from harness.errors import JournalError
from harness.records.base import decode_json


def test_a_record_comes_back_from_its_canonical_bytes(record_example):
    """Encoding and strict decoding give an equal record and the same bytes."""
    record = record_example.record
    again = decode_json(canonical_bytes(record), record_example.kind, where="here", error=JournalError, todo="Nothing.")
    assert again == record
    assert canonical_bytes(again) == canonical_bytes(record)


def test_every_field_reaches_the_digest(record_example):
    """Another value in one field is another digest: no two of the field's values share one."""
    own = digest(record_example.record)
    digests = {field: [own, *map(digest, record_example.changes[field])] for field in record_example.fields}
    assert [field for field, found in digests.items() if len(set(found)) != len(found)] == []


def test_every_field_can_be_changed(record_example):
    """The walk really changes the field, unless its type has a single value (a schema number, a fixed word)."""
    kinds = {one.name: one.type for one in record_example.info.fields}
    fixed = [field for field in record_example.fields if not record_example.changes[field]]
    assert fixed == [field for field in record_example.fields if has_one_value(kinds[field])]


def has_one_value(kind):
    """A fixed word, or a record of fixed words."""
    if isinstance(kind, msgspec.inspect.StructType):
        return all(has_one_value(field.type) for field in kind.fields)
    return isinstance(kind, msgspec.inspect.LiteralType) and len(kind.values) == 1


def written_as(kind, field):
    """The field's name in JSON."""
    return kind.__struct_encode_fields__[kind.__struct_fields__.index(field)]


def test_no_field_has_a_default(record_example):
    """Leaving a field out is an error that names it, field by field."""
    for field in record_example.fields:
        written = written_as(record_example.kind, field)
        plain = {name: value for name, value in record_example.plain.items() if name != written}
        with pytest.raises(JournalError, match=f"expected a field `{written}`, found no such field"):
            decode_json(
                msgspec.json.encode(plain), record_example.kind, where="here", error=JournalError, todo="Nothing."
            )


def test_an_unknown_field_is_refused(record_example):
    """A field that the type doesn't have is an error that names it."""
    plain = record_example.plain | {"surprise": 1}
    with pytest.raises(JournalError, match="found unknown field `surprise`"):
        decode_json(msgspec.json.encode(plain), record_example.kind, where="here", error=JournalError, todo="Nothing.")


def test_a_field_of_another_type_is_refused(record_example):
    """Nothing is coerced: a list of lists is no value of any field, and the message names the field."""
    for field in record_example.fields:
        written = written_as(record_example.kind, field)
        plain = record_example.plain | {written: [[[]]]}
        with pytest.raises(JournalError, match=rf"field \$\.{written}"):
            decode_json(
                msgspec.json.encode(plain), record_example.kind, where="here", error=JournalError, todo="Nothing."
            )


@pytest.mark.parametrize("value", ["3", 3.5, True, None], ids=repr)
def test_a_number_is_not_coerced(value):
    """An integer field takes an integer and nothing that could be read as one."""
    from harness.records.manifest import Denominators

    plain = {"sources": value, "units": 1, "cells": 1, "edges": 1}
    with pytest.raises(JournalError, match=r"field \$\.sources: expected int"):
        decode_json(msgspec.json.encode(plain), Denominators, where="here", error=JournalError, todo="Nothing.")


def test_a_record_is_frozen(record_example):
    """No field of a record can be changed in place."""
    for field in record_example.fields:
        with pytest.raises(AttributeError, match="immutable"):
            setattr(record_example.record, field, None)


def test_bytes_that_are_not_json_are_refused():
    """A torn file is an error of the caller's family, not of the decoder's."""
    with pytest.raises(JournalError, match="expected JSON"):
        decode_json(b'{"a": ', dict, where="torn.json", error=JournalError, todo="Nothing.")
