"""`inputs verify` and `inputs fetch`: one line a file, exit codes, errors as one line."""

import sys

import msgspec
import pytest
from typer.testing import CliRunner

from harness.canon import sha256_hex
from harness.cli import inputs as cli
from harness.cli import show
from harness.places import places


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    """Run the sub-app in a tree of its own."""
    monkeypatch.setenv("HARNESS_ROOT", str(tmp_path / "tree"))
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TERM"):  # each can change what counts as a terminal
        monkeypatch.delenv(name, raising=False)
    return lambda *arguments: CliRunner().invoke(cli.app, [str(one) for one in arguments])


@pytest.fixture
def protocol_file(nano, tmp_path, invoke):
    """Write a protocol with the given inputs into the tree."""

    def write(name: str, inputs):
        protocol = msgspec.structs.replace(nano, id=name, inputs=tuple(inputs))
        path = places().protocols / name / "protocol.toml"
        path.parent.mkdir(parents=True)
        # JSON's strings, numbers, lists and tables are written as TOML inline values.
        plain = msgspec.to_builtins(protocol)
        path.write_text("".join(f"{key} = {_toml(value)}\n" for key, value in plain.items()), encoding="utf-8")
        return protocol

    return write


def _toml(value) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(key)} = {_toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(one) for one in value) + "]"
    return msgspec.json.encode(value).decode()


@pytest.fixture
def data(tmp_path):
    """An empty folder of input files."""
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


def test_all_present(invoke, protocol_file, data, registered, pool_bytes):
    """All files there: one line each with state, digest and path, exit 0."""
    protocol_file("one", [registered(pool_bytes)])
    (data / "any").write_bytes(pool_bytes)
    result = invoke("verify", data)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"one\tpool\tpresent\t{sha256_hex(pool_bytes)}\t{data / 'any'}\n"


@pytest.mark.parametrize("state", ["missing", "altered", "unfrozen"])
def test_not_all_present(invoke, protocol_file, data, registered, state):
    """A file that is missing, altered or unfrozen is said with its publisher's place, exit 1."""
    pool = registered(None if state == "unfrozen" else b"pool", location="https://example.org/pool")
    protocol_file("one", [pool, registered(b"x", name="y")])
    (data / "x").write_bytes(b"x")
    if state == "altered":
        (data / "pool.jsonl").write_bytes(b"mine")
    result = invoke("verify", data)
    first, second = result.stdout.splitlines()
    assert result.exit_code == 1
    assert first.startswith(f"one\tpool\t{state}\t")
    assert "https://example.org/pool" in first
    assert second.startswith("one\ty\tpresent\t")
    assert (sha256_hex(b"mine") in first) == (state == "altered")


def test_altered_copy_is_said_beside_the_valid_file(invoke, protocol_file, data, registered, pool_bytes):
    """An altered copy of a present file goes to stderr and doesn't fail the check."""
    protocol_file("one", [registered(pool_bytes)])
    (data / "valid").write_bytes(pool_bytes)
    (data / "pool.jsonl").write_bytes(b"mine")
    result = invoke("verify", data)
    assert result.exit_code == 0
    assert f"also altered: {data / 'pool.jsonl'}" in result.stderr


def test_default_is_every_protocol(invoke, protocol_file, data, registered):
    """Without --protocol all protocols of the tree are checked; with it only those named."""
    protocol_file("one", [registered(b"1")])
    protocol_file("two", [registered(b"2")])
    (data / "x").write_bytes(b"2")
    assert [line.split()[0] for line in invoke("verify", data).stdout.splitlines()] == ["one", "two"]
    named = invoke("verify", data, "--protocol", "two")
    assert (named.exit_code, named.stdout.split()[0]) == (0, "two")


@pytest.mark.parametrize("command", ["verify", "fetch"])
def test_unknown_protocol(invoke, protocol_file, data, registered, command):
    """An unknown protocol is one line on stderr, exit 1, no traceback."""
    protocol_file("one", [registered(b"1")])
    result = invoke(command, data, "--protocol", "other")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "protocol other: expected one of one, found no such protocol. Name a known protocol.\n"


def test_unreadable_folder(invoke, protocol_file, data, registered):
    """A broken world is one line on stderr, exit 1."""
    protocol_file("one", [registered(b"1")])
    result = invoke("verify", data / "absent")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.count("\n") == 1
    assert "expected a folder of input files" in result.stderr


def test_table_on_a_terminal(invoke, protocol_file, data, registered, monkeypatch):
    """On a terminal the same cells stand in a table with headings, brackets in paths kept."""
    protocol_file("one", [registered(b"1")])
    (data / "[bold]x").write_bytes(b"1")
    monkeypatch.setattr(show, "is_terminal", lambda stream: stream is sys.stdout)
    monkeypatch.setenv("COLUMNS", "400")
    result = invoke("verify", data)
    assert result.exit_code == 0
    assert "registered SHA-256" in result.stdout
    assert str(data / "[bold]x") in result.stdout


def test_fetch_reports_and_goes_on(invoke, protocol_file, data, registered, pool_bytes):
    """A failed download is one line on stderr; the other inputs are still done, exit 1."""
    (data / "any").write_bytes(pool_bytes)
    protocol_file(
        "one",
        [
            registered(b"1", name="broken", file_name="b", location="http://127.0.0.1:1/b"),
            registered(b"2", name="asked", file_name="a", location="a letter to its publisher"),
            registered(pool_bytes),
        ],
    )
    result = invoke("fetch", data)
    assert result.exit_code == 1
    assert [line.split("\t")[1:3] for line in result.stdout.splitlines()] == [
        ["broken", "failed"],
        ["asked", "not fetched"],
        ["pool", "already there"],
    ]
    assert "a letter to its publisher" in result.stdout
    assert result.stderr.count("\n") == 1


def test_fetch_with_everything_there(invoke, protocol_file, data, registered, pool_bytes):
    """With every file there nothing is fetched, exit 0."""
    (data / "any").write_bytes(pool_bytes)
    protocol_file("one", [registered(pool_bytes)])
    assert invoke("fetch", data).exit_code == 0
