"""The documentation against the project: record tables, examples, commands, links, and what no file may name."""

import ast
import doctest
import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import typer

from harness.__main__ import app
from harness.canon import canonical_bytes
from harness.ledgers.sampling_statistics import sampled_statistics
from harness.ledgers.task_statistics import task_statistics
from harness.plugin.options import TIERS
from harness.protocols.folders import protocol_ids
from harness.protocols.load import LoadedProtocol, load_protocol

from ..ledgers.sampled import HAND, sampled_ledger  # noqa: TID252 - the tests are no package of that name
from ..ledgers.tasks import task_book  # noqa: TID252

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    + [ROOT / folder / "README.md" for folder in ("fixtures", "gates", "snapshots", "reports", "tests")]
    + list((ROOT / "docs").rglob("*.md"))
)
DEPTH = ("depth", "depth_ledger")
TABLES = {
    "records.md": ("run", "audit", "ledger", "evaluation", "completion", *DEPTH, "sandbox", "attempts"),
    "tapes.md": ("tapes",),
    "protocol-files.md": ("base", "sources", "prompt", "decoding", "protocol", "profile", "manifest"),
    "authoring.md": ("study", "study_ledger", "taped_study"),
    "sampling.md": ("sampling", "sampling_ledger"),
    "claims.md": ("claims",),
    "verify.md": ("verification",),
    "freezing.md": ("revision",),
    "attempts.md": ("attempts_file",),
    "cli.md": ("verbs",),
    "attestation.md": ("attestation",),
    "compare.md": ("difference",),
    "explain.md": ("explanation",),
    "task-crn.md": ("taped",),
    "graph.md": ("graph",),
    "task-statistics.md": ("task_ledger",),
    "full-size.md": ("random_weights",),
    "smollm2.md": ("converted",),
}
FAMILIES = (
    "behavior",
    "completion",
    "cross-source-sampling",
    "single-source-sampling",
    "depth",
    "task-crn",
    "task-crn-graph",
)
ON_SMOLLM2 = ("behavior", "completion", "task-crn")
GATE_TABLES = tuple(
    (f"nano-{family}", f"deepseek-{family}", *([f"smollm2-{family}"] if family in ON_SMOLLM2 else []))
    for family in FAMILIES
)
EXAMPLES = ("encodings.md", "depth.md")
BASES = ("Record", "RecordMeta")
COMMANDS = ("pytest ", "python -m pytest ", "python -m harness ", "make ")
MARKERS = (*TIERS, "bench", "inputs")

# In two parts each, so that this file names none either.
HOSTS = (
    ("py", "pi.org"),
    ("python", "hosted.org"),
    ("download.py", "torch.org"),
    ("docker", ".io"),
    ("gh", "cr.io"),
    ("qu", "ay.io"),
    ("registry.np", "mjs.org"),
    ("ana", "conda.org"),
)
REGISTRY = re.compile("|".join(re.escape(one + other) for one, other in HOSTS))
MACHINE = re.compile(r"(?<![\w/.~-])/(?:home|root|work|Users|opt|mnt|srv)/\w")
TEXTS = (".py", ".md", ".toml", ".json", ".sha256", ".yml", "")


def class_fields(module: str) -> dict[str, list[tuple[str, str]]]:
    """(field, annotation) of every record in a module of harness/records, in order."""
    tree = ast.parse((ROOT / "harness" / "records" / f"{module}.py").read_text(encoding="utf-8"))
    return {
        one.name: [(f.target.id, ast.unparse(f.annotation)) for f in one.body if isinstance(f, ast.AnnAssign)]
        for one in tree.body
        if isinstance(one, ast.ClassDef) and one.name not in BASES
    }


