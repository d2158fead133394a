"""Whole sessions over a damaged run: exit code, the gates that turn red, the ones that stay green, and what is said.

`seal` renews all digests after the damage, so a red gate here isn't a stale digest's work.
"""

import shutil
from collections.abc import Callable
from typing import Any

import pytest

from harness.canon import escaped
from harness.errors import JournalError
from harness.places import Places
from harness.snapshots.store import accept

from .damage import OUTPUT, Case, cell_of, edit, failed_gates, forge_audit, junit_messages, read

Judge = Callable[[], Any]


def other_prompt(unit: Any) -> None:
    """An ordinary prompt ID of one cell is another one."""
    cell_of(unit, "s1_x")["prompt_ids"][5] = 300 if cell_of(unit, "s1_x")["prompt_ids"][5] != 300 else 301


def second_bos(unit: Any) -> None:
    """A BOS where none belongs."""
    cell_of(unit, "s0_period")["prompt_ids"][4] = 0


def other_text(unit: Any) -> None:
    """A text that the IDs don't decode to."""
    cell_of(unit, "s0_x")["text_escaped"] = escaped("a better answer")


def one_check_less(unit: Any) -> None:
    """One step of one row wasn't seen to be the argmax."""
    unit["checks"]["argmax"] -= 1


def drawn(unit: Any) -> None:
    """NumPy's generator moved."""
    unit["rng_after"]["numpy"]["sha256"] = "0" * 64


APART = {"placement_equivalence", "independent_replay", "row_determinism"}


@pytest.mark.parametrize(
    ("damage", "gates", "cells", "words"),
    [
        (other_prompt, {"prompt_hashes", "single_id_contract", *APART}, ("s1_x",), "hash of the prompt IDs: expected"),
        (
            second_bos,
            {"prompt_hashes", "single_id_contract", "batch_alignment", *APART},
            ("s0_period", ""),
            "BOS positions",
        ),
        (other_text, {"output_identity", *APART}, ("s0_x",), "text_sha256 of the decoded IDs: expected"),
        (one_check_less, {"greedy_steps"}, ("",), "the emitted ID is the argmax: expected"),
        (drawn, {"rng_untouched"}, ("",), "numpy generator: expected"),
    ],
)
def test_a_unit_that_was_altered_with_all_its_digests(
    case: Case, judge: Judge, damage: Any, gates: set[str], cells: tuple[str, ...], words: str
) -> None:
    """Exactly these gates are red, on exactly these cells of this source; what nothing here contradicts stays green."""
    case.edit_unit(damage)
    case.seal()
    assert judge().code == 1
    failed = failed_gates(case.run)
    named = {":".join(part for part in (case.source(), cell) if part) for cell in cells}
    assert set(failed) == gates
    assert {
        row.removeprefix("threads-2:").removeprefix("workers-2:") for rows in failed.values() for row in rows
    } == named
    said = [text for name, text in junit_messages(case.run).items() if words in " ".join(text.split())]
    assert said
    assert all(case.source() in text and "found" in text for text in said)


def test_outputs_that_changed_places(case: Case, judge: Judge) -> None:
    """Two sources' outputs in one condition, swapped with all digests: each is possible, and neither was made there."""
    units = [read(case.journal(at))["evidence"] for at in (0, 1)]
    outputs = [{name: cell_of(unit, "s0_x")[name] for name in OUTPUT} for unit in units]
    assert outputs[0]["length"] == outputs[1]["length"]  # else greedy_steps would see it too
    for at in (0, 1):
        case.edit_cell("s0_x", lambda cell, at=at: cell.update(outputs[1 - at]), at=at)
    case.seal()
    assert judge().code == 1
    assert set(failed_gates(case.run)) == APART | {"smoke_passed"}
    said = [text for text in junit_messages(case.run).values() if "generated_ids from step 0" in text]
    assert {case.source(at) for at in (0, 1)} == {
        source for source in map(case.source, (0, 1)) if any(source in one for one in said)
    }


