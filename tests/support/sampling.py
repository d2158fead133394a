"""Valid evidence of sampled units by hand, over the nano conditions: seeded, drawn, replayed as the checks ask.

What a unit says depends on its run seed, so that replicates part and replays don't.
"""

from collections.abc import Mapping

import msgspec

from harness.canon import sha256_hex
from harness.protocols.generators import seeded_states
from harness.protocols.load import read_protocol
from harness.protocols.seeds import batch_seeds, seed_contract, seed_value
from harness.records.profile import SpecialIds
from harness.records.run import StateHash, UnitEvidence
from harness.records.sampling import BatchSeeds, Processor, SampledBatch, SampledContract, SampledEvidence

from .books import PROTOCOLS, Builder, Said

REGISTERED_ID = "pregate-test-sampling-v1"
IDS = SpecialIds(bos=0, eos=1, pad=1)
COLUMNS = 2048
TEMPERATURE = Processor(name="TemperatureLogitsWarper", values={"temperature": "0.3"})
TOP_K = Processor(name="TopKLogitsWarper", values={"filter_value": "-inf", "top_k": "50"})
TOP_P = Processor(name="TopPLogitsWarper", values={"filter_value": "-inf", "min_tokens_to_keep": "1", "top_p": "0.95"})


def sampled_contract(rows: int, replicates: int = 4) -> SampledContract:
    """R07 2 for batches of so many rows, with seeds under an ID of the tests' own."""
    return SampledContract(
        strategy="sample",
        pairing="batch-seed aligned",
        do_sample=True,
        num_beams=1,
        use_cache=True,
        temperature=0.3,
        top_k=0,
        top_p=0.95,
        repetition_penalty=1.0,
        cache="dynamic",
        rows_per_batch=rows,
        seeds=seed_contract(REGISTERED_ID, replicates, origin="ours"),
        official_temperature=0.3,
        official_top_p=0.95,
    )


def seeds_of(source_id: str, replicate: str) -> BatchSeeds:
    """A batch's seeds under that contract."""
    return batch_seeds(sampled_contract(8).seeds, REGISTERED_ID, source_id=source_id, replicate=replicate)


def parameters(max_new_tokens: int) -> dict[str, str]:
    """A call's generation config as transformers 5.24 leaves it, in part."""
    return {
        "do_sample": "true",
        "num_beams": "1",
        "use_cache": "true",
        "temperature": "0.3",
        "top_k": "0",
        "top_p": "0.95",
        "repetition_penalty": "1.0",
        "bos_token_id": "0",
        "eos_token_id": "1",
        "pad_token_id": "1",
        "max_new_tokens": str(max_new_tokens),
        "typical_p": "1.0",
        "num_return_sequences": "1",
        "num_assistant_tokens": "20",
        "min_p": "null",
        "generation_kwargs": "{}",
    }


def sampled_unit(domain: str = "math", index: int = 0, *, replicate: str = "R0") -> SampledEvidence:
    """One batch of eight rows whose text is its run seed, by the rules; the last row is cut off."""
    builder = Builder(read_protocol(PROTOCOLS / "nano-behavior" / "protocol.toml"))
    seeds = seeds_of(builder.source_id(domain, index), replicate)
    said: Mapping[str, Said] = {"*": Said(seeds.run), "s1_period": Said(seeds.run + "..", eos=False)}
    unit = builder.unit(domain, index, said, replicate=replicate)
    before = seeded_states(seed_value(seeds), gpus=0)
    after = msgspec.structs.replace(before, torch_cpu=StateHash(sha256=sha256_hex(f"after {seeds.run}".encode())))
    sampling = SampledBatch(
        seeds=seeds,
        generator="torch_cpu",
        rows=len(unit.cells),
        columns=COLUMNS,
        draws=unit.checks.steps,
        parameters=parameters(unit.max_new_tokens),
        processors=(TEMPERATURE, TOP_P),
        drawable=unit.checks.rows_checked,
        several=3,
    )
    return with_sampling(msgspec.structs.replace(unit, rng_before=before, rng_after=after), sampling)


def with_sampling(unit: UnitEvidence, sampling: SampledBatch) -> SampledEvidence:
    """A unit's evidence with how it was drawn."""
    plain = {name: getattr(unit, name) for name in UnitEvidence.__struct_fields__}
    return SampledEvidence(**plain, sampling=sampling)


def changed(unit: SampledEvidence, **fields: object) -> SampledEvidence:
    """A unit with other fields of its `sampling`."""
    return msgspec.structs.replace(unit, sampling=msgspec.structs.replace(unit.sampling, **fields))
