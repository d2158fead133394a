"""The gate `placement_attempts`, held against one planted fault at a time: it is red, and the message says why."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from harness.canon import canonical_bytes
from harness.checks.attempts import placement_attempts
from harness.evidence import guarded
from harness.journal.folder import RunFolder
from harness.protocols.grids import RowKey
from harness.run.ladder import Ground, generate_down_the_ladder

WHOLE = RowKey(None, "whole")
ASIDE, CHECK = "attempts/01-nano-resident", "attempts/01-nano-disk-check"
Damage = Callable[[RunFolder], None]


@dataclass(frozen=True)
class Fault:
    """A fault, and words of the message that names it."""

    name: str
    plant: Damage
    words: str


def edited(name: str, change: Callable[[Any], None]) -> Damage:
    """A JSON file of the run folder after a change, canonical again."""

    def plant(folder: RunFolder) -> None:
        path = folder.file(name)
        content = json.loads(path.read_bytes())
        change(content)
        path.write_bytes(canonical_bytes(content))

    return plant


def in_attempt(change: Callable[[Any], None]) -> Damage:
    """A change of the recorded attempt."""
    return edited("attempts.json", lambda record: change(record["attempts"][0]))


def in_check(change: Callable[[Any], None]) -> Damage:
    """A change of the recorded check."""
    return in_attempt(lambda attempt: change(attempt["checks"][0]))


def in_failure(**changes: Any) -> Damage:
    """Fields of the failure, in attempts.json and in the attempt's own record alike."""

    def plant(folder: RunFolder) -> None:
        in_attempt(lambda attempt: attempt["out_of_memory"].update(changes))(folder)
        edited(f"{ASIDE}/oom.json", lambda record: record.update(changes))(folder)

    return plant


def both(*damages: Damage) -> Damage:
    """Several damages."""

    def plant(folder: RunFolder) -> None:
        for damage in damages:
            damage(folder)

    return plant


def copied(source: str, target: str) -> Damage:
    """A file or folder twice."""

    def plant(folder: RunFolder) -> None:
        one, other = folder.file(source), folder.file(target)
        other.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(one, other) if one.is_dir() else shutil.copyfile(one, other)

    return plant


def removed(name: str) -> Damage:
    """A file or folder is gone."""

    def plant(folder: RunFolder) -> None:
        path = folder.file(name)
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    return plant


def unit_of(part: str) -> Callable[[RunFolder], str]:
    """The name of a part's first journal, within the run folder."""
    return lambda folder: f"{part}/journal/{sorted((folder.path / part / 'journal').iterdir())[0].name}"


def copied_process(folder: RunFolder) -> None:
    """The check's first unit says that the run's own process made it."""
    own = sorted((folder.path / "journal").iterdir())[0]
    process = json.loads(own.read_bytes())["observation"]["process"]
    edited(unit_of(CHECK)(folder), lambda journal: journal["observation"].update(process=process))(folder)


def another_token(folder: RunFolder) -> None:
    """The check's run.json has another token than its journals."""
    edited(f"{CHECK}/run.json", lambda run: run["units"][0]["cells"][0]["generated_ids"].append(7))(folder)


def another_smoke(folder: RunFolder) -> None:
    """The smoke run has another token than the check, and a run.json of its own digest."""
    smoke = RunFolder(folder.path.parent / "smoke-1")
    edited("run.json", lambda run: run["units"][0]["cells"][0]["generated_ids"].append(7))(smoke)


def same_map(folder: RunFolder) -> None:
    """The smoke run was placed as the check was."""
    placed = json.loads(folder.file(f"{CHECK}/placement.json").read_bytes())
    smoke = RunFolder(folder.path.parent / "smoke-1")
    edited("placement.json", lambda record: record.update(placed))(smoke)


def second_attempt(folder: RunFolder) -> None:
    """The same attempt twice."""
    edited("attempts.json", lambda record: record["attempts"].append(record["attempts"][0]))(folder)