@pytest.mark.parametrize(
    ("name", "change", "gates", "words"),
    [
        (
            "environment.json",
            lambda one: one["generation_config"].update(do_sample="true"),
            {"decode_contract", "smoke_passed", "independent_replay", "placement_equivalence", "row_determinism"},
            "do_sample: expected false, found true",
        ),
        (
            "placement.json",
            lambda one: one.update(device_map={"": "disk"}, offloaded=[""], parameter_bytes={"offloaded:disk": 9}),
            {"placement_recorded", "independent_replay", "row_determinism"},
            "offloaded modules",
        ),
    ],
)
def test_a_record_that_was_altered_with_all_its_digests(
    case: Case, judge: Judge, name: str, change: Any, gates: set[str], words: str
) -> None:
    """What the whole run claims of where it was made is held against the protocol and against the parts made apart."""
    case.edit(name, change)
    case.seal()
    assert judge().code == 1
    assert set(failed_gates(case.run)) == gates
    assert any(words in " ".join(text.split()) for text in junit_messages(case.run).values())


ALTERED = {
    "run.json": (lambda one: one.update(result_name="better"), "result_name"),
    "ledger.json": (lambda one: one["cells"][0].update(length=1), "ledger.json"),
    "statistics.json": (lambda one: one["by_domain"][0]["cells"]["natural_eos"].update(count=3), "statistics.json"),
    "placement.json": (lambda one: one["parameter_bytes"].update(cpu=1), "placement_sha256"),
    "environment.json": (lambda one: one.update(python="2.7"), "environment_sha256"),
    "gold.json": (lambda one: one.update(dict.fromkeys(one, "1")), "gold"),
    "spec.json": (lambda one: one.update(registered_id="another"), "registered_id"),
}


BOOKS = {"ledger.json", "statistics.json"}


@pytest.mark.parametrize("gate", ["assembled_run", "prompt_hashes", "observations", "independent_replay"])
@pytest.mark.parametrize("name", sorted(set(ALTERED) - BOOKS))
def test_a_record_that_was_altered_alone(case: Case, name: str, gate: str) -> None:
    """Editing one record without the ones that hang on it fails every gate of the run, with that record's name."""
    change, words = ALTERED[name]
    case.edit(name, change)
    red = case.red(gate, closing=True)
    assert len(red) == (1 if gate == "assembled_run" else 16)
    assert all(words in message for message in red.values()), red


@pytest.mark.parametrize("name", sorted(BOOKS))
def test_a_book_that_was_altered_alone(case: Case, name: str) -> None:
    """A ledger or statistics that don't follow are found, and the rows that weren't altered are judged as before."""
    change, words = ALTERED[name]
    case.edit(name, change)
    red = case.red("assembled_run", closing=True)
    assert len(red) == 1
    assert all(words in message for message in red.values()), red
    assert len(case.red("observations", closing=True)) <= 1  # a row that was altered, and no other
    others = ("prompt_hashes", "independent_replay", "paired_comparison")
    assert [case.red(gate, closing=True) for gate in others] == [{}, {}, {}]


def test_a_session_over_a_record_that_was_altered_alone(case: Case, judge: Judge) -> None:
    """The same end to end: an environment that nobody measured leaves no gate of the run green."""
    case.edit("environment.json", ALTERED["environment.json"][0])
    assert judge().code == 1
    failed = failed_gates(case.run)
    green = {gate["id"] for gate in read(case.run / "audit.json")["gates"]} - set(failed)
    assert green == {"registration", "normal_return", "decode_contract"}
    assert all("environment" in text for text in junit_messages(case.run).values())


def test_a_session_over_statistics_that_were_altered_alone(case: Case, judge: Judge) -> None:
    """Statistics that don't follow from the ledger fail the session, by the gate that makes them again."""
    case.edit("statistics.json", ALTERED["statistics.json"][0])
    assert judge().code == 1
    assert set(failed_gates(case.run)) == {"assembled_run"}
    assert all("statistics.json" in text for text in junit_messages(case.run).values())


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda unit: cell_of(unit, "s1_eos").update(left_padding=9), "s1_eos"),
        (lambda unit: cell_of(unit, "s0_x").update(length=1), "s0_x: length"),
        (lambda unit: unit["cells"].insert(0, unit["cells"].pop(1)), "evidence_sha256"),
    ],
    ids=["padding", "length", "swapped rows"],
)
def test_a_journal_that_was_altered_alone(case: Case, damage: Any, words: str) -> None:
    """A journal whose digests don't hold is evidence of nothing: the run is red; the message names source and cell."""
    case.edit_unit(damage)
    for gate in ("normal_return", "assembled_run"):
        red = case.red(gate, closing=True)
        assert red
        assert all(words in message and case.source() in message for message in red.values()), red


