"""The protocol, its manifest, prompts, model profile and every checkpoint file are the registered ones."""

import pytest

from harness.checks.frozen import registration, smoke_passed
from harness.plugin.session import Judged


@pytest.mark.gate("registration", registration)
def test_identity_is_the_registered_one(judged: Judged) -> None:
    """R04 6.1-6.2: digests of files, tokenizer and boundary IDs; a port's deviations are listed in its record."""
    assert not judged.differences, judged.message


@pytest.mark.gate("smoke_passed", smoke_passed)
def test_smoke_passed_before(judged: Judged) -> None:
    """R04 3: the formal run stands on a passed smoke run of the same protocol digest and environment."""
    assert not judged.differences, judged.message
