"""Work beside the forward: order, bounds and errors."""

import threading

import pytest

from harness.trace import work as module
from harness.trace.work import Work


def test_results_keep_the_order_of_submission(monkeypatch):
    """Of stages and of tasks, though the first task ends last."""
    ended = threading.Event()

    def last():
        ended.wait(5)
        return 0

    def first():
        ended.set()
        return 1

    monkeypatch.setattr(module, "thread_count", lambda: 2)
    with Work() as work:
        work.submit("a", [last, first])
        work.submit("b", [lambda: 2])
        assert work.finish() == [("a", [0, 1]), ("b", [2])]


def test_no_more_stages_are_in_flight_than_allowed():
    """The third submission waits for the first stage: it begins nothing while that one is held."""
    held, second, third = threading.Event(), threading.Event(), threading.Event()

    def forward(work):
        work.submit("a", [lambda: held.wait(5)])
        work.submit("b", [second.set])
        work.submit("c", [third.set])

    with Work(in_flight=2) as work:
        thread = threading.Thread(target=forward, args=(work,))
        thread.start()
        second.wait(5)
        early = third.wait(0.2)
        held.set()
        thread.join(5)
        names = [name for name, _ in work.finish()]
    assert not early
    assert (names, third.is_set()) == (["a", "b", "c"], True)


def test_a_tasks_error_is_raised_where_the_forward_is():
    """As itself, by the next submission that has to wait."""
    error = ValueError("of the task")

    def fail():
        raise error

    with Work(in_flight=1) as work, pytest.raises(ValueError, match="of the task") as caught:  # noqa: PT012
        work.submit("a", [fail])
        work.submit("b", [lambda: None])
    assert caught.value is error


def test_leaving_drops_what_has_not_begun(monkeypatch):
    """An error in the forward doesn't wait for the whole queue."""
    monkeypatch.setattr(module, "thread_count", lambda: 1)
    begun, ran = threading.Event(), []

    def running():
        begun.set()
        ran.append("first")

    with pytest.raises(KeyError), Work() as work:  # noqa: PT012
        held = threading.Event()
        work.submit("a", [lambda: held.wait(5), running, lambda: ran.append("second")])
        threading.Timer(0.05, held.set).start()
        raise KeyError("forward")
    assert ran == []
