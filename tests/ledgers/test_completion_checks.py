"""Completion and sandbox checks, called directly on evidence by hand: each difference planted once and named."""

from dataclasses import dataclass

import msgspec
import pytest
from pregate_support.books import FIRST_ID, CompletionBuilder, signed

from harness.canon import digest, sha256_hex
from harness.checks.completion import baseline_prefix, baseline_prompts, completion_state
from harness.checks.sandbox import sandbox_verdicts
from harness.errors import HarnessError, JournalError, SandboxError
from harness.evidence import RunEvidence, guarded
from harness.journal.folder import RunFolder, write_record
from harness.ledgers.completion import completion_ledger
from harness.protocols.grids import RowKey, UnitKey
from harness.protocols.load import load_protocol
from harness.records.base import Frozen
from harness.records.run import Deviation, RunSpec
from harness.records.sandbox import RegisteredImage

replace = msgspec.structs.replace
FENCED = "```python\ndef f(n):\n    return n + 1\n```"
MATH = UnitKey("math", 0, "math/0000", "greedy")
CODE = UnitKey("code", 0, "code/0000", "greedy")
KEY = "code-00-code-0000-greedy-"


@dataclass
class Case:
    """Sound evidence of a formal run of code and mathematics, to be changed before a check is called."""

    books: CompletionBuilder
    path: object
    run: object
    executions: dict
    facts: object
    spec: RunSpec
    ledger: object = None
    registered: object = None
    protocol: object = None
    unjudged: HarnessError | None = None

    def evidence(self) -> RunEvidence:
        """The evidence as it lies on disk now."""
        folder = RunFolder(self.path)
        write_record(folder.file("run.json"), self.run)
        write_record(folder.file("spec.json"), self.spec)
        if self.facts is not None:
            write_record(folder.file("sandbox.json"), self.facts)
        for key, execution in self.executions.items():
            write_record(folder.path / "sandbox" / f"{key}.json", execution)
        if self.ledger is not None:
            write_record(folder.file("ledger.json"), self.ledger)
        loaded = load_protocol("nano-completion")
        object.__setattr__(loaded, "protocol", self.protocol or self.books.protocol)
        source = self.registered or self.run.baseline
        evidence = RunEvidence(loaded, folder, unjudged=self.unjudged, baseline_source=lambda _: source)
        evidence.__dict__["registered_tasks"] = {"code/0000": self.books.task("code/0000")}
        return evidence

    def check(self, check, unit, item):
        """What a check finds in one row."""
        return guarded(check, self.evidence(), RowKey(unit, item))

    def change_cell(self, **changes):
        """Change the run's mathematics cell s0_eos."""
        unit = self.run.units[1]
        cells = (replace(unit.cells[0], **changes), *unit.cells[1:])
        self.run = replace(self.run, units=(self.run.units[0], replace(unit, cells=cells)))

    def change_execution(self, condition, *, limits=None, container=None, sign=True, **changes):
        """Change an execution's evidence, with an evidence digest that fits again."""
        old = self.executions[KEY + condition]
        found = limits or old.limits
        evidence = replace(old.evidence, **({"limits_sha256": digest(found)} | changes))
        new = signed(evidence, found, container or old.observation.container)
        self.executions[KEY + condition] = new if sign else replace(new, evidence_sha256=old.evidence_sha256)


@pytest.fixture
def case(books, say, tmp_path) -> Case:
    """The sound evidence."""
    code = books.unit("code", 0, {"*": say(FENCED), "s0_x": say("")}, grid="formal")
    math = books.unit("math", 0, {"*": say("so 12"), "s1_eos": say("so 12", eos=False)}, grid="formal")
    run = books.completion_run((code, math), gold={"math/0000": "12"}, grid="formal")
    executions = books.executions(run, {"s1_x": "timeout"})
    spec = RunSpec(
        schema=1, run_id="formal-1", protocol="nano-completion", registered_id=run.registered_id,
        protocol_digest=run.protocol_digest, tier="formal", grid="formal", placement="nano-resident",
        domains=run.domains, port=False, deviations=(), threads=1,
    )  # fmt: skip
    book = completion_ledger(books.protocol, run, executions)
    return Case(books, tmp_path, run, executions, books.facts(), spec, ledger=book)


@pytest.mark.parametrize("check", [baseline_prompts, baseline_prefix, completion_state])
@pytest.mark.parametrize("unit", [MATH, CODE])
def test_sound_cells_hold(case, check, unit):
    """The undamaged evidence has no difference in any cell."""
    evidence = case.evidence()
    assert [check(evidence, RowKey(unit, one.id)) for one in case.books.protocol.conditions] == [()] * 8


