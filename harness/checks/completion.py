"""Completion checks (R05 2 and 4): the cell begins as the baseline's did, and has one completion state."""

import json

import msgspec

from harness.canon import digest
from harness.checks.generation import registered_config
from harness.compare import common_prefix
from harness.evaluate.completion import completion_class, stop_state
from harness.evidence import Differences, RunEvidence, cell_name, differs
from harness.ledgers.accounts import by_place_alone
from harness.protocols.grids import RowKey
from harness.protocols.load import load_protocol
from harness.records.completion import AccountedRow, Terminal
from harness.records.protocol import BehaviorProtocol, CompletionProtocol, SamplingProtocol
from harness.records.run import Baseline, BaselineCell, CompletionRun
from harness.records.sampling import SampledRun


def baseline_prompts(evidence: RunEvidence, row: RowKey) -> Differences:
    """R05 2: the cell's prompt hash is the baseline's; the baseline is the registered one and was made apart.

    A port's own baseline must come from the same environment (weights among it), but for the decoding contract: R07 3
    holds sampled prompts against greedy cells.
    """
    recorded, registered = _recorded(evidence), evidence.registered_baseline
    cell, before = evidence.cell(row), _baseline_cell(registered, row)
    pairs: list[tuple[str, object, object]] = [
        ("baseline run", registered.run_sha256, recorded.run_sha256),
        ("baseline protocol", registered.protocol_digest, recorded.protocol_digest),
        ("baseline cell as recorded", before, _baseline_cell(recorded, row)),
        ("baseline's other fields and cells as recorded", True, _rest(registered, row) == _rest(recorded, row)),
        ("baseline made apart", True, _is_another(recorded, evidence)),
        ("baseline is a port's", evidence.spec.port, recorded.port),
        ("prompt_sha256", before.prompt_sha256 if before else "none", cell.prompt_sha256),
    ]
    if evidence.spec.port:
        pairs.append(("baseline environment", registered.environment_sha256, _environment(evidence)))
    return tuple(differs(f"{cell_name(row)} {name}", one, other) for name, one, other in pairs if one != other)


def baseline_prefix(evidence: RunEvidence, row: RowKey) -> Differences:
    """R05 2: the first min(baseline budget, baseline length) generated tokens are the baseline's."""
    registered = evidence.registered_baseline
    cell, before = evidence.cell(row), _baseline_cell(registered, row)
    if before is None or not before.generated_ids:
        return (differs(cell_name(row), "tokens of the baseline", "none"),)
    compared = min(registered.max_new_tokens, len(before.generated_ids))
    step = common_prefix(cell.generated_ids, before.generated_ids[:compared])
    if step == compared:
        return ()
    shown = (list(ids[step : step + 4]) for ids in (before.generated_ids[:compared], cell.generated_ids))
    return (differs(f"{cell_name(row)} generated_ids from step {step} of {compared}", *shown),)


def completion_state(evidence: RunEvidence, row: RowKey) -> Differences:
    """R05 2 and 4.1: the cell's row has one class, which follows from its accounts; OTHER_STOP fails."""
    rows = [one for one in evidence.ledger.cells if isinstance(one, AccountedRow) and _is(one, row)]
    if len(rows) != 1:
        return (differs(f"{cell_name(row)} completion states", 1, len(rows)),)
    cell, found = evidence.cell(row), rows[0]
    if cell.eos and cell.truncated:
        return (differs(f"{cell_name(row)} stop", "EOS or the budget's end", "both"),)
    state = stop_state(eos=cell.eos, truncated=cell.truncated)
    expected = completion_class(
        eos=cell.eos,
        truncated=cell.truncated,
        terminal=isinstance(found.terminal, Terminal) and found.terminal.reached,
        fallback_number=by_place_alone(found.numeric),
    )
    pairs: tuple[tuple[str, object, object], ...] = (
        ("stop", state, found.stop),
        ("completion class", expected, found.completion),
        ("stop state", "natural_eos or budget_truncated", _known_stop(found)),
    )
    return tuple(differs(f"{cell_name(row)} {name}", one, other) for name, one, other in pairs if one != other)


def _rest(baseline: Baseline, row: RowKey) -> Baseline:
    """The baseline without the row's own cell: its budget and its environment count in every row."""
    own = _baseline_cell(baseline, row)
    return msgspec.structs.replace(baseline, cells=tuple(cell for cell in baseline.cells if cell is not own))


def _is_another(baseline: Baseline, evidence: RunEvidence) -> bool:
    """Another run, of another protocol: no run holds its own digest, but a protocol could name itself."""
    return baseline.run_sha256 != evidence.run_sha256 and baseline.protocol_digest != evidence.run.protocol_digest


def _environment(evidence: RunEvidence) -> str:
    """The run's environment by its digest; a sampled run's as the greedy contract of its baseline would have left it.

    The environment record holds the model's generation config, which follows from the contract and from nothing else.
    """
    protocol, own = evidence.loaded.protocol, evidence.run.environment_sha256
    if not isinstance(protocol, SamplingProtocol) or digest(evidence.environment) != own:
        return own  # what isn't the digest of the record is no environment's, and no baseline's
    before = load_protocol(protocol.baseline.protocol).protocol
    if not isinstance(before, BehaviorProtocol | CompletionProtocol):
        raise RuntimeError(f"{protocol.id}: baseline {before.id} decodes nothing greedily")
    greedy = registered_config(before.decode, evidence.loaded.profile.special_ids)
    config = evidence.environment.generation_config | {name: json.dumps(value) for name, value in greedy.items()}
    return digest(msgspec.structs.replace(evidence.environment, generation_config=config))


def _known_stop(found: AccountedRow) -> str:
    bad = found.stop == "other_stop" or found.completion == "OTHER_STOP"
    return "OTHER_STOP: investigate before anything is read off it" if bad else "natural_eos or budget_truncated"


def _is(one: AccountedRow, row: RowKey) -> bool:
    unit = row.unit
    if unit is None:
        return False
    return (one.source_id, one.replicate, one.condition) == (unit.source_id, unit.replicate, row.item)


def _recorded(evidence: RunEvidence) -> Baseline:
    if not isinstance(evidence.run, CompletionRun | SampledRun):
        raise RuntimeError(f"{evidence.loaded.protocol.id} has no baseline")
    return evidence.run.baseline


def _baseline_cell(baseline: Baseline, row: RowKey) -> BaselineCell | None:
    if row.unit is None:
        raise RuntimeError(f"row {row} has no unit")
    wanted = (row.unit.source_id, row.item)  # a baseline has one replicate, whatever this run calls its own
    cells = [cell for cell in baseline.cells if (cell.source_id, cell.condition) == wanted]
    return cells[0] if len(cells) == 1 else None
