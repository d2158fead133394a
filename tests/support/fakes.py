"""Test files with planted faults, chosen by the environment variable FAKE, for a session over passing gates."""

LONE = "\\ud800"
FAKES = f'''
"""Planted faults, chosen by FAKE."""
import os, sys, warnings
import pytest

FAKE = os.environ.get("FAKE", "")
TIER = getattr(pytest.mark, os.environ.get("TIER", "smoke"))

if FAKE == "surrogates":
    @TIER
    def test_prints():
        print("{LONE}")
        assert 0

    @TIER
    def test_asserts():
        assert "{LONE}" == "a"

    @TIER
    def test_raises():
        raise ValueError("{LONE}")

    @TIER
    def test_records(record_property):
        record_property("text", "{LONE}")
        record_property("{LONE}", 1)

    @TIER
    def test_keeps_an_attribute():
        assert 0
    setattr(test_keeps_an_attribute, "{LONE}", 1)

    @TIER
    @pytest.mark.filterwarnings("default")
    def test_warns():
        warnings.warn("{LONE}")
        assert 0

if FAKE == "bad name":
    def found():
        pass
    globals()["test_{LONE}"] = TIER(found)

if FAKE == "bad module":
    raise ValueError("{LONE}")

if FAKE == "passes":
    @TIER
    @pytest.mark.parametrize("name", ["{LONE}", "\\x1b", "\\u00e9"])
    def test_named(name):
        pass

if FAKE == "dies":
    @TIER
    @pytest.mark.parametrize("number", range(6))
    def test_dies(number):
        if number == 3:
            os._exit(0)

if FAKE == "differs":
    @TIER
    @pytest.mark.parametrize("number", [os.getpid()])
    def test_differs(number):
        pass

if FAKE == "unmarked":
    def test_unmarked():
        pass

if FAKE == "two tiers":
    @pytest.mark.smoke
    @pytest.mark.formal
    def test_twice():
        pass

if FAKE == "judges nothing":
    @pytest.mark.gate("registration", None)
    def test_judges_nothing():
        pass

if FAKE == "fails":
    @TIER
    def test_fails():
        assert 0

if FAKE == "one skip":
    @TIER
    def test_skips():
        pytest.skip("no")

if FAKE == "skips":
    @TIER
    def test_skips():
        pytest.skip("no")

    @TIER
    @pytest.mark.skip(reason="no")
    def test_is_marked():
        pass

    @TIER
    def test_imports():
        pytest.importorskip("no_such_module")

    @TIER
    @pytest.mark.xfail(reason="known", strict=False)
    def test_fails_as_expected():
        assert 0

    @TIER
    @pytest.mark.xfail(reason="known", strict=False)
    def test_passes_unexpectedly():
        pass

if FAKE == "skips its file":
    pytest.importorskip("no_such_module")
'''
REMOVER = '''
"""A conftest that takes an item away after it was collected, or that breaks pytest itself."""
import os
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    if os.environ.get("FAKE") == "removed":
        session.items.pop()


def pytest_runtest_logfinish():
    if os.environ.get("FAKE") == "breaks" and "PYTEST_XDIST_WORKER" not in os.environ:
        raise BrokenPipeError("as xdist does where a worker goes while work is sent to it")
'''
