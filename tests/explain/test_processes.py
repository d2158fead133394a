"""A trial in a process of its own: its settings are the load's, and how a process can fail to give one."""

import stat
import sys

import msgspec
import pytest

from harness.errors import ComparisonError
from harness.places import places
from harness.records.explanation import NoTrace, Untried
from harness.rerun import processes
from harness.rerun.processes import environment, in_a_process
from harness.rerun.trial import Trial

# Threads that wait without spinning: on a busy machine two of them would take a minute.
VARIABLES = {"ATEN_CPU_CAPABILITY": "default", "OMP_WAIT_POLICY": "PASSIVE"}


@pytest.fixture
def conditions(run, copied, forward_of):
    """A step of the run under its own conditions."""
    return forward_of(run, copied(run), "a", 2, (1, 2))


def test_variables_that_steer_kernels_are_the_loads_alone(monkeypatch):
    """Those of this process go, others stay; the tree in use is named."""
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.setenv("MKL_CBWR", "AVX2")
    monkeypatch.setenv("PATH_LIKE", "kept")
    made = environment({"ATEN_CPU_CAPABILITY": "default"})
    assert not {"OMP_NUM_THREADS", "MKL_CBWR"} & {*made}
    assert (made["ATEN_CPU_CAPABILITY"], made["PATH_LIKE"]) == ("default", "kept")
    assert made["HARNESS_ROOT"] == str(places().root)


def test_a_process_has_the_loads_settings(conditions, in_this_process):
    """Threads and kernels are read back there; the token is the one that is made here."""
    load = msgspec.structs.replace(conditions.load, threads=2, variables=VARIABLES)
    report = in_a_process(Trial(load=load, forwards=(conditions.forward,), trace=True))
    assert (report.environment.threads, report.environment.cpu_capability) == (2, "DEFAULT")
    assert report.environment.kernels["env:ATEN_CPU_CAPABILITY"] == "default"
    here = in_this_process(Trial(load=conditions.load, forwards=(conditions.forward,), trace=False))
    assert report.forwards[0].token == here.forwards[0].token
    assert (len(report.traces), isinstance(report.traces[0], NoTrace), here.traces) == (1, False, ())


def test_a_model_that_cannot_be_loaded_so_is_said(conditions, tmp_path):
    """In the process's own last line."""
    load = msgspec.structs.replace(conditions.load, checkpoint=str(tmp_path))
    with pytest.raises(ComparisonError, match=r"expected a process that makes its forwards, found .*config\.json"):
        in_a_process(Trial(load=load, forwards=(conditions.forward,), trace=False))


def test_a_process_that_is_killed_is_named_by_its_signal(conditions, tmp_path, monkeypatch):
    """As kernels for another processor end it."""
    killed = tmp_path / "python"
    killed.write_text("#!/bin/sh\nkill -ILL $$\n")
    killed.chmod(killed.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(processes.sys, "executable", str(killed))
    with pytest.raises(ComparisonError, match="ended by SIGILL"):
        in_a_process(Trial(load=conditions.load, forwards=(conditions.forward,), trace=False))
    assert sys.executable == str(killed)


def test_a_forward_that_cannot_be_made_leaves_the_others(conditions, in_this_process):
    """One whose rows all end before the step, beside one that doesn't."""
    ended = msgspec.structs.replace(conditions.forward.rows[0], forced=(1,))
    wrong = msgspec.structs.replace(conditions.forward, rows=(ended,), row=0)
    report = in_this_process(Trial(load=conditions.load, forwards=(wrong, conditions.forward), trace=False))
    assert isinstance(report.forwards[0], Untried)
    assert "all rows ended before" in report.forwards[0].reason
    assert not isinstance(report.forwards[1], Untried)