def test_two_rows_of_a_unit_that_changed_places(case: Case, judge: Judge) -> None:
    """With renewed digests the order of rows is still the protocol's or none: no run assembles."""

    def swap(journal: Any) -> None:
        cells = journal["evidence"]["cells"]
        cells[0], cells[1] = cells[1], cells[0]

    edit(case.journal(), swap)
    with pytest.raises(JournalError, match="rows: expected"):
        case.seal()
    assert judge().code == 1
    assert "rows: expected ['s0_eos', 's1_eos'" in " ".join(
        " ".join(junit_messages(case.run).values()).split()
    ).replace("&#x27;", "'")


def test_another_placements_tokens(case: Case, judge: Judge) -> None:
    """One token of the other placement, with its digests renewed, is red in that gate alone, by cell and step."""

    def another(unit: Any) -> None:
        cell = cell_of(unit, "s1_period")
        cell["generated_ids"][7] = 300 if cell["generated_ids"][7] != 300 else 301

    case.edit_unit(another, part="placement")
    case.seal("placement")
    assert judge().code == 1
    assert failed_gates(case.run) == {"placement_equivalence": [f"{case.source()}:s1_period"]}
    (said,) = junit_messages(case.run).values()
    assert "s1_period generated_ids from step 7: expected" in " ".join(said.split())


def test_the_resident_placement_under_the_other_name(case: Case, judge: Judge) -> None:
    """A placement part that was really made with the resident map is red on every cell."""
    resident = read(case.run / "placement.json") | {"id": "nano-disk"}
    case.edit("placement/placement.json", lambda one: (one.clear(), one.update(resident)))
    case.seal("placement")
    assert judge().code == 1
    failed = failed_gates(case.run)
    assert set(failed) == {"placement_equivalence"}
    assert len(failed["placement_equivalence"]) == 16
    assert all("the same map twice" in text for text in junit_messages(case.run).values())


def copied_replay(case: Case, forged: tuple[str, ...], *, moments: bool = False) -> None:
    """The first run's journals under replay/, with these fields of the process forged, and new moments."""
    for at in (0, 1):
        own = read(case.journal(at, "replay"))["observation"]
        shutil.copyfile(case.journal(at), case.journal(at, "replay"))

        def forge(journal: Any, own: Any = own) -> None:
            journal["evidence"]["grid"] = "long_repro"
            journal["observation"]["process"].update({name: own["process"][name] for name in forged})
            journal["observation"].update({n: own[n] for n in ("wall_ns", "finished_us")} if moments else {})

        edit(case.journal(at, "replay"), forge)
    case.seal("replay")


@pytest.mark.parametrize(
    ("forged", "words"),
    [
        ((), "processes: expected the started children"),
        (("pid",), "model loads: expected none shared, found 1 shared"),
        (("pid", "model_load_id"), "shared processes: expected []"),
        (("pid", "model_load_id", "started_us"), "calls: expected two, found the same one twice"),
    ],
)
def test_a_replay_fed_with_the_runs_own_journals(case: Case, forged: tuple[str, ...], words: str) -> None:
    """Copied journals are found out by PID, model load, process start or moment: one unforged witness is enough."""
    copied_replay(case, forged)
    red = case.red("independent_replay", closing=True)
    assert len(red) == 16
    assert all(words in message for message in red.values())


def test_a_session_over_a_replay_fed_with_the_runs_own_journals(case: Case, judge: Judge) -> None:
    """The same end to end, with the PIDs forged: that gate alone is red, on every cell."""
    copied_replay(case, ("pid",))
    assert judge().code == 1
    failed = failed_gates(case.run)
    assert set(failed) == {"independent_replay"}
    assert len(failed["independent_replay"]) == 16
    assert all(
        "model loads: expected none shared" in " ".join(text.split()) for text in junit_messages(case.run).values()
    )