def page_tables(page: str) -> dict[str, list[tuple[str, str]]]:
    """(field, type) of the table under every third-level heading of a page."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    sections = re.split(r"^#{2,3} ", text, flags=re.MULTILINE)[1:]
    row = re.compile(r"^\| `([^`]+)` \| `([^`]+)` \|", re.MULTILINE)
    return {
        section.split("\n", 1)[0]: [(name, kind.replace(r"\|", "|")) for name, kind in row.findall(section)]
        for section in sections
    }


RECORDS = [
    pytest.param(page, name, fields, id=f"{page}-{name}")
    for page, modules in TABLES.items()
    for module in modules
    for name, fields in class_fields(module).items()
]


@pytest.mark.parametrize(("page", "name", "fields"), RECORDS)
def test_record_is_documented_field_by_field(page: str, name: str, fields: list[tuple[str, str]]) -> None:
    """Every record has a section whose table has its fields, in order, with their types."""
    assert page_tables(page).get(name) == fields


@pytest.mark.parametrize("page", TABLES)
def test_no_documented_record_is_stale(page: str) -> None:
    """Every section that has a field table is a record that exists."""
    known = {name for module in TABLES[page] for name in class_fields(module)}
    assert {name for name, rows in page_tables(page).items() if rows} <= known


@pytest.mark.parametrize("page", EXAMPLES)
def test_worked_examples_recompute(page: str) -> None:
    """Every example of the page gives what the page says."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    blocks = re.findall(r"```pycon\n(.*?)```", text, re.DOTALL)
    examples = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page, None, 0)
    said: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(examples, out=said.append)
    assert (result.failed, said) == (0, [])
    assert result.attempted > len(blocks)


def skeleton(text: str) -> list[str]:
    """Lines without what differs between two runs: source IDs and numbers."""
    lines = re.sub(r"^\S*math/\d+", "SOURCE", text, flags=re.MULTILINE).splitlines()
    return [re.sub(r"-?\d+(\.\d+)?", "N", line) for line in lines]


