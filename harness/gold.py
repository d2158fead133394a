"""Gold of a run's sources, from the registered inputs: final numbers, and the tasks that programs are judged by.

For evaluators alone: no prompt is built here, and no test text goes into a record.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.canon import text_sha256
from harness.errors import InputError
from harness.evaluate.number import GOLD_MARKER, gold_number
from harness.inputs.find import FoundInputs, find_inputs
from harness.inputs.sources import gold_fields, source_texts
from harness.protocols.grids import UnitKey, is_executed, number_field
from harness.protocols.load import LoadedProtocol
from harness.records.manifest import FrozenSource, Manifest
from harness.records.protocol import Protocol, StudyDesign, StudyProtocol
from harness.records.run import CodeTask
from harness.records.sandbox import Task
from harness.records.study import ExactJudge, NumberJudge, PatternJudge

GOLD_TODO = "Write the expected answer into the file, or leave the row out, before the protocol is frozen."


def registered_gold(loaded: LoadedProtocol, inputs: Sequence[Path], units: Sequence[UnitKey]) -> dict[str, str]:
    """Final numbers in plain form by source ID, for the units of domains that register an answer.

    InputError where an input isn't there or isn't the registered one.
    """
    found = find_inputs(loaded.protocol, inputs)
    numbers: dict[str, str] = {}
    for domain in loaded.protocol.domains:
        ids = tuple(dict.fromkeys(unit.source_id for unit in units if unit.domain == domain.name))
        field = number_field(loaded.protocol, domain)
        if field is not None and ids:
            fields = gold_fields(loaded.protocol, found, domain.name, ids)
            numbers |= {one: _number(loaded.protocol, fields[one][field], f"{field} of {one}") for one in ids}
    return numbers


def check_gold(protocol: Protocol, found: FoundInputs, manifest: Manifest) -> None:
    """What a study's judges compare with is there for every frozen source: a number, a text that isn't blank.

    InputError names domain, source and field; a study whose judge has nothing to compare with isn't frozen.
    """
    judges = protocol.evaluators.judges if isinstance(protocol, StudyProtocol) else ()
    for judge in judges:
        field = judge.field if isinstance(judge, NumberJudge | ExactJudge | PatternJudge) else ""
        sources = [one for one in manifest.sources if one.domain == judge.domain and isinstance(one, FrozenSource)]
        ids = [one.source_id for one in sources if field]
        for source_id, fields in (gold_fields(protocol, found, judge.domain, ids) if ids else {}).items():
            if isinstance(judge, NumberJudge):
                _number(protocol, fields[field], f"{field} of {source_id}")
            elif not fields[field].strip():
                where = f"gold of {source_id}: field {field}"
                raise InputError(where, expected="an expected text", found="an empty one", todo=GOLD_TODO)


def _number(protocol: Protocol, answer: str, where: str) -> str:
    """The number of a gold field. A study's may be the number alone; others end their answer in `#### N`."""
    alone = isinstance(protocol, StudyDesign) and GOLD_MARKER not in answer
    return gold_number(f"{GOLD_MARKER} {answer}" if alone else answer, where=where)


def registered_answers(loaded: LoadedProtocol, inputs: Sequence[Path], units: Sequence[UnitKey]) -> dict[str, str]:
    """Expected texts by source ID, for the units of a study's domains that have a text judge with a gold field.

    Empty for every other kind. InputError where an input isn't there or isn't the registered one.
    """
    protocol = loaded.protocol
    if not isinstance(protocol, StudyProtocol):
        return {}
    answers: dict[str, str] = {}
    for judge in protocol.evaluators.judges:
        if isinstance(judge, ExactJudge | PatternJudge) and judge.field:
            fields = judged_fields(loaded, inputs, units, judge.domain)
            answers |= {source_id: fields[source_id][judge.field] for source_id in fields}
    return answers


def judged_fields(
    loaded: LoadedProtocol, inputs: Sequence[Path], units: Sequence[UnitKey], domain: str
) -> dict[str, dict[str, str]]:
    """All gold fields of the units of a domain, by source ID, then by field. For evaluators alone."""
    ids = tuple(dict.fromkeys(unit.source_id for unit in units if unit.domain == domain))
    return gold_fields(loaded.protocol, find_inputs(loaded.protocol, inputs), domain, ids) if ids else {}


def registered_tasks(loaded: LoadedProtocol, inputs: Sequence[Path], units: Sequence[UnitKey]) -> dict[str, Task]:
    """The code tasks of the units' sources by source ID: prompt, entry point and tests as the input holds them.

    Empty where no domain of the units is executed. InputError where an input isn't there or isn't the registered one.
    """
    tasks: dict[str, Task] = {}
    for domain in loaded.protocol.domains:
        listed = [unit for unit in units if unit.domain == domain.name]
        if not is_executed(domain) or not listed:
            continue
        found = find_inputs(loaded.protocol, inputs)
        ids = tuple(dict.fromkeys(unit.source_id for unit in listed))
        count = max(unit.index for unit in listed) + 1
        texts = source_texts(loaded, found, domains=(domain.name,), per_domain=count)
        prompts = {source.source_id: source.text for source in texts}
        for source_id, fields in gold_fields(loaded.protocol, found, domain.name, ids).items():
            tasks[source_id] = Task(
                id=source_id, prompt=prompts[source_id], entry_point=fields["entry_point"], test=fields["test"]
            )
    return tasks


def recorded_tasks(tasks: Mapping[str, Task]) -> dict[str, CodeTask]:
    """What a run may record of its tasks: the tests by their digest only."""
    return {
        source_id: CodeTask(prompt=task.prompt, entry_point=task.entry_point, tests_sha256=text_sha256(task.test))
        for source_id, task in tasks.items()
    }
