import os
from pathlib import Path

import msgspec
import pytest

from harness.errors import PromptError, ProtocolError
from harness.inputs.find import find_inputs
from harness.inputs.sources import source_texts
from harness.places import places
from harness.prompts.build import build_batch
from harness.prompts.manifest import compare_with_manifest, manifest_source
from harness.prompts.records import PromptBatch
from harness.prompts.tokenizer import locate_tokenizer
from harness.protocols.load import LoadedProtocol, load_protocol

replace = msgspec.structs.replace
SOURCE = "gsm8k/test/1069"


@pytest.fixture
def loaded(batch: PromptBatch) -> LoadedProtocol:
    """A protocol whose manifest registers the tiny batch."""
    real = load_protocol("deepseek-behavior")
    entry = manifest_source(batch, real.protocol.selection.salt)
    sources = tuple(entry if one.source_id == SOURCE else one for one in real.manifest.sources)
    return LoadedProtocol(
        real.protocol, replace(real.manifest, sources=sources), real.profile, real.digest, real.folder
    )


def test_a_batch_as_registered_passes(loaded: LoadedProtocol, batch: PromptBatch):
    """A batch agrees with the manifest's entry that was made from it."""
    compare_with_manifest(loaded, batch)


FAULTS = {
    "hash": (lambda b: cell(b, sha256="0" * 64), f"{SOURCE} s0_x: sha256: expected [0-9a-f]{{64}}, found 0000"),
    "length": (lambda b: cell(b, length=7), rf"{SOURCE} s0_x: length: expected \d+, found 7"),
    "missing cell": (lambda b: {"cells": b.cells[1:]}, rf"{SOURCE} s0_eos: length: expected \d+, found no cell"),
    "other cell": (lambda b: cell(b, condition="s2_x"), f"{SOURCE} s0_x: length: expected .*, found no cell"),
    "text": (lambda b: {"text_sha256": "0" * 64}, f"{SOURCE} source: text_sha256: expected .*, found 0000"),
    "domain": (lambda b: {"domain": "code"}, f"{SOURCE} source: domain: expected math, found code"),
    "index": (lambda b: {"index": 3}, f"{SOURCE} source: index: expected 0, found 3"),
}


def cell(batch: PromptBatch, **fields):
    """The cells with fields of s0_x changed."""
    return {"cells": tuple(replace(one, **fields) if one.condition == "s0_x" else one for one in batch.cells)}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_batch_that_differs_is_refused(fault: str, loaded: LoadedProtocol, batch: PromptBatch):
    """Source, condition, expected and found are in the message (R04 5)."""
    damage, message = FAULTS[fault]
    with pytest.raises(PromptError, match=message):
        compare_with_manifest(loaded, replace(batch, **damage(batch)))


def test_an_unfrozen_source_has_nothing_to_compare_with(loaded: LoadedProtocol, batch: PromptBatch):
    """A source whose hashes are owed is refused, not passed."""
    with pytest.raises(ProtocolError, match="expected a frozen source"):
        compare_with_manifest(loaded, replace(batch, source_id="tnews/test/4855"))


@pytest.mark.inputs
@pytest.mark.parametrize("domain", ["english", "code", "math"])
def test_registered_sources_give_the_registered_prompts(domain: str):
    """R04 5: every prompt hash of the frozen domains is reproduced from the registered files."""
    loaded = load_protocol("deepseek-behavior")
    found = find_inputs(loaded.protocol, [Path(os.environ["HARNESS_INPUTS"])])
    tokenizer = locate_tokenizer(loaded, None, places())
    for source in source_texts(loaded, found, domains=[domain], per_domain=4):
        compare_with_manifest(loaded, build_batch(loaded.protocol, tokenizer, source))
