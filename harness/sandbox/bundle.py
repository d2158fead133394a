"""The program of every container: the sources of `inside` in one text, and that text's digest.

A container's command is a few lines that read the text from standard input: an engine copies a command a dozen times
on the way to a process, so a long one costs a quarter of a start. Neither holds a secret. It knows no engine.
"""

from functools import cache
from importlib.resources import files
from typing import Literal

from harness.canon import text_sha256

PACKAGE = "harness.sandbox.inside"
MODULES = ("codec", "candidate", "channel", "checker")
COMMAND = (
    "python3",
    "-B",
    "-s",
    "-c",
    """import os
def read(size, data=b""):
    while len(data) < size:
        part = os.read(0, size - len(data))
        if not part: os._exit(2)
        data += part
    return data
exec(read(int.from_bytes(read(8), "big")))
""",
)
_HEAD = f"""import sys, types
package = sys.modules[{PACKAGE!r}] = types.ModuleType({PACKAGE!r})
def add(name, source):
    module = sys.modules[package.__name__ + "." + name] = types.ModuleType(package.__name__ + "." + name)
    setattr(package, name, module)
    exec(compile(source, name, "exec"), module.__dict__)
"""


@cache
def program(entry: Literal["main", "describe"]) -> str:
    """Python source that judges a candidate, or says which Python runs it; imports nothing but a plain Python's."""
    sources = {name: (files(PACKAGE) / f"{name}.py").read_text(encoding="utf-8") for name in MODULES}
    adds = "".join(f"add({name!r}, {source!r})\n" for name, source in sources.items())
    return f"{_HEAD}{adds}package.checker.{entry}()\n"


@cache
def harness_sha256() -> str:
    """SHA-256 of command and judging source: any change of how a candidate is judged changes it."""
    return text_sha256("\n".join((*COMMAND, program("main"))))


def prefixed(data: bytes) -> bytes:
    """Bytes with their length before them, as a container reads them."""
    return len(data).to_bytes(8, "big") + data
