"""Settings of the process, generators and environment: set, read back, and refused where they don't hold."""

import os
import platform
import random
import sys

import msgspec
import numpy as np
import pytest
import torch

from harness.canon import digest
from harness.errors import ModelError
from harness.model import cpu as cpu_module
from harness.model import environment as environment_module
from harness.model import process as process_module
from harness.model.cpu import cpu_instructions, cpu_name
from harness.model.environment import package_versions, read_environment, software_deviations
from harness.model.here import PACKAGES, Machine, environment_here, here
from harness.model.identity import checkpoint_digests
from harness.model.process import ALLOCATOR, CUBLAS, apply_settings, process_identity, set_before_torch
from harness.model.rng import rng_states
from harness.records.protocol import Software
from harness.records.run import NoDevice
from harness.snapshots.environments import CAPABILITY, best_kernels


@pytest.fixture
def execution(loaded):
    """The nano protocol's."""
    return loaded.protocol.execution


@pytest.fixture
def placement(loaded):
    """The nano protocol's own placement."""
    return next(one for one in loaded.protocol.placements if one.id == loaded.protocol.placement)


@pytest.fixture
def effective():
    """A generation config as it would be read back."""
    return {"do_sample": False, "top_p": 1.0, "suppress_tokens": None}


def test_settings_are_read_back(execution):
    """Threads, determinism, precision as torch has them afterwards."""
    apply_settings(msgspec.structs.replace(execution, threads=2, deterministic_algorithms=True))
    assert torch.get_num_threads() == 2
    assert torch.are_deterministic_algorithms_enabled()
    assert torch.get_float32_matmul_precision() == "highest"


@pytest.mark.parametrize(
    ("reader", "value", "name"),
    [
        ("get_num_threads", 7, "threads"),
        ("are_deterministic_algorithms_enabled", False, "deterministic_algorithms"),
        ("get_float32_matmul_precision", "medium", "float32_matmul_precision"),
    ],
)
def test_a_setting_that_does_not_hold_is_refused(execution, monkeypatch, reader, value, name):
    """What reads back otherwise stops the run, by its name."""
    monkeypatch.setattr(torch, reader, lambda: value)
    with pytest.raises(ModelError, match=f"{name}: expected .*, found {value}"):
        apply_settings(execution)


def test_the_allocator_is_set_before_torch(execution, placement, monkeypatch):
    """In a process without torch the registered value is in the environment; an empty one is removed."""
    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setenv(ALLOCATOR, "other")
    set_before_torch(execution, msgspec.structs.replace(placement, allocator="expandable_segments:True"))
    assert os.environ[ALLOCATOR] == "expandable_segments:True"
    set_before_torch(execution, placement)
    assert ALLOCATOR not in os.environ


@pytest.mark.parametrize(("device", "value"), [("cuda", ":4096:8"), ("cpu", None)])
def test_cublas_is_pinned_for_deterministic_cuda(execution, placement, monkeypatch, device, value):
    """Only where a CUDA device computes deterministically."""
    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setenv(CUBLAS, "x")
    monkeypatch.delenv(CUBLAS)
    set_before_torch(msgspec.structs.replace(execution, device=device), placement)
    assert os.environ.get(CUBLAS) == value


def test_another_allocator_after_torch_is_refused(execution, placement):
    """Torch is loaded here: the variable would be written and not be in force."""
    with pytest.raises(ModelError, match=f"{ALLOCATOR}: expected 'max_split_size_mb:64', found ''.*separate processes"):
        set_before_torch(execution, msgspec.structs.replace(placement, allocator="max_split_size_mb:64"))


def test_the_same_allocator_after_torch_is_accepted(execution, placement, monkeypatch):
    """Nothing is to be changed."""
    monkeypatch.setenv(ALLOCATOR, "max_split_size_mb:64")
    set_before_torch(execution, msgspec.structs.replace(placement, allocator="max_split_size_mb:64"))


def test_reading_the_generators_changes_none():
    """The same four states twice, and the same draws as without reading."""
    random.seed(5)
    before = rng_states()
    assert rng_states() == before
    drawn = random.random()
    random.seed(5)
    assert random.random() == drawn


@pytest.mark.parametrize(
    ("field", "consume"),
    [
        pytest.param("python", random.random, id="python"),
        pytest.param("numpy", np.random.random, id="numpy"),
        pytest.param("numpy", np.random.standard_normal, id="numpy-gauss"),
        pytest.param("torch_cpu", lambda: torch.rand(1), id="torch"),
    ],
)
def test_a_consumed_generator_has_another_hash(field, consume):
    """One draw changes the hash of its generator, and of no other."""
    before = rng_states()
    consume()
    after = rng_states()
    assert [name for name in before.__struct_fields__ if getattr(before, name) != getattr(after, name)] == [field]


def test_the_second_gaussian_is_part_of_the_state():
    """NumPy keeps one drawn number back: its use alone changes the state."""
    np.random.seed(3)
    np.random.standard_normal()
    before = rng_states()
    np.random.standard_normal()
    assert rng_states().numpy != before.numpy


