"""Gold numbers of a run's sources, from the registered inputs. For evaluators alone: no prompt is built here."""

from collections.abc import Sequence
from pathlib import Path

from harness.evaluate.number import gold_number
from harness.inputs.find import find_inputs
from harness.inputs.sources import gold_fields
from harness.protocols.grids import UnitKey
from harness.protocols.load import LoadedProtocol


def registered_gold(loaded: LoadedProtocol, inputs: Sequence[Path], units: Sequence[UnitKey]) -> dict[str, str]:
    """Final numbers in plain form by source ID, for the units of domains that register an answer.

    InputError where an input isn't there or isn't the registered one.
    """
    found = find_inputs(loaded.protocol, inputs)
    numbers: dict[str, str] = {}
    for domain in loaded.protocol.domains:
        ids = tuple(dict.fromkeys(unit.source_id for unit in units if unit.domain == domain.name))
        if "answer" in domain.gold and ids:
            fields = gold_fields(loaded.protocol, found, domain.name, ids)
            numbers |= {source_id: gold_number(fields[source_id]["answer"]) for source_id in ids}
    return numbers
