"""Whether frozen tensor digests can be this machine's: by packages, interpreter and processor of their environment."""

import sys

import pytest
from pregate_support.traces import environment_of

from harness.errors import SnapshotError
from harness.journal.folder import write_record
from harness.model.here import Machine, here
from harness.places import Places
from harness.protocols.load import load_protocol
from harness.run import comparable as module
from harness.run.comparable import not_comparable
from harness.snapshots.environments import in_terms_of
from harness.snapshots.store import frozen_folder

MACHINE = Machine({"torch": "2.13.0", "numpy": "2.4.6"}, "3.11.7", "a processor", "avx2 avx512f fma", "AVX512")
OFFERED = {"kernels": {"mkl": "True", "cpu_instructions": "avx2 avx512f fma"}}
STEERED = {"kernels": {"mkl": "True", "env:ATEN_CPU_CAPABILITY": "avx2"}}
START = "tensor digests belong to another environment ("


@pytest.fixture(scope="module")
def depth():
    """The nano depth protocol."""
    return load_protocol("nano-depth")


@pytest.fixture
def freeze(depth, tmp_path):
    """`freeze(**changes)`: a tree in which tensor digests of such an environment are frozen."""

    def make(**changes) -> Places:
        tree = Places(tmp_path)
        write_record(frozen_folder("nano-depth", tree) / "environment.json", environment_of(depth, **changes))
        return tree

    return make


def test_nothing_frozen_is_nothing_to_compare(depth, tmp_path):
    """No reason, because no gate would compare anything."""
    assert not_comparable(depth, Places(tmp_path)) is None


def test_a_protocol_without_tensors_is_always_comparable():
    """nano-behavior's frozen tokens are compared everywhere."""
    assert not_comparable(load_protocol("nano-behavior")) is None


def test_this_machines_own_digests_are_comparable(depth, freeze):
    """What was frozen here, with torch's build label or without it."""
    own = here()
    for torch in (own.packages["torch"], f"{own.packages['torch']}+cpu"):
        held = {"packages": own.packages | {"torch": torch}, "python": own.python, "cpu": own.cpu}
        for kernels in ({"cpu_instructions": own.instructions}, {}):
            assert not_comparable(depth, freeze(**held, kernels=kernels, cpu_capability=own.kernels)) is None


REASONS = {
    "cpu": ({"cpu": "another"}, "cpu: expected another, found a processor"),
    "python": ({"python": "3.12.1"}, "python: expected 3.12.1, found 3.11.7"),
    "torch": (
        {"packages": {"torch": "2.12.0+cpu", "numpy": "2.4.6"}},
        "torch: expected 2.12.0, found 2.13.0",
    ),
    "a package less": ({"packages": {"torch": "2.13.0"}}, "numpy: expected none, found 2.4.6"),
    "a package more": (
        {"packages": {"torch": "2.13.0", "numpy": "2.4.6", "kernels": "1"}},
        "kernels: expected 1, found none",
    ),
    "instructions": (
        {"kernels": {"cpu_instructions": "avx2 fma"}},
        "cpu_instructions: expected avx2 fma, found avx2 avx512f fma",
    ),
    "one name, other kernels, no instructions recorded": (
        {"cpu_capability": "AVX2"},
        "cpu_capability: expected AVX2, found AVX512",
    ),
    "two": (
        {"cpu": "another", "python": "3.12.1"},
        "python: expected 3.12.1, found 3.11.7; cpu: expected another, found a processor",
    ),
}


@pytest.mark.parametrize("reason", REASONS)
def test_another_machine_is_said(depth, freeze, monkeypatch, reason):
    """Everything that differs, with expected and found: the words of the session's header and its audit record."""
    monkeypatch.setattr(module, "here", lambda: MACHINE)
    changes, words = REASONS[reason]
    assert not_comparable(depth, freeze()) is None
    assert not_comparable(depth, freeze(**changes)) == f"{START}{words})"


OWN = [
    {"threads": 7},
    {"kernels": {}},
    {"generation_config": {}},
    {"checkpoint": {}},
    OFFERED,
    OFFERED | {"cpu_capability": "AVX2"},  # the processor offers more: who chose less is to be told
    STEERED | {"cpu_capability": "AVX2"},
]


@pytest.mark.parametrize("changes", OWN)
def test_what_the_session_itself_sets_is_no_reason(depth, freeze, monkeypatch, changes):
    """Threads, kernels and checkpoint are the protocol's: where they differ, the comparison itself must fail."""
    monkeypatch.setattr(module, "here", lambda: MACHINE)
    assert not_comparable(depth, freeze(**changes)) is None


def test_a_record_made_before_instructions_were_is_compared_in_its_own_terms(depth):
    """What it couldn't hold isn't named as what differs; what both hold is."""
    older, newer = environment_of(depth), environment_of(depth, kernels={"mkl": "True", "cpu_instructions": "avx2"})
    assert in_terms_of(older, newer) == older
    assert in_terms_of(newer, older) == older
    other = environment_of(depth, kernels={"mkl": "True", "cpu_instructions": "avx512f"})
    assert in_terms_of(newer, other) == other


def test_a_damaged_environment_is_refused(depth, freeze):
    """It's no reason to leave the comparison out."""
    tree = freeze()
    (frozen_folder("nano-depth", tree) / "environment.json").write_bytes(b"{}")
    with pytest.raises(SnapshotError, match=r"environment\.json"):
        not_comparable(depth, tree)


def test_asking_loads_no_torch():
    """Collection asks it: in a process of its own, torch stays unloaded."""
    import subprocess

    code = (
        "import sys; from harness.protocols.load import load_protocol; "
        "from harness.run.comparable import not_comparable; not_comparable(load_protocol('nano-depth')); "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
