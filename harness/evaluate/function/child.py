"""The program that calls an author's function: `child.py FILE SHA256 FUNCTION`, one JSON line in, one out.

The source is read once, held against its digest, and only then compiled. Standard output belongs to the two programs
alone: what the function prints goes nowhere. What it returns must be a plain value.
"""

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any, TextIO

PLAIN = (bool, int, float, str, type(None))


def load(file: str, sha256: str, function: str) -> Any:
    """The function, from the very bytes that have the digest; SystemExit with a reason for anything else."""
    data = Path(file).read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise SystemExit(f"source SHA-256 {found}")
    # As if it lay in the empty folder that this process was started in: what lies beside it has no digest.
    names: dict[str, Any] = {"__name__": "pregate_function", "__file__": str(Path.cwd() / Path(file).name)}
    exec(compile(data, file, "exec"), names)  # noqa: S102 - the author's registered source, in a process of its own
    if not callable(names.get(function)):
        raise SystemExit(f"no function {function}")
    return names[function]


def answer(function: Any, line: str) -> dict[str, Any]:
    """What the function gives for one request."""
    request = json.loads(line)
    try:
        value = function(request["text"], dict(request["gold"]))
    except Exception as error:  # noqa: BLE001 - whatever an author's function raises is its answer
        return {"outcome": "raised", "value": None, "detail": type(error).__name__}
    if type(value) not in PLAIN:
        return {"outcome": "raised", "value": None, "detail": f"returned {type(value).__name__}"}
    return {"outcome": "returned", "value": value, "detail": ""}


def serve(out: TextIO) -> None:
    """Answer every line of standard input, after one line that says that the function is there."""
    try:
        given, sys.argv[1:] = sys.argv[1:4], []
        function = load(*given)
    except BaseException as error:  # noqa: BLE001 - also SystemExit: the reason is the first line
        _say(out, {"refused": str(error) or type(error).__name__})
        return
    _say(out, {"ready": True})
    for line in sys.stdin:
        _say(out, answer(function, line))


def _say(out: TextIO, content: dict[str, Any]) -> None:
    out.write(json.dumps(content) + "\n")
    out.flush()


if __name__ == "__main__":
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    serve(channel)
