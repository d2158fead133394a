"""Every command of a page's `sh` blocks: run here as a reader would type it, or listed in not_run.py with what runs it.

A block is run line by line in a copy of one small tree, its placeholders filled in. A command that no table names is
run too, and has to end with 0.
"""

import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from pregate_support.authority import Authority, make_authority, served
from pregate_support.fixtures import tree_of
from pregate_support.mini import MINI, copy_tree, run_gates
from pregate_support.revising import propose
from typer.testing import CliRunner

from harness.__main__ import app
from harness.places import STUDIES, Places
from harness.snapshots.store import accept

from ..verify.conftest import add_claims  # noqa: TID252 - the tests are no package of that name
from .not_run import CI, NOT_RUN, Row, row_problem
from .test_docs import ROOT, shell_blocks

OWN_TESTS = {"docs/tutorial.md": "tests/docs/test_tutorial.py"}  # pages whose commands another test runs, all of them
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = {
    f"{page.relative_to(ROOT)}:{number}": block
    for page in PAGES
    if str(page.relative_to(ROOT)) not in OWN_TESTS
    for number, block in enumerate(shell_blocks(page), 1)
}
COMMANDS = {command for block in BLOCKS.values() for command in block}
PROGRAMS = ("cp", "sed", "export", "ssh-keygen")  # besides the harness and pytest: what is run of a page

# What a word of a page stands for. Other words in capitals are names of files and folders that the tree has.
FORMAL = f"reports/{MINI}/formal-1"
FILLED = {
    r"\bnano-(behavior|completion)\b": MINI,
    r"(?<=cp -r )RUN\b": "SMOKE",
    rf"(reports/{MINI}/)?\bRUN\b": FORMAL,
    r"\bA B\b": f"{FORMAL} snapshots/{MINI}",
    r"(?<=--inputs )DIR\b|(?<=inputs verify )DIR\b": "INPUTS",
    r"\bDIR\b": "mine",
    r"(?<=--response )FILE\b": "ANSWER",
}
WRITTEN = {
    "FILE.csv": "key,question,answer\n" + "".join(f"q{one},Is {one} even?,{one % 2 == 0}\n" for one in range(8)),
    "OUTPUTS.jsonl": '{"id": "a", "text": "6 * 7 = 42", "gold": "42"}\n',
    "WRITEUP.md": "# Results\n\nReplayed: 16/16.\n",
}


class Exit(NamedTuple):
    """Another exit code than 0, and the words of a page with the command that say so."""

    code: int
    said: str


NOT_THERE = "The first two exit with 1\nwhile the TNEWS file is missing"
EXITS = {
    "python -m harness inputs verify INPUTS --protocol deepseek-behavior": Exit(1, NOT_THERE),
    "python -m harness inputs verify DIR --protocol deepseek-behavior": Exit(1, "1: not all, or DIR can't be read"),
    "python -m harness prompts deepseek-behavior --inputs INPUTS": Exit(1, NOT_THERE),
    "python -m harness prompts deepseek-behavior --inputs DIR": Exit(1, "the first and the third exit with 1"),
    "python -m harness profile record CHECKPOINT --profile deepseek-v2-lite-chat": Exit(
        1, "1: one does, or a file can't"
    ),
    "python -m harness freeze deepseek-behavior --inputs DIR": Exit(1, "or something isn't as registered"),
    "python -m harness freeze nano-behavior": Exit(1, "It refuses a protocol of which anything was made"),
    "pytest gates/ -m formal --protocol deepseek-behavior --checkpoint CHECKPOINT --inputs DIR": Exit(
        4, "ends at once with"
    ),
    "pytest gates/ -m smoke --run damaged": Exit(1, "190 failed, 35 passed"),
}


@pytest.mark.parametrize("command", NOT_RUN)
def test_command_has_a_reason_not_to_be_run(command: str) -> None:
    """A listed command is on a page, can't be run cheaply, and what runs it exists."""
    assert row_problem(command, NOT_RUN[command], COMMANDS) is None


