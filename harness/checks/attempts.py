"""What replaced a placement that ran out of memory (R05 3): every failure recorded, every step down the ladder proved.

A placement that passes its check shares the smoke grid's outputs with the last smoke: that bounds nothing about memory.
Peaks and processes are observations, as elsewhere; whoever forges all of them isn't found out here.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from harness.canon import canonical_bytes, sha256_hex
from harness.checks.generation import output_identity
from harness.checks.pairs import same_cell, unit_holds
from harness.checks.prompts import prompt_hashes
from harness.checks.whole import layer_offloaded
from harness.errors import HarnessError
from harness.evidence import Differences, PairEvidence, RunEvidence, differs, guarded
from harness.journal.assemble import assemble, read_placement
from harness.journal.attempts import (
    ATTEMPTS,
    CHECK,
    FOLDER,
    OUT_OF_MEMORY,
    attempt_folder,
    check_folder,
    out_of_memory_of,
)
from harness.journal.folder import RunFolder, failures, journals, read_record
from harness.journal.requested import requested_of
from harness.protocols.grids import RowKey, placement_rule
from harness.records.attempts import (
    Attempt,
    Attempts,
    Compared,
    NextPlacement,
    OutOfMemory,
    PlacementCheck,
    WhileDecoding,
)
from harness.records.audit import SmokeReference
from harness.records.protocol import ApartRule, LadderProtocol, PairRule

Pair = tuple[str, object, object]
SMOKE = "smoke.json"
RESULTS = ("run.json", "ledger.json", "statistics.json")


def compare(reference: RunEvidence, check: RunEvidence, rule: PairRule) -> Compared:
    """A placement's smoke grid beside the last smoke's: cells equal on every field of the rule, and two placements."""
    one, other = reference.placement, check.placement
    rows = _cells(check, rule)
    pair = PairEvidence(reference, check, rule, ())
    return Compared(
        run_sha256=check.run_sha256,
        fields=rule.fields,
        equal=sum(not guarded(same_cell, pair, row) for row in rows),
        of=len(rows),
        two_maps=one.device_map != other.device_map and one.parameter_bytes != other.parameter_bytes,
        moe_offloaded=layer_offloaded(reference, one, other),
        same_environment=reference.run.environment_sha256 == check.run.environment_sha256,
    )


def holds(compared: Compared) -> bool:
    """Whether a comparison lets the placement be used: all cells equal, and two placements in one environment."""
    proved = compared.two_maps and compared.moe_offloaded and compared.same_environment
    return proved and compared.equal == compared.of > 0


def placement_attempts(evidence: RunEvidence, row: RowKey) -> Differences:
    """R05 3: no attempt ran out of memory, or each is recorded and what replaced it passed the placement gate."""
    path = evidence.folder.file(ATTEMPTS)
    if not path.exists():
        return _differences(row, _undisturbed(evidence))
    record = read_record(path, Attempts, what="attempts")
    noted = read_record(evidence.folder.file(SMOKE), SmokeReference, what="smoke reference")
    reference = replace(evidence, folder=RunFolder(evidence.folder.path.parent / noted.run_id), stopped=None)
    smoke = ("smoke run", noted.run_sha256, reference.run_sha256)
    found = list(_differences(row, (smoke, *_listed(evidence, record))))
    for attempt in record.attempts:
        found += _differences(f"attempt {attempt.number}", _attempt(evidence, attempt))
        for check in attempt.checks:
            where = f"check of {check.placement} after attempt {attempt.number}"
            made = _made(evidence, attempt, check)
            found += _differences(where, _check(evidence, reference, made, check))
            if isinstance(check.result, Compared):
                found += guarded(_cells_hold, PairEvidence(reference, made, _rule(evidence), ()), row)
                reference = made if check.passed else reference
    return tuple(found)


def _undisturbed(evidence: RunEvidence) -> Iterator[Pair]:
    aside = evidence.folder.path / FOLDER
    yield "placement", evidence.spec.placement, evidence.placement.id
    yield "attempts moved aside", [], sorted(path.name for path in aside.glob("*"))
    yield from _ended_here(evidence)


def _ended_here(evidence: RunEvidence) -> Iterator[Pair]:
    there = evidence.folder.file(OUT_OF_MEMORY).exists()
    yield "out-of-memory record of the run itself", "none", OUT_OF_MEMORY if there else "none"


def _listed(evidence: RunEvidence, record: Attempts) -> Iterator[Pair]:
    """The list agrees with itself, with the ladder, with what lies in attempts/ and with the run."""
    made = record.attempts
    after = [step.next.id if isinstance(step.next, NextPlacement) else "none" for step in made]
    begun = [step.placement for step in made]
    names = [f"{one.number:02d}-{one.placement}" for one in made]
    names += [f"{one.number:02d}-{check.placement}{CHECK}" for one in made for check in one.checks]
    aside = evidence.folder.path / FOLDER
    yield "protocol digest", evidence.loaded.digest, record.protocol_digest
    yield "attempts", True, bool(made)
    yield "numbers", list(range(1, len(made) + 1)), [step.number for step in made]
    yield "placements of the attempts", after[:-1], begun[1:]
    yield "placement of the run", after[-1:], [evidence.placement.id]
    yield "placement asked for", evidence.placement.id, evidence.spec.placement
    yield "placements on the ladder", [], [name for name in begun if name not in _ladder(evidence)]
    yield "folders of attempts and checks", sorted(names), sorted(path.name for path in aside.glob("*"))
    yield from _ended_here(evidence)


def _attempt(evidence: RunEvidence, attempt: Attempt) -> Iterator[Pair]:
    """What the attempt left is evidence and no result, and its record is what it left."""
    folder = attempt_folder(evidence.folder, attempt.number, attempt.placement)
    landed = len(list(journals(folder)))
    yield "out-of-memory record", attempt.out_of_memory, out_of_memory_of(folder)
    yield "results in its folder", [], [name for name in RESULTS if folder.file(name).exists()]
    yield "units landed", attempt.units_landed, landed
    yield "a unit that didn't land", True, landed < len(evidence.keys)
    yield "checks", _steps(evidence, attempt), [(check.placement, check.passed) for check in attempt.checks]
    yield from _failure(evidence, attempt.placement, attempt.out_of_memory)
    stage = attempt.out_of_memory.stage
    if isinstance(stage, WhileDecoding):
        yield "placement that it was made under", stage.placement, read_placement(folder)
        failed = [(one.source_id, one.replicate) for one in failures(folder) if one.kind == "out_of_memory"]
        yield "its unit's failure record", True, (stage.source_id, stage.replicate) in failed


def _failure(evidence: RunEvidence, placement: str, failure: OutOfMemory) -> Iterator[Pair]:
    yield "protocol digest of the failure", evidence.loaded.digest, failure.protocol_digest
    yield "placement of the failure", placement, failure.placement
    yield "requested bytes", requested_of(failure.message), failure.requested
    yield "peak memory", True, failure.memory_bytes.get("peak_rss", 0) > 0
    if isinstance(failure.stage, WhileDecoding):
        yield (
            "device map of the failure",
            (placement, True),
            (
                failure.stage.placement.id,
                bool(failure.stage.placement.device_map),
            ),
        )


def _steps(evidence: RunEvidence, attempt: Attempt) -> list[tuple[str, bool]]:
    """The checks that the ladder asks for, from the attempt's placement down to its next: only the last one passed."""
    ladder = _ladder(evidence)
    if attempt.placement not in ladder or not isinstance(attempt.next, NextPlacement) or attempt.next.id not in ladder:
        return []
    lower = ladder[ladder.index(attempt.placement) + 1 : ladder.index(attempt.next.id) + 1]
    return [(name, name == attempt.next.id) for name in lower]