def test_sound_verdicts_hold(case):
    """Nor in any program's verdict, a failed one and one that was never needed among them."""
    evidence = case.evidence()
    assert [sandbox_verdicts(evidence, RowKey(CODE, one.id)) for one in case.books.protocol.conditions] == [()] * 8


def baseline_of(case, **changes):
    """The registered baseline with changed fields."""
    return replace(case.run.baseline, **changes)


BASELINES = {
    "baseline run": lambda b: {"run_sha256": "0" * 64},
    "baseline protocol": lambda b: {"protocol_digest": "0" * 64},
    "baseline cell as recorded": lambda b: {"cells": (*b.cells[:8], replace(b.cells[8], length=9), *b.cells[9:])},
    "baseline is a port's": lambda b: {"port": True},
    "max_new_tokens": lambda b: {"max_new_tokens": 3},
    "environment_sha256": lambda b: {"environment_sha256": "0" * 64},
    "another cell": lambda b: {"cells": (*b.cells[:-1], replace(b.cells[-1], length=9))},
    "a lost cell": lambda b: {"cells": b.cells[:-1]},
}
REST = "baseline's other fields and cells as recorded"


@pytest.mark.parametrize("fault", BASELINES)
def test_a_recorded_baseline_that_isnt_the_registered_one_is_found(case, fault):
    """R05 2: whatever of the recorded baseline isn't the registered one, a row that stands on it says so."""
    case.registered = case.run.baseline
    case.run = replace(case.run, baseline=baseline_of(case, **BASELINES[fault](case.run.baseline)))
    found = " ".join(case.check(baseline_prompts, MATH, "s0_eos"))
    assert f"math/0000 greedy s0_eos {fault if fault.startswith('baseline') else REST}: expected" in found


def test_another_prompt_hash_is_found(case):
    """The hash of the baseline and of the cell."""
    case.change_cell(prompt_sha256="0" * 64)
    (found,) = case.check(baseline_prompts, MATH, "s0_eos")
    assert f"prompt_sha256: expected {case.run.baseline.cells[8].prompt_sha256}, found {'0' * 64}" in found


def test_a_missing_baseline_cell_is_found(case):
    """In both checks, by its identity."""
    cells = tuple(one for one in case.run.baseline.cells if (one.source_id, one.condition) != ("math/0000", "s0_eos"))
    case.run = replace(case.run, baseline=baseline_of(case, cells=cells))
    assert any("prompt_sha256: expected none" in line for line in case.check(baseline_prompts, MATH, "s0_eos"))
    (found,) = case.check(baseline_prefix, MATH, "s0_eos")
    assert found == "math/0000 greedy s0_eos: expected tokens of the baseline, found none"


def test_a_run_that_is_its_own_baseline_is_found(case):
    """A baseline was made apart."""
    evidence = case.evidence()
    own = replace(case.run.baseline, run_sha256=evidence.run_sha256)
    evidence.__dict__["run"] = replace(case.run, baseline=own)
    evidence.__dict__["registered_baseline"] = own
    (found,) = baseline_prompts(evidence, RowKey(MATH, "s0_eos"))
    assert "baseline made apart: expected True, found False" in found


def test_a_ports_baseline_is_of_its_environment(case):
    """Weights and versions are in the environment's digest."""
    case.spec = replace(case.spec, port=True)
    other = baseline_of(case, port=True, environment_sha256="0" * 64)
    case.run, case.registered = replace(case.run, baseline=other), other
    (found,) = case.check(baseline_prompts, MATH, "s0_eos")
    assert f"baseline environment: expected {'0' * 64}, found {case.run.environment_sha256}" in found


def test_a_registered_runs_baseline_is_no_ports(case):
    """And the other way round: port stands on port."""
    case.spec = replace(case.spec, port=True)
    (found,) = case.check(baseline_prompts, MATH, "s0_eos")
    assert "baseline is a port's: expected True, found False" in found


@pytest.mark.parametrize("step", [0, 3])
def test_another_token_of_the_prefix_is_found(case, step):
    """R05 2: at which step, out of how many, and the tokens that follow on both sides."""
    unit = case.run.units[1]
    ids = list(unit.cells[0].generated_ids)
    ids[step] = FIRST_ID + ord("z")
    case.change_cell(generated_ids=tuple(ids))
    (found,) = case.check(baseline_prefix, MATH, "s0_eos")
    assert f"generated_ids from step {step} of 4: expected [" in found
    assert str(FIRST_ID + ord("z")) in found


