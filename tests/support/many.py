"""Many gate sessions from one interpreter: each is forked off after the slow imports, so that it costs its work only.

Of the harness too: what these sessions are refused for, and how they end, is in the files of their trees.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .forked import Forks
from .mini import TIMEOUT_S, environment

MODULES = (
    "numpy", "tokenizers", "harness.claims.judge", "harness.ledgers.close", "harness.run.execute", "harness.run.ladder",
    "harness.run.registration", "harness.run.request", "harness.run.smoke", "harness.snapshots.judgements",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """One session: pytest's arguments, and what its environment adds."""

    arguments: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """Exit code and output; `kept` is the folder that holds the files that were kept of the session."""

    code: int
    output: str
    kept: Path

    @property
    def errors(self) -> list[str]:
        """The lines in which pytest refuses."""
        return [line for line in self.output.splitlines() if line.startswith("ERROR: ")]


def run_many(tree: Path, cases: Mapping[str, Case], scratch: Path, *, keep: Sequence[Path] = ()) -> dict[str, Outcome]:
    """Run every case over the tree, in order; after each, the files of `keep` that are there move to its `kept`."""
    folders = [scratch / str(number) for number in range(len(cases))]
    for folder in folders:
        folder.mkdir()
    outcomes = {}
    forks = Forks(MODULES, environment(tree))
    try:
        for (name, case), folder in zip(cases.items(), folders, strict=True):
            outcomes[name] = _run(forks, tree, case, folder)
            for one in filter(Path.exists, keep):
                one.rename(folder / one.name)
    finally:
        forks.close()
    return outcomes


def _run(forks: Forks, tree: Path, case: Case, folder: Path) -> Outcome:
    output = folder / "output.txt"
    code = forks.run(
        case.arguments,
        cwd=case.cwd or tree,
        environment=environment(tree, case.env),
        output=output,
        timeout_s=TIMEOUT_S,
    )
    return Outcome(code, output.read_text("utf-8", "replace"), folder)
