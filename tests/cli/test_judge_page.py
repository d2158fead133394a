"""The examples of docs/judge.md, run."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "judge.md").read_text(encoding="utf-8")
SESSIONS = re.findall(r"```console\n(.*?)\n```", PAGE, re.DOTALL)


def session(text):
    """A file's name and lines, a verb and what it prints."""
    shown, run = re.fullmatch(r"\$ cat (.*?)\n\$ python -m harness judge (.*)", text, re.DOTALL).groups()
    name, data = shown.split("\n", 1)
    arguments, printed = run.split("\n", 1)
    return name, data, arguments.split(), printed


def replayed(text, invoke, tmp_path, monkeypatch):
    """What the verb prints now, what the page says, and the whole result."""
    name, data, arguments, printed = session(text)
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(data + "\n", encoding="utf-8")
    result = invoke(*arguments)
    return result.out, printed + "\n", result


def test_numbers(invoke, tmp_path, monkeypatch):
    """The example of numbers prints what the page says, byte for byte, and so do the counts."""
    found, said, result = replayed(SESSIONS[0], invoke, tmp_path, monkeypatch)
    assert found == said
    assert f"On stderr: `{result.err.strip()}`" in PAGE


@pytest.mark.docker
def test_programs(invoke, tmp_path, monkeypatch):
    """The example of programs prints what the page says, seconds aside."""
    found, said, _ = replayed(SESSIONS[1], invoke, tmp_path, monkeypatch)
    seconds = re.compile(r'"seconds":[0-9.e-]+')
    assert seconds.sub("", found) == seconds.sub("", said)


def test_all_examples_are_run():
    """The page has the two examples that the tests above run."""
    assert [session(one)[2][0] for one in SESSIONS] == ["numeric", "code"]
