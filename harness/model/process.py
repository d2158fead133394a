"""Settings of the generating process, made before torch is loaded and read back after: allocator, threads, precision.

Nothing here knows a checkpoint.
"""

import os
import sys
import time
import uuid

import psutil

from harness.errors import ModelError
from harness.records.protocol import Execution, Placement
from harness.records.run import ProcessIdentity

ALLOCATOR = "PYTORCH_CUDA_ALLOC_CONF"
# Any text serves: its hash is the process's own unless PYTHONHASHSEED says otherwise.
HASHED = "pregate"
CUBLAS = "CUBLAS_WORKSPACE_CONFIG"
STEERING = ("ATEN_", "CUBLAS_", "DNNL_", "KMP_", "MKL_", "NVIDIA_TF32_", "OMP_", "ONEDNN_", "TORCH_", "PYTORCH_")


def steering() -> dict[str, str]:
    """Variables that steer kernels, by name. The allocator's belongs to the placement, which sets it."""
    named = {name: value for name, value in sorted(os.environ.items()) if name.startswith(STEERING)}
    return {name: value for name, value in named.items() if name != ALLOCATOR}


def steer_as(wanted: dict[str, str]) -> None:
    """Have exactly these variables of that kind; to be called before torch is loaded, which reads them then."""
    for name in steering().keys() - wanted.keys():
        del os.environ[name]
    os.environ.update(wanted)


def set_before_torch(execution: Execution, placement: Placement) -> None:
    """Environment variables that torch reads when it loads; ModelError where torch was loaded with others."""
    wanted = {ALLOCATOR: placement.allocator}
    if execution.deterministic_algorithms and execution.device == "cuda":
        wanted[CUBLAS] = ":4096:8"
    for name, value in wanted.items():
        if os.environ.get(name, "") == value:
            continue
        if "torch" in sys.modules:
            raise ModelError(
                name,
                expected=repr(value),
                found=repr(os.environ.get(name, "")),
                todo="Torch is loaded already: run placements with different allocator settings in separate processes.",
            )
        if value:
            os.environ[name] = value
        else:
            os.environ.pop(name, None)


def apply_settings(execution: Execution) -> None:
    """Threads, determinism and matmul precision; ModelError where one doesn't read back as set."""
    import torch  # noqa: PLC0415 - the variables above must be set before it loads

    torch.set_num_threads(execution.threads)
    torch.use_deterministic_algorithms(execution.deterministic_algorithms)
    torch.set_float32_matmul_precision(execution.float32_matmul_precision)
    effective = {
        "threads": torch.get_num_threads(),
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
    }
    wanted = {
        "threads": execution.threads,
        "deterministic_algorithms": execution.deterministic_algorithms,
        "float32_matmul_precision": execution.float32_matmul_precision,
    }
    for name, value in wanted.items():
        if effective[name] != value:
            raise ModelError(name, expected=str(value), found=str(effective[name]), todo="Start a fresh process.")


def process_identity(model_loaded_us: int) -> ProcessIdentity:
    """The running process and one load of a model in it; two loads never share a `model_load_id`."""
    process = psutil.Process()
    return ProcessIdentity(
        pid=process.pid,
        started_us=int(process.create_time() * 1e6),
        model_loaded_us=model_loaded_us,
        model_load_id=uuid.uuid4().hex,
        str_hash=f"{hash(HASHED) & (1 << 64) - 1:016x}",
    )


def now_us() -> int:
    """Unix time in us, for observations only."""
    return time.time_ns() // 1000