def test_a_token_after_the_prefix_may_differ(case):
    """Only the first min(budget, length) tokens are the baseline's."""
    ids = (*case.run.units[1].cells[0].generated_ids[:4], 1, 2, 3)
    case.change_cell(generated_ids=ids)
    assert case.check(baseline_prefix, MATH, "s0_eos") == ()


def test_a_shorter_output_than_the_prefix_is_found(case):
    """An output that stops within the prefix doesn't begin as the baseline did."""
    case.change_cell(generated_ids=case.run.units[1].cells[0].generated_ids[:2])
    (found,) = case.check(baseline_prefix, MATH, "s0_eos")
    assert "from step 2 of 4" in found


def change_row(case, **changes):
    """Change the ledger's row of mathematics s0_eos."""
    rows = list(case.ledger.cells)
    rows[8] = replace(rows[8], **changes)
    case.ledger = replace(case.ledger, cells=tuple(rows))


def test_another_class_is_found(case):
    """R05 4.4: the class follows from the accounts."""
    change_row(case, completion="TASK_TERMINAL_BEFORE_EOS")
    (found,) = case.check(completion_state, MATH, "s0_eos")
    assert "completion class: expected NATURAL_EOS, found TASK_TERMINAL_BEFORE_EOS" in found


def test_another_stop_is_found(case):
    """R05 4.1: the stop follows from the cell."""
    change_row(case, stop="budget_truncated")
    (found,) = case.check(completion_state, MATH, "s0_eos")
    assert "stop: expected natural_eos, found budget_truncated" in found


def test_other_stop_fails(case):
    """R05 4.1: it is investigated, also where ledger and cell agree on it."""
    case.change_cell(eos=False, truncated=False)
    change_row(case, stop="other_stop", completion="OTHER_STOP")
    (found,) = case.check(completion_state, MATH, "s0_eos")
    assert "found OTHER_STOP: investigate" in found


def test_an_output_that_ended_twice_is_found(case):
    """EOS and cut at once is a difference of the row and no crash of the check."""
    case.change_cell(truncated=True)
    (found,) = case.check(completion_state, MATH, "s0_eos")
    assert "stop: expected EOS or the budget's end, found both" in found


@pytest.mark.parametrize("count", [0, 2])
def test_a_cell_has_one_state(case, count):
    """Neither none nor two."""
    row = case.ledger.cells[8]
    rest = tuple(one for one in case.ledger.cells if one is not row)
    case.ledger = replace(case.ledger, cells=rest + (row,) * count)
    (found,) = case.check(completion_state, MATH, "s0_eos")
    assert found == f"math/0000 greedy s0_eos completion states: expected 1, found {count}"


EVIDENCE = {
    "candidate_sha256": {"candidate_sha256": "0" * 64},
    "task_sha256": {"task_sha256": "0" * 64},
    "tests_sha256": {"tests_sha256": "0" * 64},
    "outcome": {"outcome": "infrastructure", "nonce_returned": False},
    "exit code of a pass": {"exit_code": 137},
    "nonce of the last assertion": {"nonce_returned": False},
    "image_id": {"image_id": "sha256:other"},
    "python": {"python": "CPython 3.9.1"},
    "harness_sha256": {"harness_sha256": "0" * 64},
}


@pytest.mark.parametrize("name", EVIDENCE)
def test_other_evidence_of_a_verdict_is_found(case, name):
    """R05 6: program, task, tests, checker, image and what a pass rests on; exactly the one that was planted."""
    case.change_execution("s0_eos", **EVIDENCE[name])
    (found,) = case.check(sandbox_verdicts, CODE, "s0_eos")
    assert found.startswith(f"code/0000 greedy s0_eos {name}: expected ")


def test_a_failed_verdict_with_the_nonce_is_found(case):
    """The nonce says that the last assertion held: with it a program can't have timed out."""
    case.change_execution("s1_x", nonce_returned=True)
    (found,) = case.check(sandbox_verdicts, CODE, "s1_x")
    assert "nonce of the last assertion with exit code 0: expected False, found True" in found


LIMITS = {
    "network": "bridge",
    "read_only": False,
    "user": "0:0",
    "cap_drop": (),
    "cap_add": ("SYS_ADMIN",),
    "security_options": (),
    "privileged": True,
    "memory_bytes": 0,
    "memory_swap_bytes": -1,
    "pids": 0,
    "nano_cpus": 0,
    "tmpfs": {"/tmp": "size=16777216,exec"},
    "mounts": ("host:/data",),
    "ipc": "host",
}


