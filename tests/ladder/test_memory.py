"""What an out-of-memory is known by, what is noted of it, and who may still write after it."""

import errno
import json
import logging

import msgspec
import pytest
import torch
from pregate_support.memory import MESSAGE
from transformers import core_model_loading

from harness.errors import DecodeError, ModelError
from harness.journal.attempts import AttemptOverError
from harness.journal.folder import failures, journals
from harness.journal.requested import first_line, requested_of
from harness.model.load import LoadOutOfMemoryError, load_model
from harness.model.memory import forget_peaks, is_out_of_memory, load_report, memory_at_failure, refusal
from harness.protocols.load import load_protocol
from harness.records.attempts import ExactRequest, RoundedRequest, UnsaidRequest
from harness.run import engine as engine_module
from harness.run.start import generate_run

CPU_ALLOCATOR = (
    "[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate "
    "4398046511104 bytes. Error code 12 (Cannot allocate memory)"
)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        pytest.param(MESSAGE, RoundedRequest(words="400.00 MiB"), id="cuda"),
        pytest.param("Tried to allocate 512 bytes. GPU", ExactRequest(bytes=512, words="512 bytes"), id="few"),
        pytest.param(CPU_ALLOCATOR, ExactRequest(bytes=2**42, words=f"{2**42} bytes"), id="cpu"),
        pytest.param("Unable to allocate 7.28 TiB for an array", RoundedRequest(words="7.28 TiB"), id="numpy"),
        pytest.param("CUDA error: out of memory", UnsaidRequest(), id="driver"),
        pytest.param("Tried to allocate 4 apples", UnsaidRequest(), id="unit"),
        pytest.param("", UnsaidRequest(), id="nothing"),
    ],
)
def test_the_size_is_the_allocators_own_word(message, said):
    """An exact number of bytes only where the message has one; a rounded size is kept as words."""
    assert requested_of(message) == said


def test_torchs_own_message_is_read():
    """The CPU allocator of this version refuses 2**60 bytes, in the words that are looked for."""
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60, dtype=torch.uint8)
    assert is_out_of_memory(caught.value)
    assert requested_of(first_line(str(caught.value))) == ExactRequest(bytes=2**60, words=f"{2**60} bytes")