def _check(evidence: RunEvidence, reference: RunEvidence, made: RunEvidence, check: PlacementCheck) -> Iterator[Pair]:
    yield "smoke that it was compared with", reference.run_sha256, check.smoke_run_sha256
    result = check.result
    if not isinstance(result, Compared):
        yield "out-of-memory record", result.out_of_memory, out_of_memory_of(made.folder)
        yield "results in its folder", [], [name for name in RESULTS if made.folder.file(name).exists()]
        yield "passed", False, check.passed
        yield from _failure(evidence, check.placement, result.out_of_memory)
        return
    again = sha256_hex(canonical_bytes(assemble(made.folder, made.loaded)))
    yield "run that its journals assemble to", result.run_sha256, again
    yield "run.json", result.run_sha256, made.run_sha256
    compared = compare(reference, made, _rule(evidence))
    for name in result.__struct_fields__:
        yield f"comparison made again, {name}", getattr(compared, name), getattr(result, name)
    yield "passed", holds(result), check.passed
    yield "placement", check.placement, made.placement.id
    yield "grid", _rule(evidence).grid, made.run.grid
    yield "protocol and port", (evidence.loaded.digest, evidence.run.port), (made.run.protocol_digest, made.run.port)
    yield "failures", [], [one.kind for one in made.failures]
    yield "part of this run", f"{evidence.spec.run_id}/{FOLDER}/{made.folder.path.name}", made.spec.run_id
    for whose, other in (("the run", evidence), ("that smoke", reference)):
        yield f"processes shared with {whose}", [], sorted(_processes(made) & _processes(other))


def _cells_hold(pair: PairEvidence, row: RowKey) -> Differences:
    """Where a check's cells part from that smoke's; and what is required of every run's cell is required of them."""
    del row
    made, found = pair.second, list[str]()
    for cell in _cells(made, pair.rule):
        found += guarded(same_cell, pair, cell)
        found += (*guarded(prompt_hashes, made, cell), *guarded(output_identity, made, cell))
    for unit in made.loaded.units(pair.rule.grid, made.spec.domains):
        found += guarded(unit_holds, made, RowKey(unit, ""))
    return tuple(found)


def _made(evidence: RunEvidence, attempt: Attempt, check: PlacementCheck) -> RunEvidence:
    return replace(evidence, folder=check_folder(evidence.folder, attempt.number, check.placement), stopped=None)


def _cells(evidence: RunEvidence, rule: ApartRule) -> tuple[RowKey, ...]:
    protocol = evidence.loaded.protocol
    units = evidence.loaded.units(rule.grid, evidence.spec.domains)
    return tuple(RowKey(unit, condition.id) for unit in units for condition in protocol.conditions)


def _processes(evidence: RunEvidence) -> set[tuple[int, int]]:
    return {(process.pid, process.started_us) for process in evidence.processes}


def _rule(evidence: RunEvidence) -> PairRule:
    return placement_rule(evidence.loaded.protocol)


def _ladder(evidence: RunEvidence) -> Sequence[str]:
    protocol = evidence.loaded.protocol
    return protocol.placement_ladder if isinstance(protocol, LadderProtocol) else ()


def _differences(where: RowKey | str, pairs: Iterable[Pair]) -> Differences:
    """What differs, up to what can't be read, which is a difference too."""
    name = where.item if isinstance(where, RowKey) else where
    found: list[str] = []
    try:
        found += (differs(f"{name} {what}", one, other) for what, one, other in pairs if one != other)
    except HarnessError as error:
        found.append(f"{name}: {error}")
    return tuple(found)
