"""Generation checks (R04 4-6): calls that return, the contract as read back, steps, outputs, generators."""

import json
import re
from collections.abc import Iterator

from harness.canon import text_sha256
from harness.evidence import Differences, RunEvidence, cell_name, differs
from harness.journal.folder import cell_problem, read_journal
from harness.protocols.generators import STATES, seeded_states
from harness.protocols.grids import RowKey
from harness.records.base import Frozen
from harness.records.decoding import DecodeContract
from harness.records.graph import GraphContract, GraphExecution
from harness.records.kinds import AnyJournal, journal_type
from harness.records.profile import SpecialIds
from harness.records.protocol import DepthProtocol, GenerationProtocol
from harness.records.run import Environment, RngStates
from harness.records.sampling import SampledContract
from harness.records.taped import TapedContract

_CUDA = re.compile(r"cuda(?::(\d{1,4}))?")
NEUTRAL = ("null", "0", "0.0", "false")


def normal_return(evidence: RunEvidence, row: RowKey) -> Differences:
    """R04 6.5: the cell's call returned; no OOM, NaN or exception. Reaching the budget is a return."""
    if row.unit is None:
        raise RuntimeError(f"row {row} has no unit")
    for failure in evidence.failures:
        if (failure.source_id, failure.replicate) == (row.unit.source_id, row.unit.replicate):
            return (differs(cell_name(row), "a call that returns", f"{failure.kind}: {failure.message}"),)
    if not evidence.folder.journal(row.unit).exists():
        return (differs(cell_name(row), "a journal", "none: the run stopped before this unit"),)
    journal: AnyJournal = read_journal(evidence.folder.journal(row.unit), journal_type(evidence.loaded.protocol))
    rows = [cell.condition for cell in journal.evidence.cells]
    return () if rows.count(row.item) == 1 else (differs(cell_name(row), "one row", f"{rows.count(row.item)} rows"),)


def decode_contract(evidence: RunEvidence, row: RowKey) -> Differences:
    """R04 4: the effective generation config and execution, read back from the model, are the registered contract.

    Values are compared as JSON text, so that 1 isn't true and 1.0 isn't 1.
    """
    protocol = evidence.loaded.protocol
    if not isinstance(protocol, GenerationProtocol):
        raise RuntimeError(f"{protocol.id} generates nothing")
    ids, contract = evidence.loaded.profile.special_ids, protocol.decode
    if isinstance(contract, GraphContract):
        captured = protocol.execution.device == "cuda"
        wanted = registered_taped(contract, ids) | registered_graph(
            contract.graph, evidence.environment, captured=captured
        )
    elif isinstance(contract, TapedContract):
        wanted = registered_taped(contract, ids)
    else:
        wanted = registered_config(contract, ids)
    effective = evidence.environment.generation_config
    found = [
        differs(f"{row.item} generation config {name}", json.dumps(value), effective.get(name, "not read back"))
        for name, value in wanted.items()
        if effective.get(name) != json.dumps(value)
    ]
    others = [
        differs(f"{row.item} generation config {name}", "nothing set", value)
        for name, value in effective.items()
        if name not in wanted and value not in NEUTRAL
    ]
    return (*found, *others, *execution(evidence, row))


def registered_config(contract: DecodeContract | SampledContract, ids: SpecialIds) -> dict[str, object]:
    """What a contract registers of a generation config, by the library's names."""
    return {
        "do_sample": contract.do_sample,
        "num_beams": contract.num_beams,
        "use_cache": contract.use_cache,
        "temperature": contract.temperature,
        "top_k": contract.top_k,
        "top_p": contract.top_p,
        "repetition_penalty": contract.repetition_penalty,
        "bos_token_id": ids.bos_id,
        "eos_token_id": ids.eos,
        "pad_token_id": ids.pad,
    }


def registered_taped(contract: TapedContract, ids: SpecialIds) -> dict[str, object]:
    """What decoding under a tape reads back from its sampler and its loop (R08 4.3)."""
    sampler = contract.sampler
    return {
        "strategy": contract.strategy,
        "sampler_rule": sampler.rule,
        "sampler_device": sampler.device,
        "temperature": sampler.temperature,
        "top_p": sampler.top_p,
        "min_tokens_to_keep": sampler.min_tokens_to_keep,
        "eos_token_id": ids.eos,
        "pad_token_id": ids.pad,
    }


def registered_graph(graph: GraphExecution, environment: Environment, *, captured: bool) -> dict[str, object]:
    """What an executor reads back beside that. The modules' experts are the environment's, judged by themselves."""
    return {"executor": graph.executor, "step": step_name(graph, environment), "captured": captured, "look": graph.look}


