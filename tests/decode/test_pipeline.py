"""Watching what a call of `generate` builds: seen whole, put back, and refused where it can't be seen."""

import pytest
from transformers import LogitsProcessor, LogitsProcessorList, TemperatureLogitsWarper, TopPLogitsWarper

from harness.decode.pipeline import described, watched_pipeline
from harness.errors import ModelError
from harness.records.sampling import Processor


class Last(LogitsProcessor):
    """A watcher."""


class Together:
    """Builds everything in one list, as transformers 5.24."""

    def _get_logits_processor(self, generation_config, logits_processor):
        return LogitsProcessorList([*logits_processor, TemperatureLogitsWarper(0.3), TopPLogitsWarper(0.95)])


class Apart:
    """Builds warpers in a list of their own, which is applied after the other, as transformers 4.41."""

    def _get_logits_processor(self, generation_config, logits_processor):
        return LogitsProcessorList(logits_processor)

    def _get_logits_warper(self, generation_config):
        return LogitsProcessorList([TemperatureLogitsWarper(0.3), TopPLogitsWarper(0.95)])


class Nowhere:
    """Builds them in a place that isn't known."""


def test_everything_is_seen_in_one_list():
    """In order, with the config, and the watcher stands last without being part of it."""
    model, last, config = Together(), Last(), object()
    with watched_pipeline(model, last) as pipeline:
        built = model._get_logits_processor(generation_config=config, logits_processor=[])
    assert [type(one) for one in pipeline.processors] == [TemperatureLogitsWarper, TopPLogitsWarper]
    assert built[-1] is last
    assert pipeline.config is config


def test_everything_is_seen_in_two_lists():
    """The watcher stands behind the warpers and not behind the processors."""
    model, last, first = Apart(), Last(), Last()
    with watched_pipeline(model, last) as pipeline:
        processors = model._get_logits_processor(generation_config="config", logits_processor=[first])
        warpers = model._get_logits_warper("config")
    assert pipeline.processors == [first, *warpers[:2]]
    assert list(processors) == [first]
    assert warpers[-1] is last
    assert pipeline.config == "config"


@pytest.mark.parametrize("model", [Together(), Apart()], ids=["together", "apart"])
def test_the_model_is_put_back(model):
    """Also after an error in the call."""
    with pytest.raises(KeyError), watched_pipeline(model, Last()):
        raise KeyError("in the call")
    assert vars(model) == {}
    assert len(model._get_logits_processor("config", [])) == (2 if isinstance(model, Together) else 0)


def test_a_library_that_can_not_be_asked_is_refused():
    """What it draws from must be seen: nothing is sampled without."""
    with pytest.raises(ModelError, match=r"a library that builds them in _get_logits_processor, found transformers \d"):
        watched_pipeline(Nowhere(), Last()).__enter__()


def test_watching_twice_is_misuse():
    """Two watchers would each see half."""
    model = Together()
    with watched_pipeline(model, Last()), pytest.raises(RuntimeError, match="watched already"):
        watched_pipeline(model, Last()).__enter__()
    assert vars(model) == {}


@pytest.mark.parametrize(
    ("processor", "name", "values"),
    [
        (TemperatureLogitsWarper(0.3), "TemperatureLogitsWarper", {"temperature": "0.3"}),
        (
            TopPLogitsWarper(1),
            "TopPLogitsWarper",
            {"top_p": "1.0", "filter_value": "-inf", "min_tokens_to_keep": "1"},
        ),
        (Last(), "Last", {}),
    ],
    ids=["temperature", "top-p", "plain"],
)
def test_a_processor_is_described_by_its_values(processor, name, values):
    """Class and plain attributes, by name."""
    assert described(processor) == Processor(name=name, values=values)
