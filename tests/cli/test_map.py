"""The help is a map, every verb says what it does and how it exits, and docs/cli.md is equal to the application."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from harness.__main__ import app
from harness.cli.map import ORDER, STAGES

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
ROOT = typer.main.get_command(app)


def verbs(command, name=""):
    """(name, command) of every verb that can be called and isn't hidden."""
    if hasattr(command, "commands"):
        for word, one in command.commands.items():
            if not one.hidden:
                yield from verbs(one, f"{name} {word}".strip())
    else:
        yield name, command


VERBS = dict(verbs(ROOT))
SECTIONS = dict(re.findall(r"^### ([a-z -]+)\n(.*?)(?=^###? |\Z)", PAGE, re.MULTILINE | re.DOTALL))


CHOICES = {name: {f"`{one.opts[0]}`": one.default for one in command.params} for name, command in VERBS.items()}


def parameters(command):
    """{name on the page: (required, first words of its help)} of a verb."""
    found = {}
    for one in command.params:
        if "--help" not in one.opts:
            names = one.opts if one.param_type_name == "option" else [one.metavar]
            found[", ".join(f"`{name}`" for name in names)] = (one.required, one.help)
    return found


def test_the_map_is_in_the_order_of_the_stages():
    """Every verb under its stage, in order; runs are pytest's; where the documentation lies is said."""
    text = CliRunner().invoke(app, ["--help"]).stdout
    shown = re.findall(r"^  ([\w-]+) +[A-Z]", text, re.MULTILINE)
    assert shown == [name for name in ORDER if name in ROOT.commands]
    titles = [text.index(f"\n{stage.title}:\n") for stage in STAGES]
    assert titles == sorted(titles)
    for words in ("-m smoke", "-m formal", "-m replay", "docs/README.md", "docs/cli.md"):
        assert words in text
    assert "generate " not in text.lower().replace("generate a", "").replace("generate the", "")


def test_every_verb_has_its_place():
    """No verb is left to the end of the map."""
    assert {name for name, one in ROOT.commands.items() if not one.hidden} <= set(ORDER)


def test_without_a_verb_the_map_is_an_error():
    """A script that lost its verb isn't green: the map on stderr, exit 2; so for groups of verbs."""
    for words in ([], ["inputs"], ["snapshots"]):
        done = subprocess.run([sys.executable, "-m", "harness", *words], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("Usage: python -m harness ")


@pytest.mark.parametrize("name", VERBS)
def test_help_is_one_line_and_the_exit_codes(name):
    """A sentence that a narrow map has room for, the codes, and a line for each parameter."""
    first, *rest = re.split(r"\n\s*\n", VERBS[name].help)
    assert len(first) <= 100, first
    assert first.endswith(".")
    assert any(one.strip().startswith("Exit 0: ") for one in rest)
    for parameter, (_, words) in parameters(VERBS[name]).items():
        assert words, parameter
        assert words.endswith("."), parameter


def test_the_page_has_these_verbs_in_this_order():
    """Every verb and none more."""
    ordered = sorted(VERBS, key=lambda name: ORDER.index(name.split()[0]))
    assert list(SECTIONS) == ordered


@pytest.mark.parametrize("name", VERBS)
def test_the_page_is_the_verb(name):
    """Words, exit codes, parameters with their help, and an example of that verb."""
    section = SECTIONS[name]
    for paragraph in re.split(r"\n\s*\n", VERBS[name].help):
        assert " ".join(paragraph.split()) in section
    rows = re.findall(r"^\| (`[^|]+`) \| ([^|]*) \| (.*) \|$", section, re.MULTILINE)
    found = {parameter: default.strip() == "required" for parameter, default, _ in rows}
    expected = parameters(VERBS[name])
    assert found == {parameter: required for parameter, (required, _) in expected.items()}
    for parameter, default, words in rows:
        assert words.startswith(expected[parameter][1])
        chosen = getattr(CHOICES[name].get(parameter), "value", None)
        assert chosen is None or default.strip() == chosen
    example = re.search(r"```sh\n(.*)\n```", section)[1]
    assert shlex.split(example)[3 : 3 + len(name.split())] == name.split()


@pytest.mark.parametrize("name", ["nothing", "judge nothing"])
def test_an_unknown_verb_is_an_error(name):
    """Exit 2, on stderr."""
    done = CliRunner().invoke(app, name.split())
    assert (done.exit_code, done.stdout) == (2, "")
