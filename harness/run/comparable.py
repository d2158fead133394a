"""Whether frozen tensor digests can be this machine's: they belong to one environment (DESIGN). Loads no torch.

Another processor or another library adds in another order, and then no digest is the same though nothing is wrong. So
such digests are compared only where packages, interpreter and processor are those they were frozen with.
"""

from harness.model.here import here
from harness.places import Places
from harness.protocols.load import LoadedProtocol
from harness.snapshots.store import frozen_environment


def not_comparable(loaded: LoadedProtocol, tree: Places | None = None) -> str | None:
    """Why this machine's tensors can't be held against the frozen digests; None where they can, or there are none."""
    frozen = frozen_environment(loaded.results, tree)
    if frozen is None:
        return None
    differing = [f"{name}: expected {one}, found {other}" for name, one, other in here().differences(frozen)]
    return f"tensor digests belong to another environment ({'; '.join(differing)})" if differing else None
