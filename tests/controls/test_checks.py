"""Each check, held against one planted fault at a time: exactly the named rows are red, and the message says why.

The faults are in `faults_of_a_run.py` and `faults_apart.py`.
"""

from typing import Any

import msgspec
import pytest

from harness.canon import canonical_bytes
from harness.checks.frozen import RegistrationEvidence, registration
from harness.files import file_sha256
from harness.protocols.grids import RowKey
from harness.protocols.load import load_protocol
from harness.records.run import Deviation

from .damage import CHECKS, Case, read
from .faults_apart import FAULTS as APART
from .faults_of_a_run import FAULTS as OF_A_RUN
from .planting import Fault, turns_red

FAULTS = (*OF_A_RUN, *APART)


@pytest.mark.parametrize("gate", sorted(set(CHECKS) - {"registration", "frozen_snapshots"}))
def test_the_undamaged_run_has_no_red_row(case: Case, gate: str) -> None:
    """Without a fault the check finds nothing, so that what a control finds is its fault."""
    assert case.red(gate) == {}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.gate}: {fault.name}")
def test_the_planted_fault_is_red(case: Case, fault: Fault) -> None:
    """The fault makes exactly the named rows red; each message names source and condition and says what was found."""
    turns_red(case, fault)


def test_every_registered_gate_has_a_fault() -> None:
    """No gate of the nano protocol is without a control here or in the tests of its own below and beside."""
    registered = {gate.id for gate in load_protocol("nano-behavior").protocol.gates}
    assert registered == {fault.gate for fault in FAULTS} | {"registration", "frozen_snapshots"} == set(CHECKS)


@pytest.mark.parametrize(
    ("identities", "deviations", "words"),
    [
        ({"model.safetensors": ("a", "b")}, (), ("expected a, found b",)),
        ({}, (), ("expected a registered identity, found none",)),
        ({"model.safetensors": ("a", "b")}, (("a", "c"),), ("expected a, found b",)),
    ],
)
def test_an_identity_that_is_not_the_registered_one_is_red(identities: Any, deviations: Any, words: Any) -> None:
    """Another digest, an identity that nobody looked at, and a deviation that was listed with other values."""
    listed = tuple(
        Deviation(field="checkpoint.model.safetensors", registered=one, actual=two) for one, two in deviations
    )
    found = registration(RegistrationEvidence(identities, listed), RowKey(None, "model.safetensors"))
    assert all(word in " ".join(found) for word in ("model.safetensors", *words))


def test_the_smoke_reference_is_the_audits_digest(case: Case) -> None:
    """What the run notes of its smoke record is the digest of that record's bytes."""
    assert read(case.run / "smoke.json")["audit_sha256"] == file_sha256(case.smoke / "audit.json", what="audit")


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("ids_exact", lambda made: not made.ids_exact, "ids_exact"),
        ("distance", lambda made: int(made.ids_exact), "distance 0"),
        ("distance", lambda made: made.longest + 1, "distance within its bounds"),
        ("common_prefix_tokens", lambda made: made.common_prefix_tokens - 1, "common prefix: expected"),
        ("common_prefix_tokens", lambda made: made.common_prefix_tokens + 1, "common prefix"),
        ("longest", lambda made: made.longest - 1, "longest"),
    ],
)
def test_a_comparison_that_is_wrong_both_times(
    case: Case, monkeypatch: pytest.MonkeyPatch, field: str, value: Any, words: str
) -> None:
    """An edge that the ledger's own code gets wrong, alike when made and when made again, is red by its cells' IDs."""
    book = case.main().ledger
    edge = book.edges[3]
    changes = {field: value(edge.comparison)}
    wrong = msgspec.structs.replace(edge, comparison=msgspec.structs.replace(edge.comparison, **changes))
    changed = msgspec.structs.replace(book, edges=tuple(wrong if one is edge else one for one in book.edges))
    (case.run / "ledger.json").write_bytes(canonical_bytes(changed))
    monkeypatch.setattr("harness.checks.comparison.ledger_of", lambda protocol, run, executions: changed)
    red = case.red("paired_comparison")
    assert list(red) == [f"{edge.source_id}:{edge.edge}"]
    assert words in red[f"{edge.source_id}:{edge.edge}"]