@pytest.mark.parametrize(
    ("command", "row", "problem"),
    [
        ("make smoke", Row("minutes", ""), "nothing runs it"),
        ("make nothing", Row("minutes", CI.format("test")), "no page has"),
        ("make smoke", Row("minutes", CI.format("nothing")), "nothing there"),
        ("make smoke", Row("minutes", "tests/docs/test_commands.py::test_nothing"), "nothing there"),
        ("make smoke", Row("minutes", "tests/nothing.py::test_nothing"), "nothing there"),
        ("make smoke", Row("GPU", CI.format("smoke")), "GPU: not of this"),
        ("pytest gates/ -m smoke --protocol DIR", Row("minutes", CI.format("smoke")), "minutes: not of this"),
        ("python -m harness report RUN", Row("minutes", CI.format("test")), "minutes: not of this"),
        (next(iter(EXITS)), Row("download", ""), "download: not of this"),
    ],
)
def test_row_without_cause_is_found(command: str, row: Row, problem: str) -> None:
    """A stale row, one of a command that could be run, and one that names nothing are named."""
    assert (row_problem(command, row, COMMANDS) or "").startswith(problem)


@pytest.mark.parametrize("command", EXITS)
def test_exit_code_is_said_on_a_page(command: str) -> None:
    """Another code than 0 is said where the command stands; nothing is in both tables."""
    pages = {name.partition(":")[0] for name, block in BLOCKS.items() if command in block}
    assert any(EXITS[command].said in (ROOT / page).read_text(encoding="utf-8") for page in pages)
    assert command not in NOT_RUN


def test_pages_with_a_test_of_their_own_have_it() -> None:
    """A page that is left out here has its test."""
    assert [page for page, test in OWN_TESTS.items() if (ROOT / page).exists() and not (ROOT / test).exists()] == []


def test_unlisted_program_is_refused(tmp_path: Path) -> None:
    """A page's command of another program is neither run unseen nor passed over."""
    with pytest.raises(RuntimeError, match="neither run here"):
        call("touch x", tmp_path)


@pytest.mark.parametrize(("command", "code"), [("cp nothing there", 1), ("python -m harness nothing", 2)])
def test_another_exit_code_is_seen(command: str, code: int, tmp_path: Path) -> None:
    """A program's and a verb's exit codes are their own."""
    assert call(command, tmp_path)[0] == code


def call(command: str, tree: Path) -> tuple[int, str]:
    """(exit code, output) of a filled command: a verb in this process, a session off a fork, else a shell."""
    words = shlex.split(command)
    if words[:3] == ["python", "-m", "harness"]:
        done = CliRunner().invoke(app, words[3:], input="\n" * 40)  # each question gets its default
        return done.exit_code, done.output + repr(done.exception)
    if words[:2] == ["pytest", "gates/"]:
        session = run_gates(tree, *words[2:], protocol=None)
        return session.code, session.output
    if words[0] not in PROGRAMS:
        raise RuntimeError(f"{command}: neither run here (PROGRAMS) nor listed (NOT_RUN)")
    shell = subprocess.run(["bash", "-c", command], cwd=tree, capture_output=True, text=True, check=False)
    return shell.returncode, shell.stdout + shell.stderr


def filled(command: str, address: Callable[[], str]) -> str:
    """The command with what its placeholders stand for."""
    for pattern, value in FILLED.items():
        command = re.sub(pattern, value, command)
    return command.replace(" URL", f" {address()}") if " URL" in command else command


# What a reader has done before a command, or has at hand: (tree, the authority where the block needs one).
def accepted(tree: Path, _: Authority | None) -> None:
    """The run is frozen."""
    if not (tree / "snapshots" / MINI).exists():
        accept(tree / FORMAL, Places(tree))


def proposed(tree: Path, _: Authority | None) -> None:
    """amendment/ holds the protocol with another title."""
    propose(Places(tree), "A clearer title", MINI)


def unmade(tree: Path, _: Authority | None) -> None:
    """Nothing was made of the protocol, and no authority has seen it."""
    for folder in (f"reports/{MINI}", f"snapshots/{MINI}", f"fixtures/protocols/{MINI}/anchor"):
        shutil.rmtree(tree / folder, ignore_errors=True)


def trusted(tree: Path, authority: Authority | None) -> None:
    """FILE has the authority's certificates."""
    shutil.copyfile(authority.root, tree / "FILE")


