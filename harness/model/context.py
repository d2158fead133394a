"""How many tokens a model's sequence may have, as its config says. No torch here."""

import json
from pathlib import Path

from harness.errors import ModelError
from harness.files import read_bytes

CONTEXT = "max_position_embeddings"


def context_of(checkpoint: Path | None) -> int | None:
    """How many tokens a sequence of the model may have, as its config.json says; None where none says so."""
    path = checkpoint / "config.json" if checkpoint else None
    if path is None or not path.is_file():
        return None
    try:
        config = json.loads(read_bytes(path, what="model config"))
    except ValueError as error:
        raise ModelError(str(path), expected="JSON", found=str(error), todo="Take the model's file again.") from error
    said = config.get(CONTEXT) if isinstance(config, dict) else None
    return said if isinstance(said, int) else None
