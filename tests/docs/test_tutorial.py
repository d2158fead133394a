"""The tutorial as a reader follows it: its commands in order in a fresh clone, their exit codes, and what it quotes."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorial.md"
BLOCK = re.compile(
    r"(?:^<!-- (exit (?P<exit>\d+)|by hand) -->\n+)?^```(?P<kind>sh|text)\n(?P<text>.*?)^```$", re.M | re.S
)
DIGEST = re.compile(r"\b[0-9a-f]{16,64}\b")
OMITTED = "..."
TIMEOUT_S = 900


@dataclass(frozen=True, slots=True)
class Step:
    """A shell block: what is typed, how it exits, and what the page quotes of its output."""

    commands: str
    exit: int
    by_hand: bool
    quoted: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """What a step gave: exit code, and the lines of stdout and stderr together."""

    code: int
    lines: tuple[str, ...]


def steps_of(page: str) -> list[Step]:
    """The page's shell blocks in order, each with the text block that follows it before the next one, if any."""
    found: list[Step] = []
    for block in BLOCK.finditer(page):
        if block["kind"] == "sh":
            found.append(Step(block["text"], int(block["exit"] or 0), block[1] == "by hand", ()))
        else:
            last = found.pop()
            found.append(Step(last.commands, last.exit, last.by_hand, tuple(block["text"].splitlines())))
    return found


def normal(line: str) -> str:
    """A line without what differs between two sessions: digests and the width of white space."""
    return " ".join(DIGEST.sub("DIGEST", line).split())


def missing(quoted: Iterable[str], lines: Iterable[str]) -> list[str]:
    """Quoted lines that don't occur, in the page's order. In a quoted line `...` stands for anything."""
    given, lost, after = [normal(line) for line in lines], [], 0
    for line in (one for one in quoted if one.strip() != OMITTED):
        pattern = re.compile(".*".join(re.escape(normal(part)) for part in line.split(OMITTED)))
        at = next((at for at, one in enumerate(given) if at >= after and pattern.fullmatch(one)), None)
        if at is None:
            lost.append(line)
        else:
            after = at + 1
    return lost


STEPS = steps_of(PAGE.read_text(encoding="utf-8"))


def clone(target: Path) -> Path:
    """What a clone of this tree would hold, as a repository of one commit."""
    listed = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, capture_output=True, check=True).stdout.decode().split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "A clone"]):
        subprocess.run(["git", "-C", str(target), *words], env=environment(), check=True)
    return target


def environment() -> dict[str, str]:
    """A reader's: the environment's python first on PATH, a git that knows a name, nothing of the outer session."""
    outer = ("PYTEST_", "COV_", "HARNESS_", "GIT_", "PYTHONPATH")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(outer)}
    path = os.pathsep.join([str(Path(sys.executable).parent), kept["PATH"]])
    git = {f"GIT_{who}_{what}": "reader@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return kept | git | {"PATH": path, "GIT_CONFIG_GLOBAL": os.devnull, "OMP_WAIT_POLICY": "PASSIVE"}


def follow(step: Step, at: Path, left_at: Path) -> Done:
    """A step in a shell that stops at the first command that fails, and notes the folder that it ends in."""
    script = f"set -e\ntrap 'pwd > \"{left_at}\"' EXIT\n{step.commands}"
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=at, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        check=False, timeout=TIMEOUT_S,
    )  # fmt: skip
    return Done(done.returncode, tuple(done.stdout.decode("utf-8", "replace").splitlines()))


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> list[Done | None]:
    """What each step gave; None for one that is done by hand, and for all after one that went wrong."""
    base = tmp_path_factory.mktemp("tutorial").resolve()
    at, left_at = clone(base / "pregate"), base / "at"
    found: list[Done | None] = []
    for step in STEPS:
        if step.by_hand or (found and found[-1] and found[-1].code != STEPS[len(found) - 1].exit):
            found.append(None)
            continue
        done = follow(step, at, left_at)
        at = Path(left_at.read_text(encoding="utf-8").strip())
        shown = tuple(line.replace(f"{at}/", "").replace(f"{base}/", "../") for line in done.lines)
        found.append(Done(done.code, shown))
    return found


@pytest.mark.parametrize("number", range(len(STEPS)))
def test_step_gives_what_the_page_says(number: int, followed: list[Done | None]) -> None:
    """Its exit code, and every quoted line in the page's order."""
    step, done = STEPS[number], followed[number]
    if step.by_hand:
        return
    assert done is not None, "a step before this one went wrong"
    assert done.code == step.exit, "\n".join(done.lines[-40:])
    assert missing(step.quoted, done.lines) == [], "\n".join(done.lines)


def test_one_step_at_most_is_done_by_hand() -> None:
    """The slow one; it is a command of the page all the same, and `test_docs.py` knows its options."""
    assert [step.commands.rsplit(" ", 1)[-1] for step in STEPS if step.by_hand] == ["--rerun\n"]


@pytest.mark.parametrize(
    ("line", "lost"),
    [
        ("run a1: 2 of 3", False),
        ("run  a1:\t2 of 3", False),
        ("run ... of 3", False),
        ("...", False),
        ("run a1: 2 of 4", True),
        ("run a1: 2", True),
        ("of 3", True),
        ("digest 0000000000000000 stands", False),
        ("digest 0000 stands", True),
    ],
)
def test_a_quoted_line_that_does_not_occur_is_found(line: str, lost: bool) -> None:
    """Whole lines, digests and the width of white space aside."""
    assert missing([line], ["before", "run a1: 2 of 3", "digest 0123456789abcdef stands"]) == ([line] if lost else [])


def test_lines_are_quoted_in_their_order() -> None:
    """One that occurs before the line above it is no quotation."""
    assert missing(["b", "a"], ["a", "b"]) == ["a"]


def test_blocks_are_read_with_their_exit_and_their_quotation() -> None:
    """The first block of text after the commands; none is zero and nothing."""
    page = "```sh\na\n```\n\nwords\n\n<!-- exit 3 -->\n\n```sh\nb\nc\n```\n\n```text\nd\n```\n"
    assert steps_of(page + "\n<!-- by hand -->\n\n```sh\ne\n```\n") == [
        Step("a\n", 0, False, ()),
        Step("b\nc\n", 3, False, ("d",)),
        Step("e\n", 0, True, ()),
    ]


def test_a_step_stops_at_its_first_failure_and_leaves_its_folder(tmp_path: Path) -> None:
    """The next step begins there."""
    (tmp_path / "inner").mkdir()
    done = follow(Step("cd inner\necho one\nfalse\necho two\n", 0, False, ()), tmp_path, tmp_path / "at")
    assert (done.code, done.lines) == (1, ("one",))
    assert (tmp_path / "at").read_text(encoding="utf-8").strip() == str(tmp_path / "inner")