RECORDED = (
    Fault("no list", removed("attempts.json"), "attempts moved aside: expected [], found ['01-nano-disk-check', '01-"),
    Fault("empty list", edited("attempts.json", lambda one: one.update(attempts=[])), "attempts: expected True"),
    Fault("other protocol", edited("attempts.json", lambda one: one.update(protocol_digest="0")), "protocol digest"),
    Fault("twice", second_attempt, "numbers: expected [1, 2], found [1, 1]"),
    Fault("number", in_attempt(lambda one: one.update(number=2)), "numbers: expected [1], found [2]"),
    Fault(
        "placement of the run",
        edited("placement.json", lambda one: one.update(id="nano-resident")),
        "placement of the run: expected ['nano-disk'], found ['nano-resident']",
    ),
    Fault(
        "ended",
        in_attempt(lambda one: one.update(next={"state": "none", "reason": "x"})),
        "placement of the run: expected ['none'], found ['nano-disk']",
    ),
    Fault(
        "not on the ladder",
        in_attempt(lambda one: one.update(placement="port")),
        "placements on the ladder: expected [], found ['port']",
    ),
    Fault("stranger", copied(ASIDE, "attempts/02-nano-disk"), "folders of attempts and checks: expected"),
    Fault(
        "own record", copied(f"{ASIDE}/oom.json", "oom.json"), "out-of-memory record of the run itself: expected none"
    ),
    Fault("no failure", removed(f"{ASIDE}/oom.json"), "oom.json: expected a readable out-of-memory record"),
    Fault(
        "other failure",
        edited(f"{ASIDE}/oom.json", lambda one: one.update(message="x")),
        "attempt 1 out-of-memory record: expected",
    ),
    Fault(
        "a result", copied("run.json", f"{ASIDE}/run.json"), "results in its folder: expected [], found ['run.json']"
    ),
    Fault("units landed", in_attempt(lambda one: one.update(units_landed=3)), "units landed: expected 3, found 2"),
    Fault(
        "whole grid",
        both(removed(f"{ASIDE}/journal"), copied("journal", f"{ASIDE}/journal")),
        "a unit that didn't land: expected True, found False",
    ),
    Fault(
        "no check", in_attempt(lambda one: one.update(checks=[])), "checks: expected [('nano-disk', True)], found []"
    ),
    Fault("digest of the failure", in_failure(protocol_digest="0"), "protocol digest of the failure: expected"),
    Fault("placement of the failure", in_failure(placement="nano-disk"), "placement of the failure: expected nano-res"),
    Fault(
        "bytes made up", in_failure(requested={"state": "bytes", "bytes": 419430400, "words": "400.00 MiB"}), "requeste"
    ),
    Fault("no peak", in_failure(memory_bytes={}), "peak memory: expected True"),
    Fault(
        "no device map",
        edited(f"{ASIDE}/placement.json", lambda one: one.update(device_map={})),
        "placement that it was made under: expected",
    ),
    Fault("no failure record", removed(f"{ASIDE}/failures"), "its unit's failure record: expected True"),
)
CHECKED = (
    Fault("other smoke", in_check(lambda one: one.update(smoke_run_sha256="0")), "smoke that it was compared with"),
    Fault("smoke altered", another_smoke, "smoke run: expected"),
    Fault("run named", in_check(lambda one: one["result"].update(run_sha256="0")), "run that its journals assemble to"),
    Fault("run altered", another_token, "run.json: expected"),
    Fault(
        "count",
        in_check(lambda one: one["result"].update(equal=15)),
        "comparison made again, equal: expected 16, found 15",
    ),
    Fault(
        "fields", in_check(lambda one: one["result"].update(fields=["eos"])), "comparison made again, fields: expected"
    ),
    Fault("not passed", in_check(lambda one: one.update(passed=False)), "passed: expected True, found False"),
    Fault("other cells", another_smoke, "generated_ids from step"),
    Fault("same map", same_map, "comparison made again, two_maps: expected False, found True"),
    Fault("same process", copied_process, "processes shared with the run: expected [], found [("),
    Fault("no check run", removed(CHECK), "expected a readable"),
    Fault(
        "another's part",
        edited(f"{CHECK}/spec.json", lambda one: one.update(run_id="formal-2/attempts/01-nano-disk-check")),
        "part of this run: expected formal-1/attempts/01-nano-disk-check, found formal-2",
    ),
    Fault("failed", copied(f"{ASIDE}/failures", f"{CHECK}/failures"), "failures: expected [], found ['out_of_memory']"),
    Fault(
        "check wasn't made",
        in_check(lambda one: one.update(result={"state": "out_of_memory", "out_of_memory": {}})),
        "attempts.json",
    ),
)


@pytest.mark.parametrize("fault", [*RECORDED, *CHECKED], ids=lambda fault: fault.name)
def test_a_planted_fault_is_red(stepped, fault):
    """What the record says and what lies in the folder are held against each other and against the ladder."""
    fault.plant(stepped.folder)
    found = guarded(placement_attempts, stepped.evidence, WHOLE)
    assert any(fault.words in one for one in found), found


def test_a_check_that_ran_out_is_no_pass(stepped):
    """Recorded as run out of memory, the check needs its own record, has no result, and doesn't pass."""

    def change(check):
        failure = json.loads(stepped.folder.file(f"{ASIDE}/oom.json").read_bytes()) | {"placement": "nano-disk"}
        stepped.folder.file(f"{CHECK}/oom.json").write_bytes(canonical_bytes(failure))
        check["result"] = {"state": "out_of_memory", "out_of_memory": failure}

    in_check(change)(stepped.folder)
    found = " ".join(guarded(placement_attempts, stepped.evidence, WHOLE))
    assert "results in its folder: expected [], found ['run.json']" in found
    assert "passed: expected False, found True" in found


def test_a_run_that_never_ran_out_passes(fresh):
    """And is red as soon as anything of an attempt lies in its folder."""
    ground = Ground(smoke=fresh.smoke, close=lambda part: None)
    generate_down_the_ladder(fresh.loaded, fresh.request(), fresh.folder, ground)
    assert placement_attempts(fresh.evidence, WHOLE) == ()
    fresh.folder.file("oom.json").write_bytes(b"{}")
    (found,) = placement_attempts(fresh.evidence, WHOLE)
    assert "out-of-memory record of the run itself: expected none, found oom.json" in found
