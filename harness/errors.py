"""The harness's error family: bad data or a broken world, never misuse of the API and never a model's behaviour.

Every message says where, what was expected, what was found and what to do. Misuse of a function by its caller is a
plain `RuntimeError`; what a model does is an outcome record.
"""


def words(text: object) -> str:
    r"""A text on one line, in ASCII, without anything that a terminal would act on: `\x1b` for an escape character."""
    line = " ".join(str(text).encode("ascii", "backslashreplace").decode("ascii").split())
    return "".join(one if one.isprintable() else f"\\x{ord(one):02x}" for one in line)


class HarnessError(Exception):
    """Something outside the code is wrong. `str()` is one ASCII-safe line for a person to act on."""

    def __init__(self, where: str, *, expected: str, found: str, todo: str) -> None:
        self.where = where
        self.expected = expected
        self.found = found
        self.todo = todo
        super().__init__(words(f"{where}: expected {expected}, found {found}. {todo}"))


class CanonError(HarnessError):
    """A value has no canonical encoding (a lone surrogate, NaN, an integer beyond 2**53)."""


class StorageError(HarnessError):
    """A file can't be read or written: missing, full disk, read-only folder."""


class ProtocolError(HarnessError):
    """A protocol, manifest, profile or digest file doesn't say what it must."""


class InputError(HarnessError):
    """A registered input file is missing, altered or doesn't hold what was registered."""


class PromptError(HarnessError):
    """A prompt breaks the prompt contract (length, position, special token, round trip, hash)."""


class ModelError(HarnessError):
    """A checkpoint, its special IDs, its shape or its software isn't the registered one."""


class PlacementError(HarnessError):
    """A model can't be placed as registered, or two placements are really one."""


class DecodeError(HarnessError):
    """A unit didn't return as the decoding contract says.

    `kind`: out_of_memory, non_finite, not_argmax, exception; of a sampled unit also not_drawable, foreign_draw.
    """

    def __init__(self, where: str, *, kind: str, expected: str, found: str, todo: str) -> None:
        super().__init__(where, expected=expected, found=found, todo=todo)
        self.kind = kind


class JournalError(HarnessError):
    """A journal, run or record was altered, is incomplete or belongs to something else."""


class SnapshotError(HarnessError):
    """Frozen results are missing, altered or can't be compared."""


class ComparisonError(HarnessError):
    """Two sides that can't be compared: one thing twice, other kinds of protocol, no cell in common."""


class SessionError(HarnessError):
    """A session was asked for something that its tier refuses."""


class SandboxError(HarnessError):
    """No container engine, no image fit for the contract, or a container that isn't under the contract's limits."""


class TimestampError(HarnessError):
    """A request, a token or a certificate of a time-stamp authority isn't one, or doesn't hold."""


class AttestationError(HarnessError):
    """A statement, a signature or a list of signers isn't one, or doesn't hold."""