@pytest.mark.parametrize(
    ("error", "is_it"),
    [
        (OSError(errno.ENOMEM, "Cannot allocate memory"), True),
        (OSError(errno.ENOENT, "out of memory"), False),
        (RuntimeError("CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (ValueError("size mismatch"), False),
    ],
)
def test_an_error_is_told_by_number_or_wording(error, is_it):
    """The system's number where it has one; a file's name doesn't make an out-of-memory."""
    assert is_out_of_memory(error) is is_it


def test_a_refusal_is_found_behind_another_error():
    """Raised from it, raised while it was handled, or only in a library's report; else nothing was refused."""
    hidden = RuntimeError("We encountered some issues")
    hidden.__context__ = MemoryError()
    assert refusal(hidden, "") == "MemoryError"
    report = (
        "layers.3 | CONVERSION |\n  torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\nError:"
    )
    assert refusal(RuntimeError("issues"), report) == "CUDA out of memory. Tried to allocate 2.00 GiB."
    assert refusal(RuntimeError("issues"), "layers.3 | MISSING |") is None


def test_memory_that_runs_out_while_experts_are_merged_is_the_placements(monkeypatch):
    """The library catches it, reports it and raises another error: it's an out-of-memory all the same."""

    def refuse(*_, **__):
        raise torch.OutOfMemoryError(MESSAGE)

    monkeypatch.setattr(core_model_loading.MergeModulelist, "convert", refuse)
    with pytest.raises(LoadOutOfMemoryError, match="placement nano-resident: expected memory for nano") as caught:
        _load(load_protocol("nano-behavior"))
    assert caught.value.found == MESSAGE


def test_another_fault_while_experts_are_merged_is_the_checkpoints(monkeypatch):
    """The control of the test above."""

    def refuse(*_, **__):
        raise ValueError("no")

    monkeypatch.setattr(core_model_loading.MergeModulelist, "convert", refuse)
    with pytest.raises(ModelError, match="expected a loadable nano"):
        _load(load_protocol("nano-behavior"))


def _load(loaded):
    placement = next(one for one in loaded.protocol.placements if one.id == "nano-resident")
    checkpoint = loaded.folder.parents[1] / "models" / "nano" / "checkpoint"
    return load_model(loaded.profile, loaded.protocol.execution, placement, checkpoint)


def test_the_load_report_is_kept_and_not_shown(caplog):
    """Level and propagation of the library's logger are as before afterwards."""
    logger = logging.getLogger("transformers.modeling_utils")
    before = (logger.level, logger.propagate, list(logger.handlers))
    with load_report() as said:
        logger.warning("a report")
    assert said.text == "a report\n"
    assert caplog.records == []
    assert (logger.level, logger.propagate, list(logger.handlers)) == before


def test_peaks_are_of_this_process():
    """Resident bytes at their peak are at least those of now, in bytes and not in KiB."""
    memory = memory_at_failure()
    assert memory["peak_rss"] > 2**20
    assert memory["peak_rss"] * 1.05 > memory["rss"]


def test_memory_that_runs_out_around_the_call_is_the_same(fresh, monkeypatch):
    """A plain MemoryError while the rows are decoded to text: kind out_of_memory, with its note."""

    def refuse(*_):
        raise MemoryError

    monkeypatch.setattr(engine_module.Engine, "_cells", refuse)
    with pytest.raises(DecodeError, match="found MemoryError"):
        generate_run(fresh.loaded, fresh.request(), fresh.folder)
    (failure,) = failures(fresh.folder)
    note = json.loads(fresh.folder.file("oom.json").read_bytes())
    assert failure.kind == "out_of_memory"
    assert (note["requested"], note["stage"]["source_id"]) == ({"state": "not_said"}, failure.source_id)


def test_a_run_that_resumes_notes_no_end(fresh, out_of_memory_at):
    """Its unit is made again; the failure record stays."""
    out_of_memory_at("nano-resident:2")
    protocol = msgspec.structs.replace(fresh.loaded.protocol, resume=True)
    old = fresh.loaded
    loaded = type(old)(protocol, old.manifest, old.profile, old.digest, old.folder)
    with pytest.raises(DecodeError, match="out of memory"):
        generate_run(loaded, fresh.request(), fresh.folder)
    assert not fresh.folder.file("oom.json").exists()
    out_of_memory_at("")
    generate_run(loaded, fresh.request(), fresh.folder)
    assert len(list(journals(fresh.folder))) == 4


@pytest.mark.parametrize("left", ["oom.json", "attempts/01-nano-resident"])
def test_nothing_lands_once_the_attempt_is_over(fresh, left, monkeypatch):
    """Another process ran out of memory, or stepped down, after this one had begun: no unit is generated."""
    monkeypatch.setattr(engine_module, "decode_greedy", None)

    def end(load_id):
        path = fresh.folder.file(left)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"{}") if path.suffix else path.mkdir()

    with pytest.raises(AttemptOverError, match="expected a run under placement nano-resident that goes on"):
        generate_run(fresh.loaded, fresh.request(), fresh.folder, ready=end)
    assert list(journals(fresh.folder)) == []


def test_a_process_that_loaded_too_long_writes_nothing(fresh, monkeypatch):
    """The attempt ended while its model was being loaded: not even spec.json is written into the next one."""
    load = engine_module.load_model

    def slow(*arguments):
        (fresh.folder.path / "attempts" / "01-nano-resident").mkdir(parents=True)
        return load(*arguments)

    monkeypatch.setattr(engine_module, "load_model", slow)
    with pytest.raises(AttemptOverError):
        generate_run(fresh.loaded, fresh.request(), fresh.folder)
    assert not fresh.folder.file("spec.json").exists()


def test_a_load_that_is_refused_after_the_end_notes_nothing(fresh, monkeypatch):
    """Its failure belongs to the attempt that is over."""

    def refuse(*_):
        (fresh.folder.path / "attempts" / "01-nano-resident").mkdir(parents=True)
        raise LoadOutOfMemoryError("placement nano-resident", expected="a", found=MESSAGE, todo="c")

    monkeypatch.setattr(engine_module, "load_model", refuse)
    with pytest.raises(AttemptOverError):
        generate_run(fresh.loaded, fresh.request(), fresh.folder)
    assert not fresh.folder.file("oom.json").exists()


def test_a_fresh_process_has_no_peak_to_forget(monkeypatch):
    """Torch refuses to reset a device's peak before CUDA was initialised, and a run's first model is loaded then."""
    calls = []
    monkeypatch.setattr(torch.cuda, "init", lambda: calls.append("init"))
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda device: calls.append(str(device)))
    forget_peaks(torch.device("cpu"))
    forget_peaks(torch.device("cuda", 0))
    assert calls == ["init", "cuda:0"]
