"""What was made apart from the run: parts in its folder, the smoke run that it stands on, the frozen results.

A part's gate is judged again from the files, row by row, by the same check that judged it.
"""

from dataclasses import dataclass
from types import ModuleType
from typing import Any

from harness.canon import canonical_bytes
from harness.checks import depth_apart, pairs, taped_graph, taped_loop
from harness.checks.frozen import SmokeEvidence, smoke_passed
from harness.checks.taped_graph import DRAWN, GraphSides, Side
from harness.checks.taped_graph import PARTS as GRAPH_PARTS
from harness.checks.taped_graph import programs_of as graph_programs
from harness.checks.taped_loop import PARTS, LoopEvidence
from harness.errors import HarnessError, JournalError, ModelError
from harness.evidence import Check, PairEvidence, RunEvidence, VariantEvidence, guarded
from harness.journal.assemble import assemble, read_spec
from harness.journal.folder import RunFolder, read_record
from harness.protocols.grids import RowKey, gate_rows, placement_rule
from harness.protocols.load import LoadedProtocol
from harness.protocols.loops import graph_task, loop_check, part_protocol
from harness.records.audit import SmokeReference
from harness.records.protocol import (
    ApartRule,
    BehaviorProtocol,
    Gate,
    GraphTaskProtocol,
    PairRule,
    SamplingProtocol,
    TapedProtocol,
)
from harness.records.reaches import Reach
from harness.records.verification import VerifiedLine
from harness.verify.ground import AGAIN, RESTORE, Ground, Lines, compared, fails, holds, nothing, uncheckable
from harness.verify.records import made_again, same_bytes

# Gates over what was made apart: the module of each kind that holds their checks, by the gate's name.
CHECKS: tuple[ModuleType, ...] = (pairs, depth_apart, taped_loop, taped_graph)
SAME_PROCESS = "same_process"
SMOKE = "smoke.json"


@dataclass(frozen=True, slots=True)
class Part:
    """A run of its own inside the folder, and the rule by which it is held against another."""

    name: str
    reach: Reach
    rule: ApartRule


def parts_of(ground: Ground) -> tuple[Part, ...]:
    """The parts that the judged gates need."""
    protocol, reaches = ground.loaded.protocol, {gate.reach for gate in ground.judged_gates}
    found: list[Part] = []
    if "placement" in reaches:
        found.append(Part("placement", "placement", placement_rule(protocol)))
    if "replay" in reaches:
        found.append(Part("replay", "replay", protocol.independent_replay))
    if "same_process" in reaches and isinstance(protocol, SamplingProtocol | TapedProtocol):
        again, own = protocol.same_process_replay, ground.evidence.spec.placement
        rule = PairRule(grid=again.grid, left=own, right=own, fields=again.fields)
        found.append(Part(SAME_PROCESS, "same_process", rule))
    if "determinism" in reaches and isinstance(protocol, BehaviorProtocol):
        rows, own = protocol.row_determinism, ground.evidence.spec.placement
        rule = PairRule(grid=rows.grid, left=own, right=own, fields=rows.fields)
        found += [Part(one.id, "determinism", rule) for one in rows.variants]
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Made:
    """A part that another program made, by the protocol that is derived for it, over a grid of the run's protocol."""

    name: str
    loaded: LoadedProtocol
    grid: str


def programs_of(ground: Ground) -> tuple[Made, ...]:
    """The parts of other programs that the judged gates need."""
    protocol, reaches = ground.loaded.protocol, {gate.reach for gate in ground.judged_gates}
    found: list[Made] = []
    if not isinstance(protocol, TapedProtocol):
        return ()
    greedy = protocol.same_process_replay.grid
    if "loop" in reaches:
        found += [Made(name, loop_check(ground.loaded, program), greedy) for program, name in PARTS.items()]
    if "graph" in reaches and isinstance(protocol, GraphTaskProtocol):
        for program in graph_programs(protocol):
            grid = ground.evidence.spec.grid if program in DRAWN else greedy
            found.append(Made(GRAPH_PARTS[program], part_protocol(ground.loaded, program), grid))
    return tuple(found)


