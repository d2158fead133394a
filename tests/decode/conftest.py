"""The nano model, resident, loaded once; rows of real prompts."""

from pathlib import Path

import pytest
from pregate_support.sampling import sampled_contract as contract_of_rows
from pregate_support.sampling import seeds_of

from harness.decode.greedy import adopt_contract
from harness.decode.sampled import PaddedRows, adopt_sampling, decode_sampled
from harness.inputs.find import find_inputs
from harness.inputs.sources import source_texts
from harness.model.load import LoadedModel, load_model
from harness.places import places
from harness.prompts.build import build_batch
from harness.prompts.records import PromptBatch
from harness.prompts.tokenizer import locate_tokenizer
from harness.protocols.load import LoadedProtocol, load_protocol
from harness.records.sampling import SampledContract

from .rows import mixed_rows

BUDGET = 8


@pytest.fixture(scope="session")
def loaded() -> LoadedProtocol:
    """The nano protocol of this tree."""
    return load_protocol("nano-behavior")


@pytest.fixture(scope="session")
def checkpoint(loaded) -> Path:
    """The embedded checkpoint. Read only."""
    return places().models / loaded.profile.id / "checkpoint"


@pytest.fixture(scope="session")
def shared(loaded, checkpoint) -> LoadedModel:
    """The model, loaded once."""
    placement = next(one for one in loaded.protocol.placements if one.id == loaded.protocol.placement)
    model = load_model(loaded.profile, loaded.protocol.execution, placement, checkpoint)
    yield model
    model.close()


@pytest.fixture
def model(shared, loaded) -> LoadedModel:
    """The shared model under the contract, whatever the test before made of its generation config."""
    adopt_contract(shared, loaded.protocol.decode, loaded.profile.special_ids, BUDGET)
    return shared


@pytest.fixture(scope="session")
def batch(loaded) -> tuple[list[list[int]], list[list[int]]]:
    """Three left-padded rows of ordinary IDs, int [3, 10], and their mask."""
    pad = loaded.profile.special_ids.pad
    rows = [[loaded.profile.special_ids.bos, *range(30 + 7 * row, 35 + 9 * row)] for row in range(3)]
    width = max(map(len, rows))
    return (
        [[pad] * (width - len(row)) + row for row in rows],
        [[0] * (width - len(row)) + [1] * len(row) for row in rows],
    )


@pytest.fixture(scope="session")
def sampled_contract() -> SampledContract:
    """R07 2, for batches of three rows."""
    return contract_of_rows(3)


@pytest.fixture
def sampler(shared, sampled_contract, loaded) -> LoadedModel:
    """The shared model under the sampled contract, whatever the test before made of its generation config."""
    adopt_sampling(shared, sampled_contract, loaded.profile.special_ids, BUDGET)
    return shared


@pytest.fixture
def draw(sampler, loaded, batch):
    """`draw(replicate, rows=..., tick=...)`: the batch sampled under the seeds of `math/0000` and a replicate."""

    def do(replicate="R0", *, rows=None, tick=lambda _: None):
        seeds = seeds_of("math/0000", replicate)
        eos = loaded.profile.special_ids.eos
        return decode_sampled(sampler, rows or PaddedRows(*batch), seeds=seeds, eos=eos, tick=tick)

    return do


@pytest.fixture(scope="session")
def many_prompts(loaded, checkpoint) -> dict[str, PromptBatch]:
    """The formal grid's batches by source ID, the smoke grid's among them: eight left-padded cells each."""
    tokenizer = locate_tokenizer(loaded, checkpoint, places())
    per_domain = loaded.protocol.grids["formal"].per_domain
    domains = tuple(domain.name for domain in loaded.protocol.domains)
    texts = source_texts(loaded, find_inputs(loaded.protocol, []), domains=domains, per_domain=per_domain)
    return {source.source_id: build_batch(loaded.protocol, tokenizer, source) for source in texts}


@pytest.fixture(scope="session")
def mixed(loaded, many_prompts):
    """Four rows of four sources that end at different steps within 128 tokens, one of them not at all."""
    return mixed_rows(many_prompts, loaded.profile.special_ids.pad)