def answered(tree: Path, authority: Authority | None) -> None:
    """ANSWER is the authority's to the request."""
    (tree / "ANSWER").write_bytes(
        authority.answer((tree / f"fixtures/protocols/{MINI}/anchor/request.tsq").read_bytes())
    )


def keyed(tree: Path, _: Authority | None) -> None:
    """KEY, and SIGNERS with its owner."""
    if not (tree / "KEY").exists():
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tree / "KEY")], check=True)
        (tree / "SIGNERS").write_text(f"alice@example.org {(tree / 'KEY.pub').read_text()}", encoding="utf-8")


def signed(tree: Path, _: Authority | None) -> None:
    """RUN was attested and signed with KEY: the page's first block."""
    for command in BLOCKS["docs/attestation.md:1"][:2]:
        assert call(filled(command, str), tree)[0] == 0


BEFORE = {
    r"(compare|explain) .*(A B|snapshots/)": accepted,
    r" amend ": proposed,
    r" --anchor ": unmade,
    r" --authority ": trusted,
    r" --response ": answered,
    r"ssh-keygen": keyed,
    r"ssh-keygen -Y verify": signed,
}


@pytest.fixture(scope="module")
def ready(formal_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree with a judged run, its smoke run, a protocol that owes inputs, and a reader's files. Read only."""
    tree = copy_tree(tree_of(formal_run), tmp_path_factory.mktemp("commands") / "tree")
    add_claims(tree, MINI, "behavior")
    for one in ("protocols/deepseek-behavior", "protocols/nano-behavior", "protocols/nano-completion",
                "protocols/nano-task-crn", "models/deepseek-v2-lite-chat"):  # fmt: skip
        shutil.copytree(ROOT / "fixtures" / one, tree / "fixtures" / one)
    for name, text in WRITTEN.items():
        (tree / name).write_text(text, encoding="utf-8")
    (tree / "INPUTS").mkdir()
    (tree / "CHECKPOINT").symlink_to("fixtures/models/nano/checkpoint")
    (smoke,) = (tree / "reports" / MINI).glob("smoke-*")
    shutil.copytree(smoke, tree / "SMOKE")
    return tree


@pytest.fixture
def tree(ready: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, where the commands are typed; nothing of this session's surroundings is named to them."""
    tree = copy_tree(ready, tmp_path / "tree")
    monkeypatch.chdir(tree)
    for name in ("HARNESS_INPUTS", "HARNESS_SANDBOX_IMAGE", "HARNESS_SMOLLM2"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HARNESS_ROOT", str(tree))
    monkeypatch.setenv(STUDIES, "")
    return tree


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """A time-stamp authority of this machine."""
    return make_authority(tmp_path_factory.mktemp("authority") / "tsa")


@pytest.fixture(scope="module")
def url(authority: Authority) -> Iterator[str]:
    """Its address."""
    with served(authority.answer) as address:
        yield address


def blocks_run_here() -> list:
    """The blocks of which anything is run here, each once, marked with the programs that they need."""
    needs = {"ssh-keygen": pytest.mark.ssh_keygen, "--authority": pytest.mark.openssl}
    named: dict[tuple[str, ...], str] = {}
    for name, block in BLOCKS.items():
        if not set(block) <= set(NOT_RUN):
            named[tuple(block)] = f"{named.get(tuple(block), '')} {name}".strip()
    return [
        pytest.param(block, id=name, marks=[mark for word, mark in needs.items() if word in "\n".join(block)])
        for block, name in named.items()
    ]


@pytest.mark.parametrize("block", blocks_run_here())
def test_commands_do_what_their_page_says(block: tuple[str, ...], tree: Path, request: pytest.FixtureRequest) -> None:
    """The commands of a block, one after another, end with the exit codes that the page gives."""
    stamps = request.getfixturevalue("authority") if "--authority" in "\n".join(block) else None
    for command in (one for one in block if one not in NOT_RUN):
        for pattern, prepare in BEFORE.items():
            if re.search(pattern, command):
                prepare(tree, stamps)
        code, output = call(filled(command, lambda: request.getfixturevalue("url")), tree)
        expected = EXITS[command].code if command in EXITS else 0
        assert code == expected, f"{command}\n{output}"
