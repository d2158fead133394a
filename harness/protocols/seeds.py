"""Seeds of sampled protocols (R07 5): a function of the registered ID, the replicate and the source, of nothing else.

Rule `run-seed-r07`. Base seed of replicate i: first 4 bytes of SHA-256 of `{registered_id}/seed/{i}`. Run seed of a
batch: first 8 bytes of SHA-256 of `{registered_id}/run`, a zero byte, the base seed in decimal, a zero byte and the
source ID, modulo 2**63 - 1. Both big-endian, over UTF-8.
"""

import hashlib
from typing import Literal

from harness.canon import hex64
from harness.errors import ProtocolError
from harness.records.sampling import BaseSeed, BatchSeeds, SeedContract, SeedRule

RULE: SeedRule = "run-seed-r07"
MODULUS = 2**63 - 1
TODO = "Take the frozen protocol back from version control; other seeds are another protocol."

# Ours: Round 06 published neither its ID nor its seeds. One source a domain, eight replicates, eight conditions.
SINGLE_SOURCE_ID = "pregate-deepseek-chat-single-source-sampling-v1"
SINGLE_SOURCE_REPLICATES = 8


def base_seed(registered_id: str, index: int) -> int:
    """The base seed of the replicate with this index, 0 <= seed < 2**32."""
    return int.from_bytes(hashlib.sha256(f"{registered_id}/seed/{index}".encode()).digest()[:4], "big")


def run_seed(registered_id: str, base: int, source_id: str) -> int:
    """The seed of the batch of a source under a base seed, 0 <= seed < 2**63 - 1."""
    message = f"{registered_id}/run\0{base}\0{source_id}".encode()
    return int.from_bytes(hashlib.sha256(message).digest()[:8], "big") % MODULUS


def seed_contract(registered_id: str, replicates: int, *, origin: Literal["published", "ours"]) -> SeedContract:
    """The base seeds R0, R1... that the rule gives a registered ID."""
    seeds = (BaseSeed(replicate=f"R{i}", index=i, seed=base_seed(registered_id, i)) for i in range(replicates))
    return SeedContract(rule=RULE, origin=origin, base_seeds=tuple(seeds))


def single_source_seeds() -> SeedContract:
    """Round 06's eight base seeds: ours, by Round 07's rule."""
    return seed_contract(SINGLE_SOURCE_ID, SINGLE_SOURCE_REPLICATES, origin="ours")


def check_seeds(contract: SeedContract, registered_id: str) -> None:
    """ProtocolError unless every base seed is what the rule gives, each replicate once and under its own index.

    Ri has index i: under another one it would be drawn from another replicate's published seed.
    """
    for one in contract.base_seeds:
        expected = base_seed(registered_id, one.index)
        if one.seed != expected:
            raise _wrong(registered_id, one.replicate, expected=str(expected), found=str(one.seed))
    for name in ("replicate", "index", "seed"):
        values = [getattr(one, name) for one in contract.base_seeds]
        if not values or len(set(values)) != len(values):
            raise _wrong(registered_id, name, expected="one or more, each once", found=str(values))
    for one in contract.base_seeds:
        if one.replicate != f"R{one.index}":
            raise _wrong(registered_id, f"index {one.index}", expected=f"replicate R{one.index}", found=one.replicate)


def batch_seeds(contract: SeedContract, registered_id: str, *, source_id: str, replicate: str) -> BatchSeeds:
    """The seeds of one batch; ProtocolError for a replicate that has no base seed."""
    for one in contract.base_seeds:
        if one.replicate == replicate:
            run = run_seed(registered_id, one.seed, source_id)
            return BatchSeeds(rule=contract.rule, base=one.seed, run=hex64(run))
    known = ", ".join(one.replicate for one in contract.base_seeds)
    raise _wrong(registered_id, "replicate", expected=f"one of {known}", found=replicate)


def seed_value(seeds: BatchSeeds) -> int:
    """The run seed as the integer that a generator is set to."""
    return int(seeds.run, 16)


def _wrong(registered_id: str, what: str, *, expected: str, found: str) -> ProtocolError:
    return ProtocolError(f"seeds of {registered_id}: {what}", expected=expected, found=found, todo=TODO)
