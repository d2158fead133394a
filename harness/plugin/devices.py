"""One GPU for each process of a session: which one, and that no other is seen. Set before torch is loaded.

A process that owns one device is, to its records, a machine with one GPU: device map, generator states, environment.
"""

import os
import re
import sys
from itertools import combinations

import pytest

VISIBLE = "CUDA_VISIBLE_DEVICES"
_WORKER = re.compile(r"^gw([0-9]+)$")


def own_gpu(config: pytest.Config) -> None:
    """With `--gpus A,B,…`: the process sees one of them alone, a worker its own. UsageError where that can't be."""
    if not config.option.gpus:
        return
    listed = _listed(config.option.gpus)
    workerinput = getattr(config, "workerinput", None)
    workers = _workers(config) if workerinput is None else workerinput["workercount"]
    if workers > len(listed):
        raise pytest.UsageError(
            f"--gpus {config.option.gpus}: expected a GPU for each of {workers} workers, found {len(listed)}. "
            f"Name {workers} GPUs, or start {len(listed)} workers."
        )
    chosen = _chosen(listed, workerinput["workerid"]) if workerinput else listed[0]
    if "torch" in sys.modules and os.environ.get(VISIBLE) != chosen:
        raise pytest.UsageError(
            f"--gpus {config.option.gpus}: expected a process that hasn't loaded torch, found it loaded with {VISIBLE}="
            f"{os.environ.get(VISIBLE, '')!r}. Leave out the plugin that loads torch."
        )
    if workerinput is None:
        _require_given(config.option.gpus, listed)
    os.environ[VISIBLE] = chosen


def _require_given(text: str, listed: list[str]) -> None:
    """Where the session was given GPUs already, those that it names are among them: others are somebody else's."""
    given = os.environ.get(VISIBLE)
    if given is not None and not {*listed} <= {one.strip() for one in given.split(",")}:
        raise pytest.UsageError(
            f"--gpus {text}: expected GPUs of those that the session was given, by the same names, found "
            f"{VISIBLE}={given!r}. Name them as they are there, or unset it."
        )


def _listed(text: str) -> list[str]:
    """Names of devices as CUDA reads them: numbers, or identifiers that begin with GPU- or MIG-; of one form only.

    CUDA reads `00` as 0 and takes an identifier's beginning for the whole, and a GPU has a number and an identifier.
    """
    names = [one.strip() for one in text.split(",")]
    wrong = [one for one in names if not re.fullmatch(r"[0-9]+|(GPU|MIG)-[0-9A-Za-z/-]+", one)]
    found = repr(wrong[0]) if wrong else _one_by_two(names)
    if found:
        raise pytest.UsageError(
            f"--gpus {text}: expected different GPUs, separated by commas, as CUDA names them, found {found}."
        )
    return names


def _one_by_two(names: list[str]) -> str | None:
    """Two names that are one GPU's, or may be."""
    forms = {re.sub(r"[0-9]+", "", one.partition("-")[0]) for one in names}
    if len(forms) > 1:
        return "numbers and identifiers, or identifiers of two kinds"
    for one, other in combinations(names, 2):
        same = int(one) == int(other) if one.isdigit() else _begins(one.lower(), other.lower())
        if same:
            return f"{one} twice" if one == other else f"{one} and {other}, which may be one GPU"
    return None


def _begins(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def _workers(config: pytest.Config) -> int:
    """How many workers xdist starts; one process that generates where it starts none."""
    started = getattr(config.option, "tx", None) or ()
    return max(len(started), 1)


def _chosen(listed: list[str], worker: str) -> str:
    """The worker's own. One that xdist starts in a lost worker's place has the next number, and no other's GPU."""
    index = _index(worker)
    if index >= len(listed):
        raise pytest.UsageError(
            f"worker {worker}: expected one of {len(listed)} GPUs to itself, found none left. Start the session again."
        )
    return listed[index]


def _index(worker: str) -> int:
    named = _WORKER.match(worker)
    if named is None:
        raise pytest.UsageError(f"worker {worker}: expected gw0, gw1, …, as xdist names them. Start workers with -n.")
    return int(named[1])
