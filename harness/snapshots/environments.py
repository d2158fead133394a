"""Recorded environments as named facts, and whether tensors that two of them gave can be compared.

Another processor or another library adds in another order, and then no digest of a tensor is the same though nothing is
wrong (decision 0008). Tokens are compared everywhere. Reads no machine.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from harness.records.run import Environment

# What decides the arithmetic first, then libraries, then the machine.
ORDER = (
    "dtype",
    "attention",
    "experts",
    "generation_config",
    "deterministic_algorithms",
    "float32_matmul_precision",
    "kernels",
    "packages",
    "python",
    "cuda",
    "gpus",
    "cpu",
    "cpu_capability",
    "machine",
    "threads",
    "interop_threads",
)


@dataclass(frozen=True, slots=True)
class Machine:
    """Package versions (torch's without its build label), interpreter and CPU."""

    packages: dict[str, str]
    python: str
    cpu: str

    def differences(self, environment: Environment) -> list[tuple[str, str, str]]:
        """(name, recorded, here) of everything in which a recorded environment can't be this machine's."""
        recorded = machine_of(environment)
        named = sorted({*recorded.packages, *self.packages})
        pairs = [(name, recorded.packages.get(name, "none"), self.packages.get(name, "none")) for name in named]
        pairs += [("python", recorded.python, self.python), ("cpu", recorded.cpu, self.cpu)]
        return [pair for pair in pairs if pair[1] != pair[2]]


def machine_of(environment: Environment) -> Machine:
    """The machine that an environment was recorded on."""
    packages = {name: version.split("+")[0] for name, version in environment.packages.items()}
    return Machine(packages=packages, python=environment.python, cpu=environment.cpu)


def tensors_apart(one: Environment, other: Environment) -> list[tuple[str, str, str]]:
    """(name, one, other) of everything for which tensors of the two aren't compared; both records have the GPUs too."""
    found = machine_of(other).differences(one)
    named = [(name, _words(getattr(one, name)), _words(getattr(other, name))) for name in ("gpus", "cuda")]
    return [*found, *(pair for pair in named if pair[1] != pair[2])]


def environment_facts(environment: Environment) -> dict[str, str]:
    """Every field but the checkpoint in words, in ORDER; members of a table under `field.member`."""
    return dict(_facts(environment))


def _facts(environment: Environment) -> Iterator[tuple[str, str]]:
    for name in ORDER:
        value = getattr(environment, name)
        if isinstance(value, dict):
            yield from ((f"{name}.{member}", _words(one)) for member, one in sorted(value.items()))
        else:
            yield name, _words(value)


def _words(value: object) -> str:
    return (", ".join(map(str, value)) if isinstance(value, tuple) else str(value)) or "none"
