"""The index leads to every page, and a concept page names modules, records, files and gates that exist."""

import importlib
import pkgutil
import re
from functools import cache
from pathlib import Path

import pytest

import harness.records
from harness.records.base import Record

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
INDEX = (DOCS / "README.md").read_text(encoding="utf-8")
CONCEPTS = sorted((DOCS / "concepts").glob("*.md"))
SECTIONS = ["Why", "Where it is", "What makes it red", "What it can't show", "More"]
KINDS = ["code", "records", "files", "gates"]
SHORTEST, LONGEST = 25, 60  # lines
TREE_FILES = ("fixtures/", "snapshots/")


def named(text: str) -> dict[str, list[str]]:
    """Kind -> the names in code spans of its row, of the table under `Where it is`."""
    table = text.split("## Where it is\n")[1].split("\n## ", maxsplit=1)[0]
    rows = re.findall(r"^\| (\w+) \| (.+) \|$", table, re.MULTILINE)
    return {kind: re.findall(r"`([^`]+)`", names) for kind, names in rows}


@cache
def record_fields() -> dict[str, set[str]]:
    """Name of a record -> the fields of every record of that name, inherited ones too."""
    found: dict[str, set[str]] = {}
    for one in pkgutil.iter_modules(harness.records.__path__):
        module = importlib.import_module(f"harness.records.{one.name}")
        for name, value in vars(module).items():
            if isinstance(value, type) and issubclass(value, Record):
                found.setdefault(name, set()).update(value.__struct_fields__)
    return found


@cache
def run_files() -> set[str]:
    """What the record formats list of a run folder."""
    text = (DOCS / "records.md").read_text(encoding="utf-8")
    table = text.split("## The files of a run folder\n")[1].split("\n\n", maxsplit=1)[0]
    return {name for line in table.splitlines() for name in re.findall(r"`([^`]+)`", line.split(" | ")[0])}


@cache
def gate_ids() -> set[str]:
    """Every gate that gates/ has."""
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "gates").glob("*.py"))
    return {name for text in texts for name in re.findall(r'^@pytest\.mark\.gate\("(\w+)"', text, re.MULTILINE)}


def module_is_there(name: str) -> bool:
    """Whether a dotted name is a module or a package of the harness."""
    path = ROOT / Path(*name.split("."))
    return name.startswith("harness.") and (path.with_suffix(".py").is_file() or (path / "__init__.py").is_file())


def record_is_there(name: str) -> bool:
    """Whether `Record` or `Record.field` is one."""
    record, _, field = name.partition(".")
    fields = record_fields().get(record)
    return fields is not None and (not field or field in fields)


def file_is_there(name: str) -> bool:
    """Whether a run folder has a file of this name; of fixtures/ and snapshots/ whether the tree has one."""
    if name.startswith(TREE_FILES):
        return any(ROOT.glob(re.sub(r"<\w+>", "*", name)))
    return name in run_files()


IS_THERE = {
    "code": module_is_there,
    "records": record_is_there,
    "files": file_is_there,
    "gates": gate_ids().__contains__,
}


def missing(text: str) -> list[str]:
    """`kind: name` of everything that a page names and that isn't there; the kind alone where it names nothing."""
    names = named(text)
    absent = [f"{kind}: {one}" for kind in names for one in names[kind] if not IS_THERE[kind](one)]
    return absent + [kind for kind in KINDS if not names.get(kind)]


def unlinked(index: str, pages: list[str]) -> list[str]:
    """The pages that an index has no link to."""
    linked = {target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", index)}
    return [page for page in pages if page not in linked]


def test_the_index_leads_to_every_page() -> None:
    """Concepts, reference pages, results and decisions alike."""
    pages = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
    assert unlinked(INDEX, [page for page in pages if page != "README.md"]) == []


def test_the_index_has_concepts_under_their_heading() -> None:
    """And each once."""
    section = INDEX.split("\n## Concepts\n")[1].split("\n## ")[0]
    listed = re.findall(r"^\| \[[^]]+\]\(concepts/([\w-]+\.md)\) \|", section, re.MULTILINE)
    assert sorted(listed) == [path.name for path in CONCEPTS]


@pytest.mark.parametrize("page", CONCEPTS, ids=lambda page: page.stem)
def test_a_concept_page_names_what_exists(page: Path) -> None:
    """A module, a record, a file and a gate at least, and none that isn't there."""
    assert missing(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", CONCEPTS, ids=lambda page: page.stem)
def test_a_concept_page_answers_every_question(page: Path) -> None:
    """In one order, each with words, on a page that is short."""
    text = page.read_text(encoding="utf-8")
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    assert parts[1::2] == SECTIONS
    assert all(words.strip() for words in parts[2::2])
    assert SHORTEST <= len(text.splitlines()) <= LONGEST


@pytest.mark.parametrize("page", CONCEPTS, ids=lambda page: page.stem)
def test_a_concept_page_leads_on(page: Path) -> None:
    """To a page that is no concept: what a reference page says better isn't said again."""
    more = page.read_text(encoding="utf-8").split("\n## More\n")[1]
    assert re.search(r"\]\(\.\./[\w-]+\.md", more)


PAGE = """## Where it is

| | |
|---|---|
| code | `harness.canon` |
| records | `RunSpec.port` |
| files | `run.json` |
| gates | `registration` |

## More
"""


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("harness.canon", "harness.nothing", ["code: harness.nothing"]),
        ("harness.canon", "tests.docs", ["code: tests.docs"]),
        ("RunSpec.port", "RunSpec.nothing", ["records: RunSpec.nothing"]),
        ("RunSpec.port", "Nothing", ["records: Nothing"]),
        ("run.json", "nothing.json", ["files: nothing.json"]),
        ("run.json", "snapshots/<protocol>/formal/nothing.json", ["files: snapshots/<protocol>/formal/nothing.json"]),
        ("registration", "nothing", ["gates: nothing"]),
        ("| gates | `registration` |\n", "", ["gates"]),
        ("run.json", "run.json", []),
    ],
)
def test_what_is_missing_is_named(old: str, new: str, found: list[str]) -> None:
    """A module, record, field, file or gate that isn't there, and a row that is left out."""
    assert missing(PAGE.replace(old, new)) == found


def test_an_unlinked_page_is_named() -> None:
    """A page that the index leaves out, also where another's name ends alike."""
    assert unlinked("[a](concepts/a.md#why) [b](b.md)", ["concepts/a.md", "a.md", "b.md"]) == ["a.md"]