def step_name(graph: GraphExecution, environment: Environment) -> str:
    """What the registered step is called by itself."""
    if graph.step == "modules":
        return f"modules, experts {environment.experts}"
    return f"lean, kernels {'+'.join(graph.kernels) or 'none'}"


def execution(evidence: RunEvidence, row: RowKey) -> Iterator[str]:
    """R04 1 and 6.1: kernels, precision, threads, software and weights as read back; a port lists what deviates."""
    registered, environment = evidence.loaded.protocol.execution, evidence.environment
    names = ("dtype", "attention", "experts", "threads", "deterministic_algorithms", "float32_matmul_precision")
    pairs = [(name, getattr(registered, name), getattr(environment, name)) for name in names]
    pairs += [
        (f"software.{name}", pin, environment.packages.get(name, "not installed"))
        for name, pin in evidence.loaded.protocol.software.packages.items()
    ]
    weights = [(file.name, file.digest) for file in evidence.loaded.profile.files]
    pairs += [
        (f"checkpoint.{name}", pin.sha256, environment.checkpoint.get(name, "none"))
        for name, pin in weights
        if isinstance(pin, Frozen)
    ]
    listed = {(one.field, one.registered, one.actual) for one in evidence.spec.deviations if evidence.spec.port}
    for name, expected, found in pairs:
        if expected != found and (name, str(expected), str(found)) not in listed:
            yield differs(f"{row.item} environment {name}", expected, found)


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
    """R04 5: text is the IDs' own, hashes follow; EOS is last or absent; a row without EOS has exactly the budget."""
    cell, unit = evidence.cell(row), evidence.unit(row)
    eos = evidence.loaded.profile.special_ids.eos
    columns = evidence.loaded.profile.shape.vocabulary_columns
    problem, decoded = cell_problem(cell), text_sha256(evidence.tokenizer.decode(cell.generated_ids))
    found = [differs(f"{cell_name(row)} {problem[0]}", problem[1], problem[2])] if problem else []
    ended = eos in cell.generated_ids
    at_budget = len(cell.generated_ids) == unit.max_new_tokens
    pairs = (
        ("text_sha256 of the decoded IDs", decoded, cell.text_sha256),
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
            "natural EOS or the whole budget"
            if ended or at_budget
            else f"{len(cell.generated_ids)} tokens without EOS",
        ),
        ("IDs within the vocabulary", True, all(0 <= token < columns for token in cell.generated_ids)),
        ("length within the budget", True, 0 < cell.length <= unit.max_new_tokens),
    )
    return (*found, *(differs(f"{cell_name(row)} {name}", one, other) for name, one, other in pairs if one != other))


def rng_untouched(evidence: RunEvidence, row: RowKey) -> Differences:
    """R04 4: before every unit the states of Python, NumPy, torch CPU and CUDA are the registered seed's; after it too.

    What the seed gives is computed here, without torch.
    """
    unit, seeded = evidence.batch(row), _seeded(evidence)
    found = [*gpus_listed(evidence, row)]
    for name in STATES:
        wanted, before, after = (getattr(states, name) for states in (seeded, unit.rng_before, unit.rng_after))
        if before != wanted:
            found.append(differs(f"{cell_name(row)} {name} generator before the call", wanted, before))
        if before != after:
            found.append(differs(f"{cell_name(row)} {name} generator", before, after))
    return tuple(found)


def gpus_listed(evidence: RunEvidence, row: RowKey) -> Differences:
    """Every GPU that holds parameters is one of the environment's, whose generators are the ones that are held."""
    facts, listed = evidence.placement, len(evidence.environment.gpus)
    indices = [
        int(found[1] or 0)
        for one in (*facts.device_map.values(), *facts.parameter_bytes)
        if (found := _CUDA.fullmatch(one))
    ]
    least = max(indices, default=-1) + 1
    where = f"{cell_name(row)} GPUs of the environment"
    return (differs(where, f"{least} or more", listed),) if listed < least else ()


def _seeded(evidence: RunEvidence) -> RngStates:
    protocol = evidence.loaded.protocol
    if isinstance(protocol, DepthProtocol):
        seed = protocol.forward.generator_seed
    elif isinstance(protocol, GenerationProtocol) and not isinstance(protocol.decode, SampledContract):
        seed = protocol.decode.generator_seed
    else:
        raise RuntimeError(f"{protocol.id} seeds each unit")
    return seeded_states(seed, gpus=len(evidence.environment.gpus))
