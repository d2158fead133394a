"""The protocol that a part of a task protocol's smoke run is made under: the same cells, decoded greedily (R08 4).

Two programs decode them, transformers' `generate` and the own loop with argmax. Manifest, profile and digest stay the
task protocol's, so that a part's records are held against the same pins as the run's.
"""

from dataclasses import replace

from harness.protocols.load import LoadedProtocol
from harness.records.protocol import DecodeContract, GenerationProtocol, LoopCheckProtocol, LoopProgram, TaskCrnProtocol


def loop_check(loaded: LoadedProtocol, program: LoopProgram) -> LoadedProtocol:
    """The protocol of a part; misuse for a protocol that doesn't decode in the loop."""
    protocol = loaded.protocol
    if not isinstance(protocol, TaskCrnProtocol):
        raise RuntimeError(f"{protocol.id} has no loop to check")
    shared = {name: getattr(protocol, name) for name in GenerationProtocol.__struct_fields__}
    derived = LoopCheckProtocol(
        **shared | {"sampler": "greedy"},
        by=program,
        decode=greedy_contract(protocol),
        grid_blocks=protocol.grid_blocks,
    )
    return replace(loaded, protocol=derived)


def greedy_contract(protocol: TaskCrnProtocol) -> DecodeContract:
    """Greedy decoding of the same batches: neutral parameters, the task protocol's rows, cache and generator seed."""
    contract = protocol.decode
    return DecodeContract(
        strategy="greedy",
        do_sample=False,
        num_beams=1,
        use_cache=contract.use_cache,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
        repetition_penalty=1.0,
        cache=contract.cache,
        rows_per_batch=contract.rows_per_batch,
        generator_seed=contract.generator_seed,
        official_temperature=contract.official_temperature,
        official_top_p=contract.official_top_p,
    )
