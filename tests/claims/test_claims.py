"""claims.json: what is supported, refuted or not checked, and that no run can print more than it has."""

from types import SimpleNamespace

import msgspec
import pytest

from harness.canon import canonical_bytes
from harness.claims.judge import claims_of
from harness.errors import JournalError
from harness.records.base import decode_json
from harness.records.claims import Claims
from harness.records.run import Deviation


def by_id(record):
    """Results by claim."""
    return {one.id: one for one in record.permitted}


def test_a_whole_run_supports_its_claims(make_view, registration):
    """Every statement has its numerators and denominators, counted by hand."""
    found = by_id(claims_of(make_view(), registration))
    assert {one.status for one in found.values()} == {"SUPPORTED"}
    assert found["replay"].statement == (
        "32/32 cells were replayed exactly in a fresh process (32/32 rows of its gate hold)."
    )
    account = {one.name: (one.count, one.of) for one in found["account"].figures}
    assert account == {
        "natural_eos": (112, 128), "truncated": (16, 128), "other_stop": (0, 128), "terminal": (56, 64),
        "evaluable": (56, 64), "numeric": (24, 32), "numeric_strict": (24, 32), "code": (24, 32),
        "code_strict": (24, 32),
    }  # fmt: skip
    assert "fixed-budget completion account: 16 fixed sources" in found["account"].statement


def test_the_record_comes_back_from_its_bytes(make_view, registration):
    """Strict, canonical, and the same whenever it is made."""
    view = make_view()
    data = canonical_bytes(claims_of(view, registration))
    assert canonical_bytes(claims_of(make_view(), registration)) == data
    assert canonical_bytes(decode_json(data, Claims, where="here", error=JournalError, todo="")) == data


def test_the_registration_is_named_apart(make_view, registration, loaded):
    """The digest of claims.toml is in the record, and that it isn't the protocol's."""
    record = claims_of(make_view(), registration)
    assert (record.claims_sha256, record.protocol_digest) == (registration.sha256, loaded.digest)
    assert record.claims_registered == "registered beside the protocol and apart from its digest"


def test_a_cell_that_parts_refutes_the_replay(make_view, registration):
    """31 of 32 is 31 of 32, whatever the gate says."""

    def part(run):
        unit = run.units[0]
        cell = msgspec.structs.replace(unit.cells[0], eos=not unit.cells[0].eos)
        return msgspec.structs.replace(
            run, units=(msgspec.structs.replace(unit, cells=(cell, *unit.cells[1:])), *run.units[1:])
        )

    replay = by_id(claims_of(make_view(replay=part), registration))["replay"]
    assert (replay.status, replay.statement) == ("REFUTED", "")
    assert replay.why == ("replayed: 31/32, all are needed",)


def test_a_larger_replay_prints_no_larger_number(make_view, registration):
    """All 128 cells made again are still 32 of the replay's 32: no file can raise the denominator."""
    replay = by_id(claims_of(make_view(replay=lambda run: run), registration))["replay"]
    more = by_id(claims_of(make_view(replay=_with_all), registration))["replay"]
    assert [(one.count, one.of) for one in replay.figures] == [(one.count, one.of) for one in more.figures]


def _with_all(run):
    """The replay with the same units under further indices: strangers to its grid."""
    more = tuple(msgspec.structs.replace(unit, source_id=f"{unit.source_id}-x", index=9) for unit in run.units)
    return msgspec.structs.replace(run, units=(*run.units, *more))


def test_a_lost_replay_cell_is_not_left_out(make_view, registration):
    """A unit that the replay lacks counts in the denominator."""
    lost = by_id(
        claims_of(make_view(replay=lambda run: msgspec.structs.replace(run, units=run.units[1:])), registration)
    )["replay"]
    assert lost.why == ("replayed: 24/32, all are needed",)


@pytest.mark.parametrize("gate", ["observations", "assembled_run", "sandbox_verdicts"])
def test_a_gate_that_is_not_whole_refutes(gate, make_view, registration):
    """A claim rests on its gates, whatever its counts."""
    account = by_id(claims_of(make_view(failed={gate: 1}), registration))["account"]
    assert account.status == "REFUTED"
    assert any(gate in reason for reason in account.why)


def test_a_gate_that_was_not_judged_checks_nothing(make_view, registration):
    """Missing is neither held nor failed."""
    view = make_view()
    audit = msgspec.structs.replace(
        view.audit, gates=tuple(one for one in view.audit.gates if one.id != "observations")
    )
    object.__setattr__(view, "audit", audit)
    account = by_id(claims_of(view, registration))["account"]
    assert (account.status, account.statement) == ("NOT CHECKED", "")
    assert "gate observations: not judged" in account.why


