"""The processor's name, for the environment record."""

import platform
from pathlib import Path


def cpu_name() -> str:
    """The model name that Linux reports, else what Python knows."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"
