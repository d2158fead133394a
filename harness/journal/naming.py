"""What a result is called. A port says that it is one; a port on a made checkpoint names the weights too.

Everything that names a run's result asks here: no output of a port has the registered run's name, and none of random
weights goes without theirs.
"""

from collections.abc import Iterable

from harness.records.run import Deviation

MADE = "checkpoint"  # the deviation of a checkpoint that says itself what it is; its files' are `checkpoint.<name>`
RANDOM = ", random weights"


def result_name(registered: str, *, port: bool, deviations: Iterable[Deviation]) -> str:
    """The registered name; for a port followed by "(port)", and for one on random weights by their profile's ID."""
    if not port:
        return registered
    made = random_weights(deviations)
    return f"{registered} (port)" if made is None else f"{registered} (port) on {made}{RANDOM}"


def random_weights(deviations: Iterable[Deviation]) -> str | None:
    """The profile whose random weights the run was made with; None where no record of the checkpoint says so."""
    named = (one.actual for one in deviations if one.field == MADE and RANDOM in one.actual)
    return next((actual.partition(RANDOM)[0] for actual in named), None)