def parts_hold(ground: Ground) -> Lines:
    """Each part is a whole run of this one, its records follow from its journals, and its gate holds again."""
    parts, programs = parts_of(ground), programs_of(ground)
    if not parts and not programs:
        yield nothing("parts", "parts made apart", "none", f"tier {ground.audit.tier} makes none")
    for part in parts:
        folder = ground.folder.part(part.name)
        run, spec = assemble(folder, ground.loaded), read_spec(folder)
        found = list(made_again(ground.loaded, folder, run, f"{part.name}/"))
        named = (
            (f"{part.name}/spec.json: run_id", _part_id(ground, part, spec.run_id), spec.run_id),
            (f"{part.name}/spec.json: grid", part.rule.grid, spec.grid),
        )
        found += list(compared("parts", named, RESTORE))
        units = len(run.units)
        yield from found or [holds("parts", part.name, f"{units} journals", f"{units} journals")]

    for made in programs:
        yield from _made_holds(ground, made)


def _made_holds(ground: Ground, made: Made) -> Lines:
    """A part of another program has a run.json and no books: it follows from exactly its grid's journals."""
    folder = ground.folder.part(made.name)
    run, spec = assemble(folder, made.loaded), read_spec(folder)
    own = ground.evidence.spec
    named = (
        (f"{made.name}/spec.json: run_id", f"{ground.audit.run_id}/{made.name}", spec.run_id),
        (f"{made.name}/spec.json: grid", made.grid, spec.grid),
        (f"{made.name}/spec.json: domains", own.domains, spec.domains),
    )
    found = [
        *same_bytes(folder, "run.json", canonical_bytes(run), f"{made.name}/"),
        *compared("parts", named, RESTORE),
    ]
    units = len(run.units)
    yield from found or [holds("parts", made.name, f"{units} journals", f"{units} journals")]


def gates_apart_hold(ground: Ground) -> Lines:
    """Every row of every gate over a part, judged again: as many hold as the audit record says."""
    parts, accounts = parts_of(ground), {one.id: one for one in ground.audit.gates}
    for gate in ground.judged_gates:
        own = [part for part in parts if part.reach == gate.reach]
        if not own and gate.reach not in ("loop", "graph"):
            continue
        alone = _graph if gate.reach == "graph" else _loop
        evidence = _evidence(ground, gate, own) if own else alone(ground)
        if evidence is None:
            yield _no_smoke(gate.id)
            continue
        without = _without_tokenizer(ground, gate)
        if without is not None:
            yield uncheckable("apart", f"gate {gate.id}", without.expected, without.found, without.todo)
            continue
        units = ground.loaded.units(gate.tiers[ground.tier].grid, ground.domains)
        rows = gate_rows(ground.loaded.protocol, ground.loaded.profile, gate, units)
        check = _check(gate.id)
        faults = [fault for row in rows if (fault := guarded(check, evidence, row))]
        account, held = accounts.get(gate.id), len(rows) - len(faults)
        said = f"{account.passed}/{account.registered}" if account else "an account in audit.json"
        found = f"{held}/{len(rows)}" + (f": {faults[0][0]}" if faults else "")
        whole = account is not None and (held, len(rows)) == (account.passed, account.registered)
        where = f"gate {gate.id}"
        yield holds("apart", where, said, found) if whole else fails("apart", where, said, found, AGAIN)


def _without_tokenizer(ground: Ground, gate: Gate) -> HarnessError | None:
    """Why a gate that decodes again can't be judged here: its tokenizer isn't. That says nothing about the run."""
    if not hasattr(pairs, gate.id):
        return None
    try:
        _ = ground.evidence.tokenizer
    except ModelError as error:
        return error
    return None


def _check(name: str) -> Check:
    check: Check = next(getattr(module, name) for module in CHECKS if hasattr(module, name))
    return check


def _evidence(ground: Ground, gate: Gate, parts: list[Part]) -> Any:
    """The pair, or the run with its variants; None where its other side is a smoke run that isn't here."""
    made = {}
    for part in parts:
        first = _first(ground, part.rule)
        if first is None:
            return None
        folder = ground.folder.part(part.name)
        second = ground.evidence_at(folder)
        rule, whole = _as_run(ground, part.rule, second), second.spec.run_id.removesuffix(f"/{part.name}")
        made[part.name] = PairEvidence(first, second, rule, _pids(folder), part_of=whole)
    if gate.reach != "determinism":
        return next(iter(made.values()))
    protocol = ground.loaded.protocol
    variants = protocol.row_determinism.variants if isinstance(protocol, BehaviorProtocol) else ()
    return VariantEvidence(made, {one.id: one for one in variants})


def _loop(ground: Ground) -> LoopEvidence:
    """The two parts that show how a run's own loop decodes, each under the protocol that its program derives."""
    sides = {}
    for program, name in PARTS.items():
        folder = ground.folder.part(name)
        derived = loop_check(ground.loaded, program)
        sides[program] = RunEvidence(derived, folder), _pids(folder)
    one, other = sides["generate"], sides["own_loop"]
    return LoopEvidence(ground.evidence, one[0], other[0], (one[1], other[1]))