def test_statistics_are_read_as_the_page_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The page's example runs over a formal run's statistics.json and prints what the page shows, numbers apart."""
    protocol = load_protocol("nano-cross-source-sampling").protocol
    book = sampled_ledger(protocol, HAND, domains=("english", "code", "math"))
    (tmp_path / "statistics.json").write_bytes(canonical_bytes(sampled_statistics(protocol, book)))
    section = (ROOT / "docs" / "sampling.md").read_text(encoding="utf-8").split("## Reading statistics.json\n")[1]
    code, shown = re.search(r"```python\n(.*?)```.*?```text\n(.*?)```", section, re.DOTALL).groups()
    exec(compile(code.replace('"RUN"', repr(str(tmp_path))), "sampling.md", "exec"), {})
    assert skeleton(capsys.readouterr().out) == skeleton(shown)


def test_task_statistics_are_read_as_the_page_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The page's example runs over a formal run's statistics.json: a line for each domain and primary contrast."""
    protocol = load_protocol("nano-task-crn").protocol
    (tmp_path / "statistics.json").write_bytes(canonical_bytes(task_statistics(protocol, task_book(protocol, {}))))
    section = (
        (ROOT / "docs" / "task-statistics.md").read_text(encoding="utf-8").split("## Reading statistics.json\n")[1]
    )
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)[1]
    exec(compile(code.replace('"RUN"', repr(str(tmp_path))), "task-statistics.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(protocol.domains) * len(protocol.contrasts)
    assert all(protocol.bootstrap.name in line for line in lines)


@pytest.fixture(scope="module")
def nano() -> LoadedProtocol:
    """The embedded protocol."""
    return load_protocol("nano-behavior")


def gate_rows(protocol_id: str) -> dict[str, str]:
    """Gate ID -> `smoke / formal / replay` counts, from the protocol file."""
    tiers = {gate.id: gate.tiers for gate in load_protocol(protocol_id).protocol.gates}
    return {
        name: " / ".join(str(at[tier].count) if tier in at else "-" for tier in TIERS) for name, at in tiers.items()
    }


def gate_table(text: str, protocols: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Gate ID -> counts, from the one table of the page whose columns are these protocols."""
    _, table = text.split(f"| gate | one row is | {' | '.join(protocols)} |\n")
    rows = [line.strip("| ").split(" | ") for line in table.split("\n\n")[0].splitlines()[1:]]
    return {name: tuple(counts) for name, _, *counts in rows}


@pytest.mark.parametrize("protocols", GATE_TABLES, ids=" ".join)
def test_gate_table_is_the_protocols(protocols: tuple[str, ...]) -> None:
    """The gates page has every gate of every protocol with its denominators."""
    table = gate_table((ROOT / "docs" / "gates.md").read_text(encoding="utf-8"), protocols)
    nano, *others = (gate_rows(name) for name in protocols)
    assert table == {name: (nano[name], *(other.get(name, "-") for other in others)) for name in nano}
    assert all(set(other) <= set(nano) for other in others)


def test_every_protocol_and_gate_is_on_the_page() -> None:
    """No protocol is without a column, and every gate's condition is said in words."""
    assert {name for names in GATE_TABLES for name in names} == set(protocol_ids())
    words = (ROOT / "docs" / "gates.md").read_text(encoding="utf-8").split("| gate | holds when |")[1]
    said = re.findall(r"^\| (\w+) \| [^|]+ \|$", words, re.MULTILINE)
    assert sorted(said) == sorted({name for protocol in protocol_ids() for name in gate_rows(protocol)})


def test_transcript_is_of_these_protocols() -> None:
    """The README's session ran the protocols that are here, and all their smoke rows held."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = text.split("<!-- transcript -->")[1].split("<!-- /transcript -->")[0]
    total = 0
    for loaded in map(load_protocol, (name for name in protocol_ids() if name.startswith("nano-"))):
        counts = [(gate.id, gate.tiers["smoke"].count) for gate in loaded.protocol.gates if "smoke" in gate.tiers]
        assert f"protocol {loaded.protocol.id} {loaded.digest[:16]} tier smoke" in shown
        assert ", ".join(f"{name} {count}/{count}" for name, count in counts) + "." in shown
        total += sum(count for _, count in counts)
    assert f"{total} passed" in shown


def test_every_test_folder_is_listed() -> None:
    """tests/README.md has one line for each folder of tests that has any, and each line once."""
    text = (ROOT / "tests" / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)/` \|", text, re.MULTILINE)
    here = {path.parent.name for path in (ROOT / "tests").glob("*/*.py")}
    assert len(set(listed)) == len(listed)
    assert here <= set(listed)


def shell_blocks(page: Path) -> list[list[str]]:
    """The lines of each of a page's shell blocks, a line that a backslash continues as one."""
    blocks = re.findall(r"^ *```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    joined = [block.replace("\\\n", "") for block in blocks]
    return [[line.strip() for line in block.splitlines() if line.strip()] for block in joined]


def page_commands(page: Path) -> list[str]:
    """Commands of a page's shell blocks, session lines and inline code."""
    text = page.read_text(encoding="utf-8")
    lines = [line for block in shell_blocks(page) for line in block]
    lines += re.findall(r"^\$ (.+)$", text, re.MULTILINE)
    lines += re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text)
    return [line for line in dict.fromkeys(lines) if line.startswith(COMMANDS)]


def command_problem(command: str, pytest_help: str) -> str | None:
    """What a command names that doesn't exist; None where all exists."""
    words = shlex.split(command)
    if words[0] == "make":
        targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        return next((f"no target {word}" for word in words[1:] if word not in targets), None)
    if words[:3] == ["python", "-m", "harness"]:
        return harness_problem(words[3:])
    return pytest_problem(words, pytest_help)


def harness_problem(words: list[str]) -> str | None:
    """A verb or option that `python -m harness` doesn't have."""
    command = typer.main.get_command(app)
    if words[-1:] == ["--help"]:
        words = words[:-1]
        if not words:
            return None
    while hasattr(command, "commands"):
        if not words or words[0] not in command.commands:
            return f"no verb {words[:1]}"
        command, words = command.commands[words[0]], words[1:]
    options = {option for parameter in command.params for option in parameter.opts}
    return next((f"no option {word}" for word in words if word.startswith("-") and word not in options), None)


def pytest_problem(words: list[str], pytest_help: str) -> str | None:
    """An option, tier or protocol that a pytest session here doesn't have."""
    for word in words:
        if word.startswith("-") and not re.search(rf"(?<![\w-]){re.escape(word.split('=')[0])}(?![\w-])", pytest_help):
            return f"no option {word}"
    values = dict(pairwise(words))
    if "gates/" in words and "--collect-only" not in words and values.get("gates/") != "-m":
        return "no tier"
    named = set(re.findall(r"\w+", values.get("-m", "") if words[0] == "pytest" else "")) - {"not", "and", "or"}
    if named - set(MARKERS):
        return f"no marker {' '.join(sorted(named - set(MARKERS)))}"
    known = (*protocol_ids(), "DIR", "boundary")  # folders of an author's own protocol: any, and the tutorial's
    return None if values.get("--protocol", known[0]) in known else f"no protocol {values['--protocol']}"


@pytest.fixture(scope="module")
def pytest_help() -> str:
    """What `pytest --help` prints with the harness's plugin."""
    command = [sys.executable, "-m", "pytest", "--help", "-p", "no:cacheprovider"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("page", "command"),
    [pytest.param(page, one, id=f"{page.relative_to(ROOT)}: {one}") for page in PAGES for one in page_commands(page)],
)
def test_command_exists(page: Path, command: str, pytest_help: str) -> None:
    """Every verb, option, tier, target and protocol that a page names exists."""
    assert command_problem(command, pytest_help) is None, page


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("make nothing", "no target nothing"),
        ("python -m harness nothing RUN", "no verb ['nothing']"),
        ("python -m harness snapshots nothing", "no verb ['nothing']"),
        ("python -m harness prompts nano-behavior --nothing", "no option --nothing"),
        ("pytest gates/ -m smoke --nothing", "no option --nothing"),
        ("pytest gates/ -m nothing", "no marker nothing"),
        ("pytest gates/", "no tier"),
        ("pytest gates/ -m smoke --protocol nothing", "no protocol nothing"),
    ],
)
def test_unknown_command_is_found(command: str, problem: str, pytest_help: str) -> None:
    """A command that names something that isn't there is named."""
    assert command_problem(command, pytest_help) == problem


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


LINKS = [
    pytest.param(page, target, id=f"{page.relative_to(ROOT)}: {target}")
    for page in PAGES
    for target in dict.fromkeys(re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")))
    if not target.startswith("https://")
]


@pytest.mark.parametrize(("page", "target"), LINKS)
def test_internal_link_resolves(page: Path, target: str) -> None:
    """Every link within the project leads to a file, and to a heading of it where it names one."""
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    assert file.exists()
    assert not anchor or anchor in anchors(file)


def text_files() -> list[Path]:
    """The project's own text: everything but data, weights, runs and what tools leave."""
    folders = ("harness", "gates", "docs", "tests", "fixtures", "snapshots", ".ci")
    files = [path for path in ROOT.iterdir() if path.is_file()]
    files += [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    ignored = {"__pycache__", "checkpoint", "pools"}
    return [path for path in files if path.suffix in TEXTS and not ignored & set(path.relative_to(ROOT).parts)]


def named(pattern: re.Pattern[str], files: list[Path]) -> list[str]:
    """`file: match` for every match of a pattern."""
    return [
        f"{path.name}: {match[0]}" for path in files for match in pattern.finditer(path.read_text(encoding="utf-8"))
    ]


@pytest.mark.parametrize("pattern", [REGISTRY, MACHINE], ids=["registry host", "machine path"])
def test_no_file_names(pattern: re.Pattern[str]) -> None:
    """No file of the project names a package registry's host or a path of somebody's machine."""
    assert named(pattern, text_files()) == []


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (REGISTRY, "https://" + "pypi" + ".org/simple"),
        (MACHINE, "see " + "/ho" + "me/me/x"),
        (MACHINE, '"' + "/op" + 't/x"'),
    ],
)
def test_named_host_or_path_is_found(pattern: re.Pattern[str], text: str, tmp_path: Path) -> None:
    """A registry host or a machine's path in a file is found."""
    (tmp_path / "page.md").write_text(text, encoding="utf-8")
    assert len(named(pattern, [tmp_path / "page.md"])) == 1