def test_a_replay_with_every_witness_forged_is_not_found_out(case: Case) -> None:
    """Known limit: who forges process, moments and hashes of every unit makes a replay that the files allow."""
    copied_replay(case, ("pid", "model_load_id", "started_us", "model_loaded_us", "str_hash"), moments=True)
    assert case.red("independent_replay") == {}


def test_snapshots_of_the_very_run(case: Case, judge: Judge) -> None:
    """An accepted run isn't judged by its own snapshots: that gate alone is red, on every unit."""
    accept(case.run, Places(case.tree))
    assert judge().code == 1
    failed = failed_gates(case.run)
    assert failed == {"frozen_snapshots": [case.source(0), case.source(1)]}
    assert all("this run's own: nothing to compare" in text for text in junit_messages(case.run).values())


def test_a_smoke_record_that_does_not_serve(case: Case, judge: Judge) -> None:
    """A smoke record of another protocol digest and environment, forged with its digests, is red by itself."""
    forge_audit(case.smoke, lambda audit: audit.update(protocol_digest="0" * 64, environment_sha256="1" * 64))
    assert judge().code == 1
    assert failed_gates(case.run) == {"smoke_passed": ["whole"]}
    said = " ".join(" ".join(junit_messages(case.run).values()).split())
    for words in ("smoke audit record that this run noted", "smoke protocol digest", "smoke environment"):
        assert f"{words}: expected" in said


@pytest.mark.parametrize(
    ("part_change", "words"),
    [
        (lambda unit: unit["checks"].update(argmax=0), "the emitted ID is the argmax: expected"),
        (lambda unit: unit["rng_after"]["numpy"].update(sha256="0" * 64), "numpy generator: expected"),
        (lambda unit: cell_of(unit, "s0_x").update(left_padding=77), "left padding: expected"),
    ],
)
def test_a_part_that_agrees_and_does_not_hold(case: Case, part_change: Any, words: str) -> None:
    """What is required of every run is required of a replay too, not only that its cells are equal."""
    case.edit_unit(part_change, part="replay")
    case.seal("replay")
    red = case.red("independent_replay")
    assert red
    assert any(words in message for message in red.values())


def test_a_failure_in_an_attempt_that_was_moved_aside(case: Case) -> None:
    """A replay that failed once isn't made good by another attempt."""
    folder = case.run / "replay.incomplete-1/failures"
    folder.mkdir(parents=True)
    (folder / "unit.json").write_text("{}")
    red = case.red("independent_replay")
    assert len(red) == 16
    assert all("attempts that were moved aside" in message for message in red.values())


def test_a_part_of_another_run(case: Case) -> None:
    """A replay that was made for another run is none of this one."""
    edit(case.run / "replay/spec.json", lambda spec: spec.update(run_id="formal-9/replay"))
    red = case.red("independent_replay")
    assert all(
        "part of this run: expected formal-1/replay, found formal-9/replay" in message for message in red.values()
    )
    assert red


def test_a_recorded_failure(case: Case, judge: Judge) -> None:
    """A unit that once didn't return is red in every cell and its run isn't passed, whatever was made later."""
    (case.run / "failures").mkdir()
    failure = {
        "schema": 1,
        "protocol_digest": case.loaded.digest,
        "source_id": case.source(1),
        "replicate": "greedy",
        "kind": "non_finite",
        "message": "step 3, row 2",
        "process": read(case.journal())["observation"]["process"],
    }
    (case.run / "failures/one.json").write_text("{}", encoding="ascii")
    edit(case.run / "failures/one.json", lambda record: record.update(failure))
    assert judge().code == 1
    failed = failed_gates(case.run)
    assert set(failed) == {"normal_return"}
    assert len(failed["normal_return"]) == 8
    assert all(row.startswith(case.source(1)) for row in failed["normal_return"])
    assert all("non_finite: step 3, row 2" in text for text in junit_messages(case.run).values())