@pytest.mark.parametrize("available", [False, True], ids=["no-device", "device"])
def test_cuda_has_a_state_or_a_typed_absence(monkeypatch, available):
    """Never an empty hash: without a device there is a word for it."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: available)
    monkeypatch.setattr(torch.cuda, "get_rng_state_all", lambda: [torch.zeros(16, dtype=torch.uint8)])
    assert isinstance(rng_states().torch_cuda, NoDevice) is not available


def test_pinned_software_is_accepted():
    """Versions as installed give no deviation."""
    software = Software(policy="exact", packages=package_versions())
    assert software_deviations(software, port=False) == ()


@pytest.mark.parametrize(("name", "found"), [("transformers", r"\d+\.\d+"), ("no-such-package", "not installed")])
def test_a_pin_that_does_not_match_is_refused(name, found):
    """Package, pinned version, installed version."""
    with pytest.raises(ModelError, match=rf"software {name}: expected 0\.0\.1, found {found}"):
        software_deviations(Software(policy="exact", packages={name: "0.0.1"}), port=False)


def test_a_port_lists_other_software():
    """Every pin that doesn't match, and none that does."""
    packages = package_versions() | {"torch": "0.0.1", "transformers": "0.0.2"}
    deviations = software_deviations(Software(policy="exact", packages=packages), port=True)
    registered = {one.field: one.registered for one in deviations}
    assert registered == {"software.torch": "0.0.1", "software.transformers": "0.0.2"}
    assert {one.actual for one in deviations} == {package_versions()["torch"], package_versions()["transformers"]}


def test_the_environment_is_what_was_read_back(loaded, resident, effective):
    """dtype, kernels, threads and config come from the model and the libraries."""
    apply_settings(loaded.protocol.execution)
    found = read_environment(resident, effective, {"model.safetensors": "0" * 64})
    execution = loaded.protocol.execution
    assert (found.dtype, found.attention, found.experts) == (execution.dtype, execution.attention, execution.experts)
    assert (found.threads, found.deterministic_algorithms) == (execution.threads, execution.deterministic_algorithms)
    assert found.generation_config == {"do_sample": "false", "suppress_tokens": "null", "top_p": "1.0"}
    assert set(found.packages) == set(PACKAGES)


def test_the_environment_says_what_is_and_not_what_was_asked(loaded, resident, effective, monkeypatch):
    """Another number of threads and another attention kernel, set behind the harness's back, are in the record."""
    before = read_environment(resident, effective, {})
    torch.set_num_threads(2 if before.threads == 1 else 1)
    monkeypatch.setattr(resident.model.config, "_attn_implementation", "sdpa")
    after = read_environment(resident, effective, {})
    assert after.threads != before.threads
    assert after.attention == "sdpa"
    assert digest(after) != digest(before)


def test_the_environment_holds_no_time_path_or_host(resident, effective):
    """Two readings are one record."""
    assert digest(read_environment(resident, effective, {})) == digest(read_environment(resident, effective, {}))


def test_a_smoke_record_of_this_machine_agrees(loaded, checkpoint, resident, effective):
    """What can be known without loading a model agrees with what the model's environment says."""
    here = environment_here(loaded, checkpoint)
    assert here.agrees(read_environment(resident, effective, checkpoint_digests(loaded.profile, checkpoint)))


@pytest.mark.parametrize(
    "change",
    [{"python": "2.7"}, {"cpu": "another"}, {"checkpoint": {}}, {"packages": {}}],
    ids=["python", "cpu", "checkpoint", "packages"],
)
def test_a_smoke_record_of_another_machine_does_not_agree(loaded, checkpoint, resident, effective, change):
    """Each part alone is enough."""
    recorded = read_environment(resident, effective, checkpoint_digests(loaded.profile, checkpoint))
    assert not environment_here(loaded, checkpoint).agrees(msgspec.structs.replace(recorded, **change))


def test_a_process_is_its_pid_and_start():
    """Two identities of one process share both, and no load."""
    one, other = process_identity(1), process_identity(1)
    assert (one.pid, one.started_us) == (os.getpid(), other.started_us)
    assert one.model_load_id != other.model_load_id
    assert process_module.now_us() > one.started_us


def test_versions_have_their_build_label():
    """Torch's own version string, not the package's: +cpu and +cu128 are two builds."""
    assert environment_module.package_versions()["torch"] == str(torch.__version__)


def test_this_machine_has_no_difference_to_its_own_environment(resident, effective):
    """Torch's build label aside, which only a loaded torch knows."""
    assert here().differences(read_environment(resident, effective, {})) == []
    assert set(here().packages) == set(PACKAGES)