def _graph(ground: Ground) -> GraphSides:
    """The parts that show what a run's executor gives, each under the protocol that its program derives."""
    parts = {}
    for program in graph_programs(graph_task(ground.loaded)):
        folder = ground.folder.part(GRAPH_PARTS[program])
        parts[program] = Side(RunEvidence(part_protocol(ground.loaded, program), folder), _pids(folder))
    return GraphSides(ground.evidence, parts)


def _first(ground: Ground, rule: ApartRule) -> RunEvidence | None:
    """The run itself, or its smoke run for a pair at the smoke budget."""
    if _at_own_budget(ground, rule):
        return ground.evidence
    folder = smoke_folder(ground)
    return None if folder is None else ground.evidence_at(folder)


def _part_id(ground: Ground, part: Part, found: str) -> str:
    """What a part is called: of the run that made it; one that is held against the smoke run may be called its part."""
    reference = _reference(ground)
    of_smoke = f"{reference.run_id}/{part.name}" if reference else ""
    if not _at_own_budget(ground, part.rule) and found == of_smoke:
        return of_smoke
    return f"{ground.audit.run_id}/{part.name}"


def _at_own_budget(ground: Ground, rule: ApartRule) -> bool:
    grids, own = ground.loaded.protocol.grids, ground.evidence.spec.grid
    return grids[rule.grid].max_new_tokens == grids[own].max_new_tokens


def _as_run(ground: Ground, rule: ApartRule, second: RunEvidence) -> ApartRule:
    """The rule; for a port with the placements that it had in the place of the registered ones."""
    if not ground.audit.port or not isinstance(rule, PairRule):
        return rule
    sides = (ground.evidence.spec.placement, second.spec.placement)
    return PairRule(grid=rule.grid, left=sides[0], right=sides[1], fields=rule.fields)


def _pids(folder: RunFolder) -> tuple[int, ...]:
    """The processes that the parent started, as it noted them; none for a part that the run's own processes made."""
    path = folder.file("complete.json")
    if not path.exists():
        return ()
    noted = read_record(path, dict[str, Any], what="child report").get("pids")
    if not isinstance(noted, list):
        raise JournalError(f"{path}: pids", expected="a list", found=type(noted).__name__, todo=RESTORE)
    return tuple(noted)


def smoke_folder(ground: Ground) -> RunFolder | None:
    """The smoke run that the run names, beside it; None where it isn't there."""
    reference = _reference(ground)
    if reference is None or "/" in reference.run_id:
        return None
    folder = RunFolder(ground.folder.path.resolve().parent / reference.run_id)
    return folder if folder.path.is_dir() else None


def _reference(ground: Ground) -> SmokeReference | None:
    path = ground.folder.file(SMOKE)
    return read_record(path, SmokeReference, what="smoke reference") if path.exists() else None


def smoke_holds(ground: Ground) -> Lines:
    """The smoke record that a formal run stands on: passed, unaltered, of the same protocol and environment."""
    if not any(gate.reach == "smoke_record" for gate in ground.judged_gates):
        yield nothing("smoke", SMOKE, "none", f"tier {ground.audit.tier} stands on no smoke run")
        return
    reference, folder = _reference(ground), smoke_folder(ground)
    if reference is None:
        yield fails("smoke", SMOKE, "a smoke reference", "no such file", RESTORE)
        return
    yield from compared("smoke", [(f"audit.json: smoke, and {SMOKE}", reference, ground.audit.smoke)], RESTORE)
    if folder is None:
        yield _no_smoke(SMOKE)
        return
    found = guarded(smoke_passed, SmokeEvidence(ground.evidence, reference, folder), RowKey(None, "whole"))
    yield from (_of_difference("smoke", one) for one in found)
    if not found:
        run = f"run {reference.run_sha256}"
        yield holds("smoke", f"../{reference.run_id}", run, run)


def _no_smoke(where: str) -> VerifiedLine:
    todo = "Put the smoke run's folder beside this one: smoke.json names it."
    return uncheckable("smoke", where, "the smoke run's folder beside this one", "no such folder", todo)


def _of_difference(step: str, text: str) -> VerifiedLine:
    """A check's line `WHERE: expected A, found B` as one of ours."""
    where, _, rest = text.partition(": expected ")
    expected, _, found = rest.partition(", found ")
    return fails(step, where, expected or "no difference", found or text, AGAIN)
