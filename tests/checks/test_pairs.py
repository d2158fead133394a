"""Pairs of sampled cells by hand: what a rule must compare whatever else it registers."""

from types import SimpleNamespace

import msgspec
import pytest
from pregate_support.sampling import sampled_unit

from harness.checks.pairs import same_cell
from harness.evidence import PairEvidence
from harness.protocols.grids import RowKey, UnitKey
from harness.records.protocol import PairRule

replace = msgspec.structs.replace


@pytest.fixture
def row() -> RowKey:
    """The first cell of the unit."""
    unit = sampled_unit()
    return RowKey(UnitKey(unit.domain, unit.index, unit.source_id, unit.replicate), unit.cells[0].condition)


def found(row, *fields, token=None):
    """What the pair of a unit and itself, or one with another first token, is found to differ in."""
    unit = sampled_unit()
    cell = unit.cells[0]
    ids = cell.generated_ids if token is None else (token, *cell.generated_ids[1:])
    other = replace(unit, cells=(replace(cell, generated_ids=ids), *unit.cells[1:]))
    sides = [SimpleNamespace(batch=lambda row, made=made: made) for made in (unit, other)]
    return same_cell(PairEvidence(*sides, PairRule(grid="replay", left="a", right="a", fields=fields), ()), row)


@pytest.mark.parametrize("token", [None, 7])
def test_a_rule_that_leaves_the_ids_out_holds_for_no_cell(row, token):
    """Token IDs are the evidence: seeds and states alone are the same in two runs that drew other tokens."""
    (line,) = found(row, "run_seed", "prompt_sha256", "torch_cpu_before", token=token)
    assert line.endswith("expected generated_ids compared, found not")


def test_a_rule_that_compares_them_tells(row):
    """The same two sides under a rule that names them."""
    assert found(row, "run_seed", "generated_ids") == ()
    (line,) = found(row, "run_seed", "generated_ids", token=7)
    assert "generated_ids: expected" in line