@pytest.mark.parametrize("name", LIMITS)
def test_another_flag_of_the_container_is_found(case, name):
    """R05 6, to the last flag: what the engine said is held against the contract, not against what was asked for."""
    limits = replace(case.executions[KEY + "s0_eos"].limits, **{name: LIMITS[name]})
    case.change_execution("s0_eos", limits=limits)
    (found,) = case.check(sandbox_verdicts, CODE, "s0_eos")
    assert found.startswith(f"code/0000 greedy s0_eos container flag {name}: expected ")


def test_every_flag_is_planted(books):
    """A flag that the record gains must be planted here."""
    assert set(LIMITS) == set(books.facts().limits.__struct_fields__)


def test_a_shared_container_is_found(case):
    """R05 6: each candidate in a fresh one."""
    case.change_execution("s1_eos", container=case.executions[KEY + "s0_eos"].observation.container)
    (found,) = case.check(sandbox_verdicts, CODE, "s0_eos")
    assert "executions in this container: expected 1, found 2" in found


def test_a_missing_execution_is_found(case):
    """A program without a verdict has none, and isn't a failed one."""
    del case.executions[KEY + "s0_eos"]
    (found,) = case.check(sandbox_verdicts, CODE, "s0_eos")
    assert found == "code/0000 greedy s0_eos: expected a verdict of the sandbox, found infrastructure: no execution"


def test_why_there_is_no_verdict_is_said(case):
    """What stopped the execution stands in the row."""
    case.executions.clear()
    case.unjudged = SandboxError("engine", expected="an engine that answers", found="none", todo="Start it.")
    (found,) = case.check(sandbox_verdicts, CODE, "s0_eos")
    assert "found infrastructure: engine: expected an engine that answers, found none. Start it." in found


def test_a_verdict_on_nothing_is_found(case):
    """A cell with nothing extracted has no execution."""
    case.executions[KEY + "s0_x"] = case.executions[KEY + "s0_eos"]
    (found,) = case.check(sandbox_verdicts, CODE, "s0_x")
    assert found == "code/0000 greedy s0_x: expected no verdict: nothing was extracted, found one"


def test_altered_evidence_is_found(case):
    """An execution that isn't its own digest is a difference of the row, by its file."""
    case.change_execution("s0_eos", sign=False, outcome="timeout")
    (found,) = case.check(sandbox_verdicts, CODE, "s0_eos")
    assert f"{KEY}s0_eos.json: evidence_sha256: expected" in found


def test_missing_facts_are_found(case):
    """What all executions share is on record."""
    case.facts = None
    (found,) = case.check(sandbox_verdicts, CODE, "s0_eos")
    assert "sandbox.json: expected a readable sandbox facts" in found


@pytest.mark.parametrize(("registered", "port", "listed", "holds"), [
    (True, False, False, True),
    (False, False, False, False),
    (False, True, False, False),
    (False, True, True, True),
    (False, False, True, False),
])  # fmt: skip
def test_a_registered_image_or_a_ports_deviation(case, registered, port, listed, holds):
    """Where the protocol registers an image, another one needs a port that lists it."""
    image = RegisteredImage(reference="python:3.11-alpine", digest=Frozen(sha256="2" * 64))
    case.protocol = replace(case.books.protocol, sandbox=replace(case.books.protocol.sandbox, image=image))
    case.facts = replace(case.facts, registered=registered)
    deviation = Deviation(field="sandbox.image", registered="python:3.11-alpine", actual="local")
    case.spec = replace(case.spec, port=port, deviations=(deviation,) if listed else ())
    found = case.check(sandbox_verdicts, CODE, "s0_eos")
    words = ("code/0000 greedy s0_eos registered image: expected True, found False",)
    assert found == (() if holds else words)


def test_no_difference_shows_a_test(case):
    """Digests and words only: no difference carries the tests' text or the program's."""
    case.change_execution("s0_eos", tests_sha256=sha256_hex(b"x"), candidate_sha256="0" * 64, task_sha256="0" * 64)
    found = " ".join(case.check(sandbox_verdicts, CODE, "s0_eos"))
    assert len(found) > 0
    assert not [word for word in ("assert", "candidate(1)", "return n", "def check") if word in found]


def test_a_stranger_execution_turns_the_ledger_red(case):
    """An execution of no cell of the run stops the ledger, and with it every row that is held against it."""
    case.executions["code-00-code-0009-greedy-s0_eos"] = case.executions[KEY + "s0_eos"]
    evidence = case.evidence()
    with pytest.raises(JournalError, match=r"code-0009-greedy-s0_eos.json: expected no execution"):
        completion_ledger(case.books.protocol, evidence.run, case.executions)
