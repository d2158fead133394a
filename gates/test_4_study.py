"""A study's own rows: prompts with their placed edits, and what an author's function gives when it is asked again."""

import pytest

from harness.checks.scored import function_scores
from harness.checks.study import edit_contract
from harness.plugin.session import Judged


@pytest.mark.gate("edit_contract", edit_contract)
def test_prompt_is_the_rendered_one_with_its_edits(judged: Judged) -> None:
    """Messages rendered anew by the model's own template, every place proven again, every other ID as it was."""
    assert not judged.differences, judged.message


@pytest.mark.gate("function_scores", function_scores)
def test_function_gives_the_score_again(judged: Judged) -> None:
    """The registered source, in another process, on the cell's text: the same answer."""
    assert not judged.differences, judged.message
