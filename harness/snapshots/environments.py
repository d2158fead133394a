"""Recorded environments as named facts, and whether tensors that two of them gave can be compared.

Another processor or another library adds in another order, and then no digest of a tensor is the same though nothing is
wrong (decision 0008). Tokens are compared everywhere. Reads no machine.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

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


# Members of `kernels`: what the processor offers, and before the name of a variable that steers.
INSTRUCTIONS, VARIABLE = "cpu_instructions", "env:"
# The variable that names the processor's kernels for torch.
CAPABILITY = "ATEN_CPU_CAPABILITY"
# Torch's choice of kernels, best first, by the instructions that it asks for (ATen's dispatch of x86).
LEVELS = {
    "AVX512": frozenset({"avx512f", "avx512bw", "avx512dq", "avx512vl", "fma"}),
    "AVX2": frozenset({"avx2", "fma"}),
}


def best_kernels(instructions: str) -> str:
    """What torch chooses by itself on an x86 processor with these; empty where they don't say."""
    offered = set(instructions.split())
    return next((level for level, needed in LEVELS.items() if needed <= offered), "")


@dataclass(frozen=True, slots=True)
class Machine:
    """Package versions (torch's without its build label), interpreter and processor.

    A processor's name is often its family's, so what it offers belongs to it: `instructions` as the system names them,
    `kernels` as torch chooses by them. Empty: not known.
    """

    packages: dict[str, str]
    python: str
    cpu: str
    instructions: str = ""
    kernels: str = ""

    def differences(self, environment: Environment) -> list[tuple[str, str, str]]:
        """(name, recorded, here) of everything in which a recorded environment can't be this machine's."""
        recorded = machine_of(environment)
        named = sorted({*recorded.packages, *self.packages})
        pairs = [(name, recorded.packages.get(name, "none"), self.packages.get(name, "none")) for name in named]
        pairs += [("python", recorded.python, self.python), ("cpu", recorded.cpu, self.cpu)]
        return [pair for pair in (*pairs, _offered(recorded, self)) if pair[1] != pair[2]]


def _offered(recorded: Machine, here: Machine) -> tuple[str, str, str]:
    """The instructions where both sides know them, else what torch chooses by them; what isn't known never differs."""
    if recorded.instructions and here.instructions:
        return INSTRUCTIONS, recorded.instructions, here.instructions
    known = bool(recorded.kernels and here.kernels)
    return "cpu_capability", recorded.kernels if known else "", here.kernels if known else ""


def machine_of(environment: Environment) -> Machine:
    """The machine that an environment was recorded on; kernels that a variable chose say nothing of it."""
    packages = {name: version.split("+")[0] for name, version in environment.packages.items()}
    instructions = environment.kernels.get(INSTRUCTIONS, "")
    steered = f"{VARIABLE}{CAPABILITY}" in environment.kernels
    kernels = best_kernels(instructions) or ("" if steered else environment.cpu_capability)
    return Machine(packages, environment.python, environment.cpu, instructions, kernels)


def in_terms_of(recorded: Environment, found: Environment) -> Environment:
    """The second as far as the first is a record of it: one made before instructions were recorded says none."""
    if INSTRUCTIONS in recorded.kernels:
        return found
    kernels = {name: one for name, one in found.kernels.items() if name != INSTRUCTIONS}
    return msgspec.structs.replace(found, kernels=kernels)


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
