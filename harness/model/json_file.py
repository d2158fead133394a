"""A checkpoint's JSON files, read as objects. No torch here."""

import json
from pathlib import Path
from typing import Any

from harness.errors import ModelError
from harness.files import read_bytes


def json_object(path: Path, *, todo: str) -> dict[str, Any]:
    """The object that a file holds; ModelError, with what to do, where it holds something else or isn't JSON."""
    try:
        content = json.loads(read_bytes(path, what="checkpoint file"))
    except ValueError as error:
        raise ModelError(str(path), expected="JSON", found=str(error), todo=todo) from error
    if not isinstance(content, dict):
        raise ModelError(str(path), expected="a JSON object", found=type(content).__name__, todo=todo)
    return content
