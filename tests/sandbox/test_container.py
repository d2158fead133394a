"""A container that takes long to end, without one: the candidate's doing, never the engine's."""

from types import SimpleNamespace

import pytest
from docker.errors import APIError, NotFound
from requests.exceptions import ConnectionError as Gone
from requests.exceptions import ReadTimeout

from harness.errors import SandboxError
from harness.sandbox.client import LostError
from harness.sandbox.container import REMOVALS, Container, remove
from harness.sandbox.execute import Engine
from harness.sandbox.opening import Opened


class Api:
    """An engine that answers each call as it is told; an exception is raised."""

    def __init__(self, **answers):
        self.answers, self.called = answers, []

    def __getattr__(self, name):
        def call(*_, **__):
            self.called.append(name)
            answer = self.answers[name]
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call


def container(**answers):
    """A container of such an engine, after its last line."""
    api = Api(**answers)
    return Container(SimpleNamespace(api=api), "id", None), api


def state(*, running, code=0, oom=False):
    """What the engine says of it."""
    return {"State": {"Running": running, "ExitCode": code, "OOMKilled": oom}}


def test_one_that_does_not_end_is_killed():
    """The engine answers, so it is the container that is slow: overdue, without an exit code."""
    made, api = container(wait=ReadTimeout(), inspect_container=state(running=True), kill=None)
    ending = made._ending()
    assert (ending.exit_code, ending.overdue, ending.lost) == (None, True, "")
    assert "kill" in api.called


def test_one_that_ended_meanwhile_has_its_code():
    """An answer that came too late isn't lost."""
    made, _ = container(wait=ReadTimeout(), inspect_container=state(running=False, code=1))
    assert made._ending().exit_code == 1


@pytest.mark.parametrize(
    ("answers", "word"),
    [
        pytest.param({"wait": Gone(), "inspect_container": Gone()}, "engine_lost", id="no engine"),
        pytest.param({"wait": NotFound("gone")}, "container_lost", id="no container"),
    ],
)
def test_what_is_gone_is_lost(answers, word):
    """The engine, or the container."""
    made, _ = container(**answers)
    with pytest.raises(LostError, match=word):
        made._ending()


@pytest.mark.parametrize("error", [APIError("no exit event"), ReadTimeout()])
def test_a_kill_that_takes_long_is_no_loss(error):
    """Whether the engine is there is asked of the engine, not of the kill."""
    made, _ = container(kill=error)
    made.kill()


@pytest.mark.parametrize(
    ("answer", "look", "gone", "tries"),
    [
        pytest.param(None, NotFound("gone"), True, 1, id="removed"),
        pytest.param(None, state(running=True), False, REMOVALS, id="removed, it says, and still there"),
        pytest.param(NotFound("gone"), None, True, 1, id="was gone"),
        pytest.param(APIError("could not kill"), NotFound("gone"), True, 1, id="refused and gone"),
        pytest.param(APIError("could not kill"), state(running=True), False, REMOVALS, id="refused"),
        pytest.param(None, APIError("busy"), False, REMOVALS, id="no word on it"),
        pytest.param(ReadTimeout(), None, False, 1, id="no answer"),
    ],
)
def test_a_removal_says_whether_it_is_gone(answer, look, gone, tries, monkeypatch):
    """By a look at it, more than once, so that the close tries again and names what stays."""
    monkeypatch.setattr("harness.sandbox.container.AFTERMATH_S", 0)
    api = Api(remove_container=answer, inspect_container=look)
    assert remove(SimpleNamespace(api=api), "id") is gone
    assert api.called.count("remove_container") == tries


@pytest.fixture
def idle(contract, monkeypatch):
    """An engine object whose engine keeps one container for ever."""
    monkeypatch.setattr("harness.sandbox.execute.CLOSE_S", 0)
    api = Api(containers=[{"Id": "0123456789abcdef"}])
    opened = Opened(image_id="sha256:0", registered=True, python="", limits=None, harness_sha256="", program=b"")
    return Engine(SimpleNamespace(api=api, close=lambda: None), contract, opened, 1)


def test_a_container_that_stays_is_named(idle):
    """At the close, by its ID."""
    with pytest.raises(SandboxError, match=r"1 that the engine doesn't end: 0123456789ab\."):
        idle.close()


@pytest.mark.parametrize("flag", ["_closed", "_abandoning"])
def test_what_was_created_too_late_is_not_started(idle, flag, monkeypatch):
    """Between creation and start it looks whether anybody still waits; its container is removed."""
    api = Api(remove_container=None, inspect_container=NotFound("gone"))
    made = Container(SimpleNamespace(api=api), "id", None)
    monkeypatch.setattr("harness.sandbox.execute.Container.create", lambda *_: made)
    idle._client.api.answers |= api.answers
    setattr(idle, flag, True)
    ending, _, container = idle._run(b"")
    assert (ending.lost, container, api.called) == ("abandoned", "id", [])
    idle._removals.shutdown(wait=True)
    assert "remove_container" in idle._client.api.called
