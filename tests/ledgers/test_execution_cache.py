"""Which cells share an execution (R07 8): the same program of the same task and tests, where a cache is registered."""

import msgspec
import pytest
from pregate_support.books import PROTOCOLS, Said
from pregate_support.sampled_runs import FENCED, SampledBuilder

from harness.canon import text_sha256
from harness.ledgers.executions import code_cell, code_cells
from harness.protocols.folders import protocol_ids
from harness.protocols.load import load_protocol, read_protocol
from harness.records.evaluation import CodeFound, CodeMissing

replace = msgspec.structs.replace
SEEDS = ("R0", "R1")
SAME = f"Here it is:\n{FENCED}\nDone."
OTHER = "```python\ndef f(n):\n    return n + 2\n```"


@pytest.fixture(scope="module")
def samples():
    """A builder of two sources a domain and two seeds."""
    protocol = read_protocol(PROTOCOLS / "nano-cross-source-sampling" / "protocol.toml")
    return SampledBuilder(protocol).with_grid("formal", per_domain=2, replicates=SEEDS)


@pytest.fixture(scope="module")
def run(samples):
    """Two sources, two seeds: the same program in two texts, one other program, one cell without any."""
    said = {"*": Said(FENCED), "s1_eos": Said(SAME), "s0_period": Said(OTHER), "s1_period": Said("")}
    units = tuple(samples.drawn("code", index, said, replicate=seed) for index in range(2) for seed in SEEDS)
    return samples.sampled_run(units)


def keys(protocol, run):
    """Keys by source, replicate and condition."""
    return {
        (unit.source_id, unit.replicate, cell.condition): code_cell(protocol, run, unit, cell).key
        for unit in run.units
        for cell in unit.cells
    }


def test_which_protocols_register_a_cache():
    """Rounds 06 and 07 do; Rounds 04 and 05 take no verdict from one."""
    cached = [name for name in protocol_ids() if load_protocol(name).protocol.execution_cache]
    assert cached == sorted(name for name in protocol_ids() if name.endswith("-sampling"))


def test_the_same_program_of_a_task_has_one_execution(samples, run):
    """Across conditions, seeds and texts: what counts is the program that was taken."""
    found = keys(samples.protocol, run)
    of_first = {found["code/0000", seed, condition] for seed in SEEDS for condition in ("s0_eos", "s1_eos")}
    assert len(of_first) == 1
    assert found["code/0000", "R0", "s0_period"] == found["code/0000", "R1", "s0_period"] not in of_first


def test_each_cell_keeps_its_row(samples, run):
    """Every cell is listed, with what was taken from its own text; only the key is shared."""
    cells = list(code_cells(samples.protocol, run))
    assert [(one.source_id, one.condition) for one in cells] == [
        (unit.source_id, cell.condition) for unit in run.units for cell in unit.cells
    ]
    kinds = [type(one.extraction) for one in cells]
    assert kinds == [CodeFound, CodeFound, CodeFound, CodeMissing] * 4
    starts = {one.extraction.start for one in cells if one.condition in ("s0_eos", "s1_eos")}
    assert len(starts) == 2
    assert len({one.key for one in cells if isinstance(one.extraction, CodeFound)}) == 2 * 2


def test_another_task_has_an_execution_of_its_own(samples, run):
    """The same program, even for a task of the same words and tests: the key is never the candidate's alone."""
    assert run.tasks["code/0000"] == run.tasks["code/0001"]
    found = keys(samples.protocol, run)
    one, other = (found[source, "R0", "s0_eos"] for source in ("code/0000", "code/0001"))
    assert one != other
    program = "def f(n):\n    return n + 1\n"
    assert text_sha256(program)[:32] not in one + other


@pytest.mark.parametrize("name", ["prompt", "tests_sha256", "entry_point"])
def test_another_task_record_is_another_execution(samples, run, name):
    """Prompt, tests and entry point are each part of the key; the other source's is untouched."""
    value = {"prompt": "# f\ndef f(n):\n", "tests_sha256": "0" * 64, "entry_point": "g"}[name]
    tasks = {**run.tasks, "code/0000": replace(run.tasks["code/0000"], **{name: value})}
    before, after = keys(samples.protocol, run), keys(samples.protocol, replace(run, tasks=tasks))
    first = {key for key in before if key[0] == "code/0000" and key[2] != "s1_period"}
    assert not {before[key] for key in first} & {after[key] for key in first}
    assert [key for key in before if key[0] == "code/0001" and before[key] != after[key]] == []


def test_a_cell_without_a_program_shares_nothing(samples, run):
    """There is nothing to execute, and its key is its own."""
    found = keys(samples.protocol, run)
    empty = [found[source, seed, "s1_period"] for source in run.tasks for seed in SEEDS]
    assert empty == [f"code-0{at}-code-000{at}-{seed}-s1_period" for at in range(2) for seed in SEEDS]


def test_a_shared_execution_is_no_cells(samples, run):
    """Its name has the source and the word `shared` where a cell's has its seed; none can be taken for a cell's."""
    found = keys(samples.protocol, run)
    shared = {key for identity, key in found.items() if identity[2] != "s1_period"}
    assert {key.rsplit("-", 1)[0] for key in shared} == {f"code-0{at}-code-000{at}-shared" for at in range(2)}
    assert not shared & {found[identity] for identity in found if identity[2] == "s1_period"}


def test_without_a_cache_each_cell_has_its_own(samples, run):
    """The same run under a protocol that registers none."""
    plain = replace(samples.protocol, execution_cache=False)
    found = keys(plain, run)
    assert len(set(found.values())) == len(found) == 16
    assert found["code/0001", "R1", "s0_eos"] == "code-01-code-0001-R1-s0_eos"
