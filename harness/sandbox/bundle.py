"""The program of every container: the sources of `inside`, how a container takes them, and their digest.

A container's command is a few lines that read the program from standard input: an engine copies a command a dozen
times on the way to a process, so a long one costs a quarter of a start. The program is sent as source to the first
container of an image, whose Python compiles it, and as that code to the others. None of it is secret. It knows no
engine.
"""

import marshal
from functools import cache
from importlib.resources import files
from typing import Literal

from harness.canon import text_sha256

PACKAGE = "harness.sandbox.inside"
MODULES = ("codec", "restraint", "door", "candidate", "channel", "checker")
MARSHAL_VERSION = 4  # understood by every Python from 3.4 on
COMMAND = (
    "python3",
    "-B",
    "-s",
    "-c",
    f"""import marshal, os, sys, types
def read(size, data=b""):
    while len(data) < size:
        part = os.read(0, size - len(data))
        if not part: os._exit(2)
        data += part
    return data
entry, modules = marshal.loads(read(int.from_bytes(read(8), "big")))
package = sys.modules[{PACKAGE!r}] = types.ModuleType({PACKAGE!r})
for name, code in modules:
    module = sys.modules[package.__name__ + "." + name] = types.ModuleType(package.__name__ + "." + name)
    setattr(package, name, module)
    exec(code, module.__dict__)
getattr(package.checker, entry)(modules)
""",
)


@cache
def sources() -> tuple[tuple[str, str], ...]:
    """Name and source of each module, in the order in which they import one another."""
    return tuple((name, (files(PACKAGE) / f"{name}.py").read_text(encoding="utf-8")) for name in MODULES)


def program(entry: Literal["main", "describe"]) -> bytes:
    """The program as source: `main` judges a candidate, `describe` says which Python runs it and compiles it."""
    return marshal.dumps((entry, sources()), MARSHAL_VERSION)


@cache
def harness_sha256() -> str:
    """SHA-256 of command and sources: any change of how a candidate is judged changes it."""
    return text_sha256("\n".join((*COMMAND, *(source for _, source in sources()))))


def prefixed(data: bytes) -> bytes:
    """Bytes with their length before them, as a container reads them."""
    return len(data).to_bytes(8, "big") + data