def test_another_tier_checks_nothing(make_view, registration):
    """A smoke run supports no claim over the formal grid, and has no figure for one."""
    record = claims_of(make_view(tier="smoke"), registration)
    assert {one.status for one in record.permitted} == {"NOT CHECKED"}
    assert all(not one.figures and not one.statement for one in record.permitted)


def test_open_books_check_nothing(make_view, registration):
    """A session that didn't close its books judged nothing."""
    view = make_view()
    object.__setattr__(view, "audit", msgspec.structs.replace(view.audit, books=("a worker died",)))
    assert {one.status for one in claims_of(view, registration).permitted} == {"NOT CHECKED"}


def test_a_denominator_that_moved_checks_nothing(make_view, registration):
    """A count over other cells than the protocol registers is no figure of it."""
    view = make_view()
    groups = tuple(
        msgspec.structs.replace(
            one,
            cells=msgspec.structs.replace(one.cells, natural_eos=msgspec.structs.replace(one.cells.natural_eos, of=96)),
        )
        for one in view.statistics.groups
    )
    view.given(statistics=msgspec.structs.replace(view.statistics, groups=groups))
    account = by_id(claims_of(view, registration))["account"]
    assert account.status == "NOT CHECKED"
    assert "natural_eos: its denominator is 96, and the protocol registers 128" in account.why


def test_a_port_says_so_everywhere(make_view, registration, loaded):
    """The result's name never stands without "(port)", and each statement begins with the word."""
    record = claims_of(make_view(port=True), registration)
    name = loaded.protocol.result_name
    assert record.result_name == f"{name} (port)"
    for one in record.permitted:
        assert one.statement.startswith("Port, not the registered run: ")
        assert one.statement.count(name) == one.statement.count(f"{name} (port)")


def test_prohibited_conclusions_are_always_listed(make_view, registration, loaded):
    """Whatever the run gave, in the protocol's own words."""
    for view in (make_view(), make_view(tier="smoke"), make_view(failed={"observations": 1})):
        listed = claims_of(view, registration).prohibited
        assert [(one.id, one.text) for one in listed] == [(one.id, one.text) for one in loaded.protocol.prohibited]


def test_every_difference_is_an_item(make_view, registration, loaded):
    """Ours one by one, what was recorded without a pin, and a checkpoint file that isn't the registered one."""
    view = make_view()
    view.environment.checkpoint["config.json"] = "0" * 64
    view.environment.dtype = "bfloat16"
    found = claims_of(view, registration).differences
    assert [one.found for one in found if one.kind == "ours"] == list(loaded.protocol.ours)
    assert [(one.field, one.found) for one in found if one.kind == "weights"] == [("config.json", "0" * 64)]
    assert ("dtype", "float32", "bfloat16") in [(one.field, one.registered, one.found) for one in found]
    assert ("torch", "2.13.0") in [(one.field, one.found) for one in found if one.kind == "software"]


def test_records_are_named_by_digest(make_view, registration):
    """What a claim rests on is in the record with its SHA-256."""
    record = claims_of(make_view(), registration)
    assert set(record.records) == {"run.json", "ledger.json", "statistics.json", "audit.json", "replay/run.json"}
    assert by_id(record)["replay"].rests_on == ("audit.json", "replay/run.json", "run.json")


def on_random_weights(view):
    """The view of a port whose records name random weights."""
    said = Deviation(field="checkpoint", registered="nano", actual="nano-random, random weights (cpu, torch 2)")
    return view.given(spec=SimpleNamespace(**vars(view.spec) | {"deviations": (said,)}))


def test_random_weights_are_named_everywhere(make_view, registration, loaded):
    """No statement has the result's name without theirs, and none is of the registered model."""
    record = claims_of(on_random_weights(make_view(port=True)), registration)
    name, whole = loaded.protocol.result_name, f"{loaded.protocol.result_name} (port) on nano-random, random weights"
    assert record.result_name == whole
    assert any(one.statement for one in record.permitted)
    for one in record.permitted:
        assert one.statement.count(name) == one.statement.count(whole)
        opening = "Port on nano-random, random weights, not the registered model and not the registered run: "
        assert not one.statement or one.statement.startswith(opening)
    assert ("port", "checkpoint", "nano") in {(one.kind, one.field, one.registered) for one in record.differences}
