"""What is read off the outputs follows from them: observations of a cell, comparisons of an edge."""

import pytest

from harness.checks.comparison import observations, paired_comparison
from harness.plugin.session import Judged


@pytest.mark.gate("observations", observations)
def test_observation_follows_from_the_text(judged: Judged) -> None:
    """R04 5: last number of mathematics, syntax of Python; code is parsed and never executed."""
    assert not judged.differences, judged.message


@pytest.mark.gate("paired_comparison", paired_comparison)
def test_edge_follows_from_its_two_cells(judged: Judged) -> None:
    """R04 5: exact IDs, common prefix, token Levenshtein distance, normalised similarity."""
    assert not judged.differences, judged.message
