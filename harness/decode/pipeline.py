"""What a call of `generate` really draws from: the processors and warpers that the library builds, and their config.

The library builds both inside the call, by methods of the model that are named here; 4.41 builds the warpers apart,
5.24 together with the rest. In the context they are the library's own, with one watcher more behind the last of them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import transformers
from transformers import GenerationConfig, LogitsProcessor

from harness.errors import ModelError
from harness.records.sampling import Processor

PROCESSORS, WARPERS = "_get_logits_processor", "_get_logits_warper"


@dataclass(slots=True)
class Pipeline:
    """A call's generation config after all merging, and its processors in the order in which they are applied."""

    config: GenerationConfig | None = None
    processors: list[LogitsProcessor] = field(default_factory=list)


@contextmanager
def watched_pipeline(model: Any, last: LogitsProcessor) -> Iterator[Pipeline]:
    """Within it, a call of `generate` has `last` behind everything else; ModelError where that can't be done."""
    names = [name for name in (PROCESSORS, WARPERS) if hasattr(model, name)]
    if PROCESSORS not in names:
        raise ModelError(
            "processors of a generation call",
            expected=f"a library that builds them in {PROCESSORS}",
            found=f"transformers {transformers.__version__}",
            todo="Install a registered transformers: what it draws from must be seen.",
        )
    if any(name in vars(model) for name in names):
        raise RuntimeError("the model's pipeline is watched already")
    pipeline = Pipeline()
    for name in names:
        setattr(model, name, _noting(pipeline, getattr(model, name), last if name == names[-1] else None))
    try:
        yield pipeline
    finally:
        for name in names:
            delattr(model, name)


def _noting(pipeline: Pipeline, build: Callable[..., Any], last: LogitsProcessor | None) -> Callable[..., Any]:
    def built(*args: Any, **kwargs: Any) -> Any:
        processors = build(*args, **kwargs)
        pipeline.config = kwargs.get("generation_config", pipeline.config)
        pipeline.processors += list(processors)
        if last is not None:
            processors.append(last)
        return processors

    return built


def described(processor: LogitsProcessor) -> Processor:
    """A processor's class with its plain attributes, which are what a library lets it be set by."""
    plain = {name: repr(value) for name, value in sorted(vars(processor).items()) if _is_plain(name, value)}
    return Processor(name=type(processor).__name__, values=plain)


def _is_plain(name: str, value: object) -> bool:
    return not name.startswith("_") and (value is None or isinstance(value, bool | int | float | str))
