"""CSV rows as they stand, and the line of whatever isn't one; and what an author's own pool must be."""

import msgspec
import pytest

from harness.canon import sha256_hex
from harness.errors import InputError
from harness.inputs.find import FoundInputs, Present
from harness.inputs.readers import placed_rows, read_rows
from harness.inputs.sources import require_clean_pool
from harness.places import places
from harness.protocols.load import read_protocol


@pytest.fixture
def given(tmp_path):
    """`given(bytes)`: a present input; `kind` its format."""

    def make(data, kind="csv"):
        path = tmp_path / f"a.{kind}"
        path.write_bytes(data)
        return Present(name="a", format=kind, path=path, member=None, sha256=sha256_hex(data))

    return make


def test_values_are_texts_as_they_stand(given):
    """Quotes, commas and lines inside quotes, Chinese, white space; a byte order mark isn't part of a name."""
    data = '\ufeffid,text\r\na,"x, ""y""\nz"\r\nb, 今天 \r\n'.encode()
    assert read_rows(given(data)) == [{"id": "a", "text": 'x, "y"\nz'}, {"id": "b", "text": " 今天 "}]
    assert [at for at, _ in placed_rows(given(data))] == ["line 3", "line 4"]


def test_a_long_field_is_read(given):
    """Longer than the library's own limit, which is as it was afterwards."""
    import csv

    limit = csv.field_size_limit()
    assert len(read_rows(given(b"id,text\na," + b"x" * 200_000))[0]["text"]) == 200_000
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"id,text\na,b\nc,\xff\n", "line 3: expected UTF-8"),
        (b"id,text\na,b,c\n", "line 2: expected 2 fields, found 3"),
        (b"id,text\na,b\n\nc,d\n", "line 3: expected 2 fields, found 0"),
        (b'id,text\na,"b\n', "expected comma-separated values"),
        (b"id,id\na,b\n", "line 1: expected a header, each field named once"),
        (b"id,\na,b\n", "line 1: expected a header"),
        (b"", "line 1: expected a header"),
    ],
)
def test_what_is_no_csv_is_named_by_line(given, data, words):
    """One error, with the line."""
    with pytest.raises(InputError, match=words):
        read_rows(given(data))


@pytest.fixture
def domain():
    """A domain with an ID field, a text field and a gold field."""
    registered = read_protocol(places().protocols / "nano-behavior" / "protocol.toml").domains[0]
    return msgspec.structs.replace(registered, input="a", source_id="{id}", text_field="text", gold=("label",))


def found(present):
    """One present input."""
    return FoundInputs(states=(present,), altered=())


def test_a_clean_pool_is_taken(given, domain):
    """Every row could be a source."""
    require_clean_pool(domain, found(given(b"id,text,label\na/1,x,y\nb_2.c-d,z,\n")))


@pytest.mark.parametrize(
    ("data", "kind", "words"),
    [
        (b"id,text,label\na,x,y\n b,z,w\n", "csv", "line 3: expected an ID for {id} of 1 to 100 letters.*found ' b'"),
        (b'id,text,label\na,x,y\nb," ",w\n', "csv", "line 3: field text: expected a text, found an empty text"),
        (b"id,text\na,x\n", "csv", "line 2: field label: expected a text, found no such field"),
        (b'{"id": "a", "text": "x", "label": 5}\n', "jsonl", "line 1: field label: expected a text, found int"),
        (b'{"id": "a", "text": null, "label": "y"}\n', "jsonl", "line 1: field text: expected a text, found NoneType"),
    ],
)
def test_a_row_that_can_be_no_source_is_named(given, domain, data, kind, words):
    """The first such line, whatever its rank would have been."""
    with pytest.raises(InputError, match=words):
        require_clean_pool(domain, found(given(data, kind)))
