"""Memory that runs out at a chosen point, in a process and in the ones that it starts.

OOM_AT: `PLACEMENT:N` or `PLACEMENT:load`, several by commas: the Nth generation call of each model loaded under the
placement, or its load, is refused as the CUDA allocator words it.
"""

from pathlib import Path
from typing import Any

MESSAGE = "CUDA out of memory. Tried to allocate 400.00 MiB. GPU 0 has a total capacity of 31.84 GiB."
PLANT = f'''
"""Refuses what OOM_AT names, in every model that harness.run.engine loads."""
import os

MESSAGE = {MESSAGE!r}

def refused(placement, when):
    wanted = [one.rsplit(":", 1) for one in os.environ.get("OOM_AT", "").split(",") if one]
    return [placement, when] in wanted

def plant(engine):
    import torch
    load = engine.load_model

    def load_model(profile, execution, placement, checkpoint):
        from harness.model import load as module
        if refused(placement.id, "load"):
            raise module._load_out_of_memory(profile, placement, MESSAGE)
        loaded = load(profile, execution, placement, checkpoint)
        generate, calls = type(loaded.model).generate, []

        def counted(*arguments, **more):
            calls.append(1)
            if refused(placement.id, str(len(calls))):
                raise torch.OutOfMemoryError(MESSAGE)
            return generate(loaded.model, *arguments, **more)

        loaded.model.generate = counted
        return loaded

    engine.load_model = load_model
'''
SITE = (
    PLANT
    + """
import importlib.abc, importlib.util, sys

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "harness.run.engine":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            plant(module)

        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Finder())
"""
)


def plant(engine: Any) -> None:
    """Plant it in this process; `engine.load_model` is replaced."""
    namespace: dict[str, Any] = {}
    exec(PLANT, namespace)
    namespace["plant"](engine)


def forgetful(folder: Path) -> dict[str, str]:
    """The environment under which child processes obey OOM_AT; the planted module's file is written to `folder`."""
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(SITE)
    return {"PYTHONPATH": str(folder)}
