"""What an author's function gives for the cells of a run, in a process apart; and whether the run's scores are that.

The function is called once while the run is made and once more, from the last cell to the first, where its scores are
judged: one whose answer changes from call to call, or hangs on the calls before it, is found out.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.canon import text_sha256
from harness.compare import cells_by_condition
from harness.evaluate.function import Call, call_function
from harness.evidence import Differences, RunEvidence, cell_name, differs
from harness.gold import judged_fields
from harness.ledgers.text import observed_text
from harness.protocols.grids import RowKey, UnitKey
from harness.protocols.load import LoadedProtocol
from harness.protocols.modules import function_judges, module_file
from harness.records.run import UnitEvidence
from harness.records.study import FunctionJudge, FunctionScore, StudyRun


def function_scores(evidence: RunEvidence, row: RowKey) -> Differences:
    """The cell's score is there once, of its own text and the registered source, and is what the function gives again.

    A cell whose domain has no function has none.
    """
    stored, again = ([one for one in scores if _is(one, row)] for scores in (_run(evidence).scores, _again(evidence)))
    if len(stored) != len(again):
        return (differs(f"{cell_name(row)} scores", len(again), len(stored)),)
    pairs = [
        (name, getattr(one, name), getattr(other, name))
        for one, other in zip(again, stored, strict=True)
        for name in FunctionScore.__struct_fields__
    ]
    return tuple(differs(f"{cell_name(row)} score {name}", one, other) for name, one, other in pairs if one != other)


def scores_given(
    loaded: LoadedProtocol,
    units: Sequence[UnitEvidence],
    inputs: Sequence[Path],
    keys: Sequence[UnitKey],
    *,
    backwards: bool = False,
) -> tuple[FunctionScore, ...]:
    """What the registered functions give for the cells of the units, by domain, then in the units' order.

    `backwards`: asked from the last cell to the first. InputError where a function's source isn't the registered one.
    """
    return tuple(
        score
        for judge in function_judges(loaded.protocol)
        for score in _scores(
            loaded, judge, units, judged_fields(loaded, inputs, keys, judge.domain), backwards=backwards
        )
    )


def _scores(
    loaded: LoadedProtocol,
    judge: FunctionJudge,
    units: Sequence[UnitEvidence],
    fields: dict[str, dict[str, str]],
    *,
    backwards: bool,
) -> Iterator[FunctionScore]:
    own = [unit for unit in units if unit.domain == judge.domain]
    cells = [(unit, cell) for unit in own for cell in cells_by_condition(loaded.protocol, unit).values()]
    texts = [
        observed_text(loaded.protocol, cell, where=f"cell {unit.source_id}, {cell.condition}") for unit, cell in cells
    ]
    calls = [Call(text, fields[unit.source_id]) for text, (unit, _) in zip(texts, cells, strict=True)]
    file = module_file(loaded.folder, judge.module)
    step = -1 if backwards else 1
    given = call_function(file, judge.source_sha256, judge.function, calls[::step], timeout_ms=judge.timeout_ms)[::step]
    for (unit, cell), text, one in zip(cells, texts, given, strict=True):
        yield FunctionScore(
            source_id=unit.source_id,
            replicate=unit.replicate,
            condition=cell.condition,
            text_sha256=text_sha256(text),
            source_sha256=judge.source_sha256,
            outcome=one.outcome,
            value=one.value,
            detail=one.detail,
        )


def _run(evidence: RunEvidence) -> StudyRun:
    if not isinstance(evidence.run, StudyRun):
        raise RuntimeError(f"{evidence.loaded.protocol.id} has no scores")
    return evidence.run


def _again(evidence: RunEvidence) -> tuple[FunctionScore, ...]:
    """Given anew in the other order, once for a piece of evidence."""
    cache = evidence.__dict__
    if "_scores_again" not in cache:
        cache["_scores_again"] = scores_given(
            evidence.loaded, _run(evidence).units, evidence.inputs, evidence.keys, backwards=True
        )
    scores: tuple[FunctionScore, ...] = cache["_scores_again"]
    return scores


def _is(one: FunctionScore, row: RowKey) -> bool:
    key = row.unit
    return key is not None and (one.source_id, one.replicate, one.condition) == (
        key.source_id,
        key.replicate,
        row.item,
    )
