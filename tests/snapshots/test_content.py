"""What a unit's snapshot holds, and its bytes: evidence only, ASCII, one line a field."""

import json
import re

import msgspec
import pytest

from harness.records.run import CellRecord, ProcessIdentity
from harness.snapshots.content import CELL_FIELDS, origins_of, snapshot_bytes, snapshot_sha256, unit_snapshot

LEFT_OUT = {"prompt_ids", "left_padding", "edits"}


def process(load, pid=1):
    """A process with one model load."""
    return ProcessIdentity(pid=pid, started_us=1, model_loaded_us=2, model_load_id=load, str_hash="0" * 16)


@pytest.fixture(scope="session")
def unit(evidence):
    """The run's first unit."""
    return evidence.run.units[0]


@pytest.fixture(scope="session")
def content(unit, evidence):
    """Its snapshot."""
    return unit_snapshot(unit, evidence.ledger)


def test_the_bytes_are_json_of_the_content(content):
    """Indented, and the same again."""
    assert json.loads(snapshot_bytes(content)) == json.loads(json.dumps(content))
    assert snapshot_bytes(content) == snapshot_bytes(json.loads(snapshot_bytes(content)))


def test_the_bytes_are_ascii_and_end_in_a_line_break(content):
    """Git and any terminal can show them."""
    assert snapshot_bytes(content).decode("ascii").endswith("}\n")


def test_one_field_is_one_line(content):
    """A changed field is one changed line: every cell field has a line of its own."""
    lines = snapshot_bytes(content).decode("ascii").splitlines()
    for name in CELL_FIELDS:
        assert sum(line.startswith(f'   "{name}": ') for line in lines) == len(content["cells"])


def test_every_cell_field_is_in_it_or_left_out_on_purpose():
    """What follows from the prompt hash is left out; a new field of a cell must be decided on."""
    assert set(CELL_FIELDS) | LEFT_OUT == set(CellRecord.__struct_fields__)


def test_no_time_path_host_or_process_is_in_it(content, formal_run):
    """Two runs of the same tokens have the same snapshot."""
    text = snapshot_bytes(content).decode("ascii")
    assert str(formal_run) not in text
    assert not re.search(r"wall|_us|_ns|pid|host|environment|placement", text)


@pytest.mark.parametrize("name", ["environment_sha256", "placement_sha256"])
def test_where_it_was_made_is_not_in_it(unit, evidence, content, name):
    """Another environment or placement with the same cells."""
    assert unit_snapshot(msgspec.structs.replace(unit, **{name: "x"}), evidence.ledger) == content


@pytest.mark.parametrize("name", ["domain", "index", "source_text_sha256", "max_new_tokens", "protocol_digest"])
def test_another_identity_is_another_snapshot(unit, evidence, content, name):
    """Each identity field is in it."""
    value = getattr(unit, name)
    changed = msgspec.structs.replace(unit, **{name: value + 1 if isinstance(value, int) else f"{value}x"})
    assert snapshot_sha256(unit_snapshot(changed, evidence.ledger)) != snapshot_sha256(content)


@pytest.mark.parametrize("name", CELL_FIELDS[1:])
def test_another_cell_field_is_another_snapshot(unit, evidence, content, name):
    """Each field of the last cell."""
    cell = unit.cells[-1]
    other = {bool: lambda v: not v, int: lambda v: v + 1, str: lambda v: f"{v}x", tuple: lambda v: (*v, 0)}
    value = getattr(cell, name)
    altered = msgspec.structs.replace(cell, **{name: other[type(value)](value)})
    changed = msgspec.structs.replace(unit, cells=(*unit.cells[:-1], altered))
    assert snapshot_sha256(unit_snapshot(changed, evidence.ledger)) != snapshot_sha256(content)


def test_origins_are_the_set_of_model_loads():
    """Neither the number nor the order of units made by a load matters."""
    assert origins_of((process("a"), process("b"))) == origins_of((process("b"), process("a"), process("a")))
    assert len(origins_of((process("a"), process("b")))) == 2
    assert not set(origins_of((process("a"),))) & set(origins_of((process("b"),)))
