"""The checkpoint's embedding rows, read from the weight files' own bytes: no torch, no library, nothing of the trace.

An embedding is a lookup by token ID, so the digest of a cell's embedding stage follows from its token IDs alone.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.errors import ModelError
from harness.records.profile import Profile

TENSOR = "model.embed_tokens.weight"
# safetensors' names: how the harness calls the dtype, and how numpy reads its bytes.
_STORED = {"BF16": ("bfloat16", "<u2"), "F16": ("float16", "<f2"), "F32": ("float32", "<f4")}


@dataclass(frozen=True, slots=True)
class Embedding:
    """`bits` [vocabulary, columns] as `dtype` is stored (bfloat16: its two bytes)."""

    dtype: str
    bits: NDArray[Any]

    def sha256(self, ids: Sequence[int], dtype: str) -> str:
        """Digest of the rows of these token IDs, computed in `dtype`: the stored one, or float32 (exact)."""
        rows, name = self.bits[list(ids)], self.dtype
        if (name, dtype) == ("bfloat16", "float32"):
            rows, name = (rows.astype("<u4") << 16).view("<f4"), dtype
        if name != dtype:
            raise ModelError(TENSOR, expected=f"rows in {dtype}", found=name, todo="Register the stored dtype.")
        header = f"{dtype}|{rows.shape[0]},{rows.shape[1]}".encode("ascii")
        return hashlib.sha256(header + np.ascontiguousarray(rows).tobytes()).hexdigest()


def read_embedding(profile: Profile, checkpoint: Path) -> Embedding:
    """From whichever weight file holds it, by safetensors' own header; ModelError where none does.

    The files' digests were compared with the profile's before: this reads bytes and executes nothing.
    """
    for name in (file.name for file in profile.files if file.role == "weights"):
        data = np.memmap(checkpoint / name, dtype="u1", mode="r")
        start = 8 + int.from_bytes(bytes(data[:8]), "little")
        entry = json.loads(bytes(data[8:start])).get(TENSOR)
        if entry is not None:
            if entry["dtype"] not in _STORED:
                raise ModelError(
                    TENSOR, expected=", ".join(_STORED), found=entry["dtype"], todo="Check the checkpoint."
                )
            dtype, stored = _STORED[entry["dtype"]]
            first, last = entry["data_offsets"]
            return Embedding(dtype, data[start + first : start + last].view(stored).reshape(entry["shape"]))
    raise ModelError(str(checkpoint), expected=TENSOR, found="no weight file with it", todo="Check the checkpoint.")
