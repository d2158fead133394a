"""The protocols that parts of a smoke run under tapes are made under: the same cells by another program (R08 4).

Greedily by transformers' `generate`, by the own loop or by the executor over a fixed cache, with argmax; and under the
tapes by the own loop where the protocol's steps are executed. Manifest, profile and digest stay the run's protocol's,
so that a part's records are held against the same pins as the run's.
"""

from dataclasses import replace

from harness.protocols.load import LoadedProtocol
from harness.records.decoding import DecodeContract
from harness.records.protocol import (
    DrawingProgram,
    GenerationProtocol,
    GraphCheckProtocol,
    GraphTaskProtocol,
    LoopProgram,
    LoopTaskProtocol,
    StudyLoopCheckProtocol,
    TapedProtocol,
    TapedStudyProtocol,
    TaskCrnProtocol,
    TaskLoopCheckProtocol,
)
from harness.records.taped import TapedContract


def part_protocol(loaded: LoadedProtocol, program: LoopProgram | DrawingProgram) -> LoadedProtocol:
    """The protocol of a part that the program makes; misuse for a protocol that has no such part."""
    if program == "uncaptured":
        graph_task(loaded)
        return loaded  # the same contract: how a step is launched is the request's to say, and the records'
    return drawn_loop(loaded) if program == "drawn_loop" else loop_check(loaded, program)


def loop_check(loaded: LoadedProtocol, program: LoopProgram) -> LoadedProtocol:
    """The protocol of a greedy part; misuse for a protocol that doesn't decode in a loop of the project's."""
    protocol = loaded.protocol
    if not isinstance(protocol, TapedProtocol):
        raise RuntimeError(f"{protocol.id} has no loop to check")
    shared = {name: getattr(protocol, name) for name in GenerationProtocol.__struct_fields__} | {
        "sampler": "greedy",
        "by": program,
        "decode": greedy_contract(protocol),
    }
    if isinstance(protocol, TapedStudyProtocol):
        return replace(loaded, protocol=StudyLoopCheckProtocol(**shared, evaluators=protocol.evaluators))
    shared["grid_blocks"] = protocol.grid_blocks
    if program != "graph":
        return replace(loaded, protocol=TaskLoopCheckProtocol(**shared))
    return replace(loaded, protocol=GraphCheckProtocol(**shared, graph=graph_task(loaded).decode.graph))


def drawn_loop(loaded: LoadedProtocol) -> LoadedProtocol:
    """The same tasks, tapes and sampler by the own loop over a cache that grows."""
    protocol = graph_task(loaded)
    contract = {name: getattr(protocol.decode, name) for name in TapedContract.__struct_fields__}
    shared = {name: getattr(protocol, name) for name in TaskCrnProtocol.__struct_fields__}
    shared |= {"decode": TapedContract(**contract | {"cache": "dynamic"})}
    return replace(loaded, protocol=LoopTaskProtocol(**shared, loop_equivalence="recorded"))


def greedy_contract(protocol: TapedProtocol) -> DecodeContract:
    """Greedy decoding of the same batches: neutral parameters, the protocol's rows and generator seed."""
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
        cache="dynamic",
        rows_per_batch=contract.rows_per_batch,
        generator_seed=contract.generator_seed,
        official_temperature=contract.official_temperature,
        official_top_p=contract.official_top_p,
    )


def graph_task(loaded: LoadedProtocol) -> GraphTaskProtocol:
    """The protocol, whose steps are executed over a fixed cache; misuse for any other."""
    if not isinstance(loaded.protocol, GraphTaskProtocol):
        raise RuntimeError(f"{loaded.protocol.id} executes no step over a fixed cache")
    return loaded.protocol
