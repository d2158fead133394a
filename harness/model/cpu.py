"""The processor as the system names it, and the vector instructions that it offers. Loads no torch."""

import platform
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
# What libraries choose kernels by: torch, oneDNN and MKL; other flags change no arithmetic.
VECTOR = ("avx", "amx", "fma", "f16c", "sve", "asimd", "neon", "bf16", "i8mm")


def cpu_name() -> str:
    """The model name that Linux reports, else what Python knows."""
    return _line("model name") or platform.processor() or "unknown"


def cpu_instructions() -> str:
    """Vector instructions by Linux's names, sorted, with blanks between; empty where the system doesn't say.

    One name serves for processors with and without some of them, so that a name alone doesn't say which kernels run.
    """
    flags = (_line("flags") or _line("Features")).split()
    return " ".join(sorted({flag for flag in flags if flag.startswith(VECTOR)}))


def _line(name: str) -> str:
    """The first processor's value of a line of /proc/cpuinfo; empty where there is none."""
    if not CPUINFO.exists():
        return ""
    for line in CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""
