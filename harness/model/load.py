"""Loading a checkpoint under a registered placement. Knows no prompt and no protocol beyond execution and placement.

safetensors only, files of this disk only; remote code only where every code file's digest is registered.
"""

import logging
import tempfile
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import SafetensorError

from harness.errors import HarnessError, ModelError, PlacementError
from harness.model.memory import forget_peaks, load_report, refusal, release
from harness.model.process import apply_settings, now_us, process_identity
from harness.protocols.maps import gpu_budgets, map_difference
from harness.records.base import Frozen
from harness.records.profile import Profile
from harness.records.protocol import Execution, Placement
from harness.records.run import ProcessIdentity

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class LoadOutOfMemoryError(PlacementError):
    """Memory ran out while a placement was loaded. `found` is the allocator's first line."""


@dataclass(slots=True)
class LoadedModel:
    """A loaded model, and who loaded it. `close` releases it; a closed model can't be used."""

    model: Any
    device: torch.device
    placement: Placement
    execution: Execution
    process: ProcessIdentity
    load_ns: int
    _offload: tempfile.TemporaryDirectory[str] | None = field(default=None)

    def close(self) -> None:
        """Release the weights before anything else loads a model."""
        self.model = None
        release()
        if self._offload is not None:
            self._offload.cleanup()


def load_model(profile: Profile, execution: Execution, placement: Placement, checkpoint: Path) -> LoadedModel:
    """Load under the placement; ModelError: software, device or checkpoint can't; LoadOutOfMemoryError: memory."""
    apply_settings(execution)
    device = device_of(execution)
    forget_peaks(device)
    _quiet_libraries()
    offload = tempfile.TemporaryDirectory(prefix="pregate-offload-") if placement.offload_device == "disk" else None
    started = time.perf_counter_ns()
    arguments = _load_arguments(profile, execution)
    arguments |= _placement_arguments(placement, device, offload.name if offload else None)
    try:
        model = _from_pretrained(profile, placement, checkpoint, arguments)
        _pin_experts(model, execution)
    except HarnessError:
        if offload is not None:
            offload.cleanup()
        raise
    model.eval()
    load_ns = time.perf_counter_ns() - started
    return LoadedModel(model, device, placement, execution, process_identity(now_us()), load_ns, offload)


def _from_pretrained(profile: Profile, placement: Placement, checkpoint: Path, arguments: dict[str, Any]) -> Any:
    with warnings.catch_warnings(), load_report() as said:
        warnings.simplefilter("ignore")  # the libraries' deprecations aren't this run's business
        try:
            model, report = transformers.AutoModelForCausalLM.from_pretrained(
                checkpoint, output_loading_info=True, **arguments
            )
        except (OSError, ValueError, KeyError, ImportError, RuntimeError, MemoryError, SafetensorError) as error:
            refused = refusal(error, said.text)
            if refused is not None:
                raise _load_out_of_memory(profile, placement, refused) from error
            raise ModelError(
                str(checkpoint),
                expected=f"a loadable {profile.id}",
                found=f"{type(error).__name__}: {error}",
                todo="Check transformers' version and the checkpoint.",
            ) from error
    _require_all_weights(checkpoint, report)
    if getattr(model, "_hf_peft_config_loaded", False):
        raise ModelError(
            str(checkpoint), expected="the registered weights", found="an adapter", todo="Remove the adapter."
        )
    return model


def _load_out_of_memory(profile: Profile, placement: Placement, refused: str) -> LoadOutOfMemoryError:
    return LoadOutOfMemoryError(
        f"placement {placement.id}",
        expected=f"memory for {profile.id}",
        found=refused,
        todo="Take the next lower registered placement.",
    )


def device_of(execution: Execution) -> torch.device:
    """The execution device; ModelError where it isn't here."""
    if execution.device == "cuda" and not torch.cuda.is_available():
        raise ModelError(
            "device", expected="a CUDA device", found="none", todo="Run on a machine with the registered GPU."
        )
    return torch.device("cuda:0" if execution.device == "cuda" else "cpu")


def _load_arguments(profile: Profile, execution: Execution) -> dict[str, Any]:
    dtype_name = "dtype" if int(transformers.__version__.split(".")[0]) >= 5 else "torch_dtype"
    return {
        dtype_name: DTYPES[execution.dtype],
        "attn_implementation": execution.attention,
        "use_safetensors": True,
        "local_files_only": True,
        "trust_remote_code": uses_remote_code(profile, execution),
    }


def uses_remote_code(profile: Profile, execution: Execution) -> bool:
    """Remote code is loaded only where it is registered and each of its files has a frozen digest."""
    code = [file for file in profile.files if file.role == "code"]
    return execution.experts == "remote_code" and bool(code) and all(isinstance(file.digest, Frozen) for file in code)


def _placement_arguments(placement: Placement, device: torch.device, folder: str | None) -> dict[str, Any]:
    if placement.device_map == "single":
        return {"device_map": {"": str(device)}} if device.type == "cuda" else {}
    if placement.device_map == "auto":
        budgets: dict[int | str, str] = dict(enumerate(gpu_budgets(placement.gpu_memory)))
        if placement.cpu_memory != "none":
            budgets["cpu"] = placement.cpu_memory
        return {"device_map": "auto", "max_memory": budgets, **({"offload_folder": folder} if folder else {})}
    resident = dict.fromkeys(placement.resident, str(device))
    away = dict.fromkeys(placement.offloaded, placement.offload_device)
    return {"device_map": resident | away, **({"offload_folder": folder} if folder else {})}


def _require_all_weights(checkpoint: Path, report: dict[str, Any]) -> None:
    """The weight files hold exactly the model's weights: the library would fill a missing one with random numbers."""
    for name in ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs"):
        problems = sorted(str(one) for one in report.get(name) or ())
        if problems:
            raise ModelError(
                f"{checkpoint}: weights",
                expected="exactly the weights of the configured model",
                found=f"{len(problems)} {name}, first {problems[0]}",
                todo="Fetch the registered checkpoint again; nothing is initialised in its place.",
            )


def _pin_experts(model: Any, execution: Execution) -> None:
    if execution.experts in ("remote_code", "none"):
        return
    if not hasattr(model, "set_experts_implementation"):
        raise ModelError(
            "experts",
            expected=f"experts implementation {execution.experts!r}",
            found=f"transformers {transformers.__version__}",
            todo="Install a transformers that can pin the experts implementation.",
        )
    model.set_experts_implementation(execution.experts)


def _quiet_libraries() -> None:
    logging.getLogger("accelerate").setLevel(logging.ERROR)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()


def require_map(placement: Placement, device_map: dict[str, str]) -> None:
    """The dispatched map has exactly the registered modules resident and offloaded (PlacementError expected/found)."""
    different = map_difference(placement, device_map)
    if different is not None:
        raise PlacementError(
            f"placement {placement.id}",
            expected=different[0],
            found=different[1],
            todo="The budgets don't give the registered map here: register this map, or run as a port.",
        )