FULL = "avx2 avx512bw avx512dq avx512f avx512vl fma"
MACHINE = Machine({"torch": "2.13.0", "numpy": "2.4.6"}, "3.11.7", "one", FULL, "AVX512")
PACKAGED = {"torch": "2.13.0+cpu", "numpy": "2.4.6"}
DIFFERENCES = {
    "none": ({}, []),
    "another build of torch": ({"packages": PACKAGED | {"torch": "2.13.0+cu128"}}, []),
    "no build label": ({"packages": PACKAGED | {"torch": "2.13.0"}}, []),
    "torch": ({"packages": PACKAGED | {"torch": "2.12.0+cpu"}}, [("torch", "2.12.0", "2.13.0")]),
    "a package that isn't recorded": ({"packages": {"torch": "2.13.0"}}, [("numpy", "none", "2.4.6")]),
    "a package that isn't here": ({"packages": PACKAGED | {"more": "1"}}, [("more", "1", "none")]),
    "no packages": ({"packages": {}}, [("numpy", "none", "2.4.6"), ("torch", "none", "2.13.0")]),
    "python": ({"python": "3.11.8"}, [("python", "3.11.8", "3.11.7")]),
    "cpu": ({"cpu": "another"}, [("cpu", "another", "one")]),
    "instructions": (
        {"kernels": {"cpu_instructions": "avx2 fma"}},
        [("cpu_instructions", "avx2 fma", FULL)],
    ),
    "kernels of a record without instructions": (
        {"kernels": {}, "cpu_capability": "AVX2"},
        [("cpu_capability", "AVX2", "AVX512")],
    ),
    "kernels that a variable chose": (
        {"kernels": {"env:ATEN_CPU_CAPABILITY": "avx2"}, "cpu_capability": "AVX2"},
        [],
    ),
    "kernels chosen lower on the same processor": (
        {"kernels": {"cpu_instructions": FULL}, "cpu_capability": "AVX2"},
        [],
    ),
    "all": (
        {"packages": PACKAGED | {"numpy": "2.4.7"}, "python": "3.12.0", "cpu": "another"},
        [("numpy", "2.4.7", "2.4.6"), ("python", "3.12.0", "3.11.7"), ("cpu", "another", "one")],
    ),
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_machine_names_everything_that_differs(resident, effective, name):
    """(name, recorded, here) in one order: packages by name, interpreter, processor."""
    changes, expected = DIFFERENCES[name]
    recorded = msgspec.structs.replace(
        read_environment(resident, effective, {}),
        **({"packages": PACKAGED, "python": "3.11.7", "cpu": "one", "kernels": {"cpu_instructions": FULL}} | changes),
    )
    assert MACHINE.differences(recorded) == expected


LEVELS = {
    "": "",
    "avx fma": "",
    "avx avx2 fma": "AVX2",
    "avx2": "",
    "avx2 avx512f avx512bw fma": "AVX2",
    FULL: "AVX512",
    f"amx_bf16 {FULL} avx512_vnni": "AVX512",
    "asimd bf16 sve": "",
}


@pytest.mark.parametrize("offered", LEVELS)
def test_kernels_follow_from_instructions(offered):
    """As torch asks for them; nothing is said of a processor of another kind."""
    assert best_kernels(offered) == LEVELS[offered]


def test_instructions_are_those_that_torch_chose_by():
    """On this machine, where no variable steers: what the system names and what a loaded torch says agree."""
    if CAPABILITY not in os.environ and best_kernels(cpu_instructions()):
        assert best_kernels(cpu_instructions()) == torch.backends.cpu.get_cpu_capability()


CPUINFO = """processor\t: 0
model name\t: A Processor
flags\t\t: fpu sse4_2 fma avx aes avx2 avx512f f16c amx_tile avx

processor\t: 1
model name\t: Another
flags\t\t: fpu
"""


@pytest.mark.parametrize(
    ("text", "name", "instructions"),
    [
        (CPUINFO, "A Processor", "amx_tile avx avx2 avx512f f16c fma"),
        ("processor: 0\nFeatures\t: fp asimd sve bf16 i8mm\n", None, "asimd bf16 i8mm sve"),
        ("", None, ""),
        (None, None, ""),
    ],
)
def test_a_processor_is_read_from_its_system(tmp_path, monkeypatch, text, name, instructions):
    """Its first processor: name, and vector instructions sorted, each once; without such a file neither is made up."""
    if text is not None:
        (tmp_path / "cpuinfo").write_text(text)
    monkeypatch.setattr(cpu_module, "CPUINFO", tmp_path / "cpuinfo")
    assert cpu_instructions() == instructions
    assert cpu_name() == (name or platform.processor() or "unknown")


def test_a_package_that_is_not_installed_is_said(monkeypatch):
    """An environment without it differs in it; nothing fails."""
    monkeypatch.setattr("harness.model.here.PACKAGES", ("numpy", "no-such-package"))
    assert here().packages["no-such-package"] == "not installed"
    assert here().packages["numpy"] == np.__version__


def test_a_process_knows_its_hash_seed_by_its_hash():
    """One fixed text: the same in one process whenever it's asked, 64 bits as hex."""
    one, other = process_identity(1), process_identity(2)
    assert one.str_hash == other.str_hash
    assert len(one.str_hash) == 16
    assert int(one.str_hash, 16) == hash(process_module.HASHED) % 2**64
