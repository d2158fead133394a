"""Every altered field of a journal is refused, by the name of its unit and, for cells, of its condition."""

import json

import pytest

from harness.canon import digest
from harness.errors import JournalError
from harness.journal.assemble import read_spec, verified_journal
from harness.journal.folder import read_journal
from harness.records.run import CellRecord, Journal, UnitEvidence

EVIDENCE = [name for name in UnitEvidence.__struct_fields__ if name != "cells"]
CELL = [name for name in CellRecord.__struct_fields__ if name not in ("condition", "edits")]
EDIT = ["position", "replaced"]
IDENTITY = [name for name in EVIDENCE if name not in ("checks", "rng_before", "rng_after")]


def accepted(altered, prefix, *names):
    """The leaves below a prefix whose change is not refused by an error that has all the names."""
    found = []
    for leaf in altered.leaves(prefix):
        path = altered.write(leaf)
        condition = altered.content["evidence"]["cells"][leaf[2]]["condition"] if leaf[1:2] == ("cells",) else ""
        try:
            read_journal(path, Journal)
        except JournalError as error:
            if all(name in str(error) for name in (*names, path.name, condition)):
                continue
        found.append(leaf)
    return found


@pytest.mark.parametrize("field", EVIDENCE)
def test_an_altered_unit_field_is_refused(altered, field):
    """Every number and text of the field, one at a time: the unit's file is named."""
    assert list(altered.leaves(("evidence", field)))
    assert accepted(altered, ("evidence", field)) == []


@pytest.mark.parametrize("field", CELL)
def test_an_altered_cell_field_is_refused(altered, field):
    """Every number and text of the field in every cell, one at a time: unit and condition are named."""
    prefix = ("evidence", "cells", "*", field)
    assert list(altered.leaves(prefix))
    assert accepted(altered, prefix) == []


@pytest.mark.parametrize("field", EDIT)
def test_an_altered_edit_is_refused(altered, field):
    """An edit that no longer fits its prompt: unit, condition and the word edits."""
    prefix = ("evidence", "cells", "*", "edits")
    leaves = [leaf for leaf in altered.leaves(prefix) if leaf[-1] == field]
    assert leaves
    assert [leaf for leaf in leaves if accepted(altered, leaf, "edits")] == []


@pytest.mark.parametrize("field", ["official", "condition"])
def test_a_field_that_nothing_repeats_is_refused_by_its_digest(altered, field):
    """What only the unit's digest covers: the unit is named."""
    leaves = [leaf for leaf in altered.leaves(("evidence", "cells", "*")) if leaf[-1] == field]
    assert leaves
    for leaf in leaves:
        with pytest.raises(JournalError, match=f"{altered.path.name}.*evidence_sha256"):
            read_journal(altered.write(leaf), Journal)


@pytest.mark.parametrize("field", ["evidence_sha256", "schema"])
def test_an_altered_envelope_is_refused(altered, field):
    """The digest itself, and the format's number."""
    assert accepted(altered, (field,), field) == []


@pytest.mark.parametrize("field", IDENTITY)
def test_a_signed_alteration_is_refused_by_the_run(folder, loaded, field):
    """With a digest that fits again, the run knows better: protocol, grid, source, environment, placement."""
    spec = read_spec(folder)
    key = loaded.units(spec.grid, spec.domains)[0]
    content = json.loads(folder.journal(key).read_bytes())
    value = content["evidence"][field]
    content["evidence"][field] = value + 1 if isinstance(value, int) else f"{value}x"
    content["evidence_sha256"] = digest(content["evidence"])
    folder.journal(key).write_text(json.dumps(content))
    with pytest.raises(JournalError, match=f"{key.name}.json: {field}"):
        verified_journal(folder, key, loaded, spec)


@pytest.mark.parametrize("change", ["reverse", "drop", "double", "rename"])
def test_signed_rows_that_are_not_the_conditions_are_refused(folder, loaded, change):
    """Another order, a lost, a doubled or an unknown condition: both lists are shown."""
    spec = read_spec(folder)
    key = loaded.units(spec.grid, spec.domains)[0]
    content = json.loads(folder.journal(key).read_bytes())
    cells = content["evidence"]["cells"]
    changed = {
        "reverse": cells[::-1],
        "drop": cells[:-1],
        "double": [*cells[:-1], cells[0]],
        "rename": [*cells[:-1], cells[-1] | {"condition": "s9_none"}],
    }
    content["evidence"]["cells"] = changed[change]
    content["evidence_sha256"] = digest(content["evidence"])
    folder.journal(key).write_text(json.dumps(content))
    with pytest.raises(JournalError, match=r"rows: expected .*s0_eos"):
        verified_journal(folder, key, loaded, spec)


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"schema":1}'],
    ids=["empty", "torn", "list", "null", "bytes", "short"],
)
def test_what_is_no_journal_is_refused(tmp_path, data):
    """A torn or foreign file is a JournalError with the file's name."""
    (tmp_path / "unit.json").write_bytes(data)
    with pytest.raises(JournalError, match=r"unit\.json"):
        read_journal(tmp_path / "unit.json", Journal)


@pytest.mark.parametrize("text", ["\\x4", "\\q", "\\ud800", "\u4e2d", "\n"], ids=ascii)
def test_text_that_was_not_escaped_is_refused(altered, text):
    """A malformed escape names its cell; it's no crash of the reader."""
    cell = altered.content["evidence"]["cells"][0]
    cell["text_escaped"] = text
    altered.path.write_text(json.dumps(altered.content))
    with pytest.raises(JournalError, match=f"{cell['condition']}: text_escaped"):
        read_journal(altered.path, Journal)


def test_an_id_beyond_any_encoding_is_refused(altered):
    """An integer that has no canonical form."""
    altered.content["evidence"]["cells"][0]["prompt_ids"][0] = 2**60
    altered.path.write_text(json.dumps(altered.content))
    with pytest.raises(JournalError, match=altered.path.name):
        read_journal(altered.path, Journal)


def test_the_observation_is_no_evidence(altered):
    """Times, processes and token counts can change without changing what is digested."""
    before = read_journal(altered.write(("observation", "wall_ns")), Journal)
    after = read_journal(altered.write(("observation", "process", "pid")), Journal)
    assert before.evidence == after.evidence
    assert before.evidence_sha256 == after.evidence_sha256
