"""Memory of this process: whether an error says that it ran out, its peaks, and letting go of it.

Peaks are those of torch's allocator and of the process; what other processes hold on the same device isn't seen.
"""

import errno
import gc
import logging
import re
import resource
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from harness.errors import DecodeError
from harness.model.placement import memory_observation

_WORDS = ("out of memory", "can't allocate memory", "Cannot allocate memory", "ALLOC_FAILED")
_CLASS = re.compile(r"^[\w.]+(Error|Exception): ")
_REPORTING = "transformers.modeling_utils"


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an allocator refused: torch's and Python's own classes, and other errors by number or wording."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return any(word in str(error) for word in _WORDS)


def out_of_memory(where: str, error: BaseException) -> DecodeError:
    """The one word for every way in which memory ran out; the requested bytes are in the message."""
    return DecodeError(
        where,
        kind="out_of_memory",
        expected="memory for the whole batch",
        found=str(error).split("\n")[0] or type(error).__name__,
        todo="Take the next lower registered placement; the batch is never split.",
    )


def refusal(error: BaseException, report: str) -> str | None:
    """What the allocator said, from an error, from one that it hides or from a library's report; None: nothing.

    transformers 5 catches what fails while it merges experts, writes it into its load report and raises another error.
    """
    hidden: BaseException | None = error
    while hidden is not None:
        if is_out_of_memory(hidden):
            return str(hidden).split("\n")[0] or type(hidden).__name__
        hidden = hidden.__cause__ or hidden.__context__
    lines = [line.strip() for line in report.splitlines() if any(word in line for word in _WORDS)]
    return _CLASS.sub("", lines[-1]) if lines else None


class _Report(logging.Handler):
    """Keeps what a library reports."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text += record.getMessage() + "\n"


@contextmanager
def load_report() -> Iterator[_Report]:
    """Catch transformers' load report instead of showing it."""
    logger, report = logging.getLogger(_REPORTING), _Report()
    level, propagate = logger.level, logger.propagate
    logger.addHandler(report)
    logger.setLevel(logging.WARNING)
    logger.propagate = False
    try:
        yield report
    finally:
        logger.removeHandler(report)
        logger.setLevel(level)
        logger.propagate = propagate


def memory_at_failure() -> dict[str, int]:
    """Peak allocated and reserved bytes of each CUDA device since `forget_peaks`; resident bytes now and at their peak.

    The peak of resident bytes is the process's since it started: the system keeps no other.
    """
    reserved = {
        f"cuda:{index} reserved": torch.cuda.max_memory_reserved(index) for index in range(torch.cuda.device_count())
    }
    peak_rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {**memory_observation(), **reserved, "peak_rss": peak_rss}


def forget_peaks(device: torch.device) -> None:
    """Begin a new peak on a CUDA device, so that a second model's isn't the first one's."""
    if device.type == "cuda":
        torch.cuda.init()  # type: ignore[no-untyped-call]  # before it, the allocator knows no device and refuses
        torch.cuda.reset_peak_memory_stats(device)


def release() -> None:
    """Give back what nothing refers to any more, to the system and to the device."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
