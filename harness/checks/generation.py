"""Generation checks (R04 4-6): calls that return, the contract as read back, steps, outputs, generators, placement."""

import json

from harness.canon import canonical_bytes
from harness.evidence import Differences, RunEvidence, cell_name, differs
from harness.files import read_bytes
from harness.journal.assemble import assemble
from harness.journal.folder import cell_problem, read_journal
from harness.protocols.grids import RowKey


def normal_return(evidence: RunEvidence, row: RowKey) -> Differences:
    """R04 6.5: the cell's call returned; no OOM, NaN or exception. Reaching the budget is a return."""
    if row.unit is None:
        raise RuntimeError(f"row {row} has no unit")
    for failure in evidence.failures:
        if (failure.source_id, failure.replicate) == (row.unit.source_id, row.unit.replicate):
            return (differs(cell_name(row), "a call that returns", f"{failure.kind}: {failure.message}"),)
    if not evidence.folder.journal(row.unit).exists():
        return (differs(cell_name(row), "a journal", "none: the run stopped before this unit"),)
    rows = [cell.condition for cell in read_journal(evidence.folder.journal(row.unit)).evidence.cells]
    return () if rows.count(row.item) == 1 else (differs(cell_name(row), "one row", f"{rows.count(row.item)} rows"),)


def decode_contract(evidence: RunEvidence, row: RowKey) -> Differences:
    """R04 4: the effective generation config, read back from the model, is the registered contract."""
    contract, ids = evidence.loaded.protocol.decode, evidence.loaded.profile.special_ids
    wanted: dict[str, object] = {
        "do_sample": contract.do_sample,
        "num_beams": contract.num_beams,
        "use_cache": contract.use_cache,
        "temperature": contract.temperature,
        "top_k": contract.top_k,
        "top_p": contract.top_p,
        "repetition_penalty": contract.repetition_penalty,
        "bos_token_id": ids.bos,
        "eos_token_id": ids.eos,
        "pad_token_id": ids.pad,
    }
    effective = {name: json.loads(value) for name, value in evidence.environment.generation_config.items()}
    del row
    neutral = {name: value for name, value in effective.items() if name not in wanted and value not in (None, 0, False)}
    found = [
        differs(f"generation config {name}", value, effective.get(name))
        for name, value in wanted.items()
        if effective.get(name) != value
    ]
    return (*found, *(differs(f"generation config {name}", "nothing set", value) for name, value in neutral.items()))


def greedy_steps(evidence: RunEvidence, row: RowKey) -> Differences:
    """R04 4 and 6.5: every emitted ID of every row was checked: its logits finite, itself the argmax."""
    unit = evidence.unit(row)
    emitted = sum(cell.length for cell in unit.cells)
    checks = unit.checks
    pairs = (
        ("row steps checked", emitted, checks.rows_checked),
        ("row steps with finite logits", emitted, checks.finite),
        ("row steps where the emitted ID is the argmax", emitted, checks.argmax),
        ("steps", max(cell.length for cell in unit.cells), checks.steps),
    )
    return tuple(differs(f"{cell_name(row)} {name}", one, other) for name, one, other in pairs if one != other)


def output_identity(evidence: RunEvidence, row: RowKey) -> Differences:
    """R04 5: hashes follow from IDs and text; EOS is last or absent; a row without EOS has exactly the budget."""
    cell, unit = evidence.cell(row), evidence.unit(row)
    eos = evidence.loaded.profile.special_ids.eos
    columns = evidence.loaded.profile.shape.vocabulary_columns
    problem = cell_problem(cell)
    found = [differs(f"{cell_name(row)} {problem[0]}", problem[1], problem[2])] if problem else []
    ended = eos in cell.generated_ids
    at_budget = len(cell.generated_ids) == unit.max_new_tokens
    pairs = (
        ("eos", ended, cell.eos),
        (
            "position of the first EOS",
            len(cell.generated_ids) - 1 if ended else "none",
            cell.generated_ids.index(eos) if ended else "none",
        ),
        ("truncated", not ended and at_budget, cell.truncated),
        (
            "stop state",
            "natural EOS or the whole budget",
            "natural EOS or the whole budget" if ended or at_budget else f"{cell.length} tokens without EOS",
        ),
        ("IDs within the vocabulary", True, all(0 <= token < columns for token in cell.generated_ids)),
        ("length within the budget", True, 0 < cell.length <= unit.max_new_tokens),
    )
    return (*found, *(differs(f"{cell_name(row)} {name}", one, other) for name, one, other in pairs if one != other))


def rng_untouched(evidence: RunEvidence, row: RowKey) -> Differences:
    """R04 4: the states of Python, NumPy, torch CPU and torch CUDA are the same before and after the unit."""
    unit = evidence.unit(row)
    found = []
    for name in ("python", "numpy", "torch_cpu", "torch_cuda"):
        before, after = getattr(unit.rng_before, name), getattr(unit.rng_after, name)
        if before != after:
            found.append(differs(f"{cell_name(row)} {name} generator", before, after))
    hashed = not evidence.environment.gpus or hasattr(unit.rng_before.torch_cuda, "sha256")
    return tuple(found) if hashed else (*found, differs(f"{cell_name(row)} torch_cuda", "a state hash", "no device"))


def placement_recorded(evidence: RunEvidence, row: RowKey) -> Differences:
    """R04 1 and 6.6: the record has device map, bytes by device and offload facts, and they are the registered ones."""
    facts, spec = evidence.placement, evidence.spec
    placed = {placement.id: placement for placement in evidence.loaded.protocol.placements}
    registered = placed.get(spec.placement)
    pairs: list[tuple[str, object, object]] = [
        ("placement", spec.placement, facts.id),
        ("placement in run.json", facts, evidence.run.placement),
        ("device map", True, bool(facts.device_map)),
        ("parameter bytes", True, sum(facts.parameter_bytes.values()) > 0),
    ]
    if registered is not None:
        pairs.append(("offloaded modules", sorted(registered.offloaded), sorted(facts.offloaded)))
    elif not spec.port:
        pairs.append(("placement", sorted(placed), spec.placement))
    return tuple(differs(f"{row.item} {name}", one, other) for name, one, other in pairs if one != other)


def assembled_run(evidence: RunEvidence, row: RowKey) -> Differences:
    """R04 5: run.json is byte for byte what its journals assemble to, with the registered count and name."""
    stored = read_bytes(evidence.folder.file("run.json"), what="assembled run")
    again = canonical_bytes(assemble(evidence.folder, evidence.loaded))
    name = evidence.loaded.protocol.result_name + (" (port)" if evidence.spec.port else "")
    pairs = (
        ("bytes of run.json", "what its journals give", "what its journals give" if stored == again else "other bytes"),
        ("units", [key.source_id for key in evidence.keys], [unit.source_id for unit in evidence.run.units]),
        ("protocol digest", evidence.loaded.digest, evidence.run.protocol_digest),
        ("name of the result", name, evidence.run.result_name),
    )
    return tuple(differs(f"{row.item} {name}", one, other) for name, one, other in pairs if one != other)
