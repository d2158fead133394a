"""Rows are parsed from verified bytes only, as stored, and damage names its line."""

import io
import json
import subprocess
import sys

import pyarrow as pa
import pytest
from pyarrow import parquet

from harness.canon import sha256_hex
from harness.errors import InputError
from harness.inputs.find import Present, find_files, require_present
from harness.inputs.readers import read_rows

STANDIN = "0dd33323dfdf224a690f684746b00048a46b70f3b244d411293c8470572644ef"


def parquet_bytes(rows) -> bytes:
    """Rows as a parquet file."""
    sink = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(list(rows)), sink)
    return sink.getvalue()


@pytest.fixture
def present(tmp_path):
    """A factory of present inputs, written here."""

    def make(data: bytes, form: str) -> Present:
        path = tmp_path / "data"
        path.write_bytes(data)
        return Present(name="pool", format=form, path=path, member=None, sha256=sha256_hex(data))

    return make


@pytest.mark.parametrize("form", ["jsonl", "jsonl.gz", "parquet"])
def test_rows_are_as_stored(present, pool_bytes, gz, form):
    """Each format gives the same rows: leading spaces, newlines and U+2028 kept, numbered by position."""
    rows = [json.loads(line) for line in pool_bytes.decode().removesuffix("\n").split("\n")]
    data = {"jsonl": pool_bytes, "jsonl.gz": gz(pool_bytes), "parquet": parquet_bytes(rows)}[form]
    assert read_rows(present(data, form)) == rows
    assert rows[0]["text"] == " first text of the pool\n"
    assert len(rows) == 3


@pytest.mark.parametrize("data", [b'{"a":1}\n{"a":2}\n', b'{"a":1}\n{"a":2}'], ids=["newline", "none"])
def test_last_newline_is_optional(present, data):
    """A file ends with or without a newline; neither adds a row."""
    assert read_rows(present(data, "jsonl")) == [{"a": 1}, {"a": 2}]


def test_empty_file_has_no_rows(present):
    """No bytes, no rows."""
    assert read_rows(present(b"", "jsonl")) == []


@pytest.mark.parametrize(
    "line",
    [b"{", b"", b"[1]", b'"text"', b'{"a": NaN}', b'{"a": "\xff"}', b'{"a": 1} {"a": 2}'],
    ids=["torn", "blank", "list", "string", "nan", "not-utf8", "two"],
)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_malformed_line_is_named(present, gz, line, packed):
    """A line that isn't one JSON object stops the read and is named by its number from 1."""
    data = b'{"a": 1}\n' + line + b'\n{"a": 3}\n'
    with pytest.raises(InputError, match=r"data: line 2: expected one JSON object, found"):
        read_rows(present(gz(data) if packed else data, "jsonl.gz" if packed else "jsonl"))


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_field_that_is_there_twice_is_refused(present, form):
    """Two values of one gold field: a reader would take one of them unsaid."""
    sink = io.BytesIO()
    parquet.write_table(pa.Table.from_arrays([pa.array(["7"]), pa.array(["8"])], names=["gold", "gold"]), sink)
    data = {"jsonl": b'{"gold": "7", "gold": "8"}\n', "parquet": sink.getvalue()}[form]
    with pytest.raises(InputError, match="expected each field once, found gold twice"):
        read_rows(present(data, form))


def test_a_byte_order_mark_is_named(present):
    """The first line would be no JSON for a reason that nobody sees."""
    with pytest.raises(InputError, match="line 1: expected one JSON object, found a byte order mark"):
        read_rows(present(b'\xef\xbb\xbf{"a": 1}\n', "jsonl"))


@pytest.mark.parametrize("form", ["jsonl.gz", "parquet"])
def test_not_the_registered_format(present, form):
    """Bytes that aren't the registered format are an input error."""
    expected = {"jsonl.gz": "gzip data", "parquet": "a parquet table"}[form]
    with pytest.raises(InputError, match=f"expected {expected}, found"):
        read_rows(present(b"neither\n", form))


def test_torn_gzip(present, gz, pool_bytes):
    """A gzip file that ends early is an input error."""
    with pytest.raises(InputError, match=r"expected gzip data, found"):
        read_rows(present(gz(pool_bytes)[:-9], "jsonl.gz"))


def test_bytes_are_verified_when_they_are_read(present, pool_bytes):
    """A file changed after it was found isn't parsed."""
    one = present(pool_bytes, "jsonl")
    one.path.write_bytes(pool_bytes.replace(b"41", b"40"))
    with pytest.raises(InputError, match=f"expected SHA-256 {one.sha256}, found"):
        read_rows(one)


def test_member_is_verified_when_it_is_read(tmp_path, registered, zipped, pool_bytes):
    """An archive exchanged after it was found isn't parsed either."""
    archive = zipped(tmp_path / "public.zip", "test.json", pool_bytes)
    found = find_files((registered(pool_bytes, archives=[archive]),), [tmp_path])
    one = require_present(found, "pool")
    assert len(read_rows(one)) == 3
    zipped(tmp_path / "public.zip", "test.json", pool_bytes + b"{}\n")
    with pytest.raises(InputError, match=r"public.zip!test.json: expected SHA-256"):
        read_rows(one)


@pytest.mark.inputs
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "zip"])
def test_chinese_stand_in(tmp_path, real_folder, registered, zipped, packed):
    """Real Chinese JSON lines are read whole, alone and inside a zip; the file is a stand-in, registered as nothing."""
    data = (real_folder / "tnews_dev_STANDIN.jsonl").read_bytes()
    assert sha256_hex(data) == STANDIN
    if packed:
        archives = [zipped(tmp_path / "x.zip", "dev.json", data)]
    else:
        (tmp_path / "x").write_bytes(data)
        archives = []
    found = find_files((registered(data, archives=archives),), [tmp_path])
    rows = read_rows(require_present(found, "pool"))
    assert len(rows) == 10_000
    assert rows[0]["sentence"] == "江疏影甜甜圈自拍，迷之角度竟这么好看，美吸引一切事物"
    assert all(isinstance(row["sentence"], str) for row in rows)


def test_import_is_light():
    """Importing everything about inputs loads neither torch nor pyarrow nor a tokenizer."""
    code = (
        "import sys, harness.cli.inputs, harness.inputs.sources, harness.inputs.fetch\n"
        "print(sorted({'torch', 'transformers', 'pyarrow', 'tokenizers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
