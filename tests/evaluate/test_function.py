"""An author's function in a process apart: checked before it runs, watched while it does, plain values alone."""

import hashlib

import pytest

from harness.errors import InputError
from harness.evaluate.function import Call, Given, call_function

LONG_MS = 20_000
SOURCE = """
import os, sys, time

def f(text, gold):
    print("to nowhere")
    print("to nowhere either", file=sys.stderr)
    if text == "raise":
        raise KeyError(gold["secret"])
    if text == "sleep":
        time.sleep(60)
    if text == "end":
        os._exit(3)
    if text == "set":
        return {1, 2}
    if text == "nan":
        return float("nan")
    if text == "big":
        return 2**60
    if text == "seed":
        return os.environ["PYTHONHASHSEED"]
    if text == "environment":
        return "HARNESS_SECRET" in os.environ
    if text == "subclass":
        return type("Own", (str,), {})("x")
    if text == "none":
        return None
    return gold.get("answer") == text

not_callable = 3
"""


@pytest.fixture
def call(tmp_path):
    """`call(*texts, gold=..., timeout_ms=...)`: what the function gives for each."""
    path = tmp_path / "own.py"
    path.write_text(SOURCE, encoding="utf-8")
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()

    def do(*texts, gold=None, timeout_ms=LONG_MS, function="f", sha=sha256):
        calls = [Call(text, gold or {"answer": "yes", "secret": "s"}) for text in texts]
        return call_function(path, sha, function, calls, timeout_ms=timeout_ms)

    return do


def test_values_come_back_in_order(call):
    """Truth, another text, None: canonical JSON each; what is printed goes nowhere."""
    assert [one.value for one in call("yes", "no", "none")] == ["true", "false", "null"]
    assert {one.outcome for one in call("yes", "no")} == {"returned"}


def test_what_raises_is_said_by_class_alone(call):
    """Nothing of its message: it may quote gold."""
    assert call("raise") == (Given("raised", "", "KeyError"),)


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("set", "returned set"),
        ("subclass", "returned Own"),
        ("nan", "returned a value without a canonical form"),
        ("big", "returned a value without a canonical form"),
    ],
)
def test_what_is_no_plain_value_is_no_answer(call, text, detail):
    """Builtin values alone, and such as have a canonical form."""
    assert call(text) == (Given("raised", "", detail),)


def test_one_that_is_late_is_ended_and_the_next_is_asked_of_another(call):
    """The cells after it keep their answers."""
    given = call("sleep", "yes", timeout_ms=3000)
    assert [one.outcome for one in given] == ["timeout", "returned"]


def test_one_that_ends_its_process_is_said(call):
    """And the next is asked of another process."""
    assert [one.outcome for one in call("yes", "end", "yes")] == ["returned", "ended", "returned"]


def test_its_surroundings_are_fixed(call, monkeypatch):
    """The seed of hashes, and nothing of this process's environment but where programs and homes are."""
    monkeypatch.setenv("HARNESS_SECRET", "1")
    assert [one.value for one in call("seed", "environment")] == ['"0"', "false"]


def alone(tmp_path, source):
    """What `f` of a source gives for two texts."""
    path = tmp_path / "own.py"
    path.write_text(source, encoding="utf-8")
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    return call_function(path, sha256, "f", [Call("a", {}), Call("b", {})], timeout_ms=LONG_MS)


@pytest.mark.parametrize("name", ["list.txt", "{beside}"])
def test_what_lies_beside_the_module_is_not_read(tmp_path, name):
    """It has no digest: a list that is edited later would judge the same cells otherwise."""
    (tmp_path / "list.txt").write_text("a", encoding="utf-8")
    where = '__import__("pathlib").Path(__file__).with_name("list.txt")' if name == "{beside}" else f'"{name}"'
    given = alone(tmp_path, f"def f(text, gold):\n    return text in open({where}).read()\n")
    assert given == (Given("raised", "", "FileNotFoundError"),) * 2


def test_one_that_writes_where_the_programs_speak_has_no_answer(tmp_path):
    """Whatever it writes, one call is ended and no call gets another's answer."""
    loop = "import os\n\n\ndef f(text, gold):\n    for at in range(3, 20):\n        try:\n"
    given = alone(
        tmp_path, loop + "            os.write(at, b'no JSON\\n')\n        except OSError:\n            pass\n"
    )
    assert [one.outcome for one in given] == ["ended", "ended"]


def test_another_source_is_never_run(call):
    """The digest is held against the bytes before they are compiled."""
    with pytest.raises(InputError, match=r"found source SHA-256 [0-9a-f]{64}"):
        call("yes", sha="0" * 64)


@pytest.mark.parametrize("name", ["nothing", "not_callable"])
def test_a_name_that_is_no_function_is_refused(call, name):
    """Before any cell is judged."""
    with pytest.raises(InputError, match=f"no function {name}"):
        call("yes", function=name)


def test_a_module_that_does_not_run_is_refused(tmp_path):
    """With the reason."""
    path = tmp_path / "own.py"
    path.write_text("import nothing_of_that_name\n", encoding="utf-8")
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(InputError, match="nothing_of_that_name"):
        call_function(path, sha256, "f", [Call("a", {})], timeout_ms=LONG_MS)


def test_nothing_is_started_for_no_cell(tmp_path):
    """A file that isn't there isn't missed."""
    assert call_function(tmp_path / "nowhere.py", "0" * 64, "f", [], timeout_ms=1) == ()
