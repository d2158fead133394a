"""The session closes its own books: a fault planted beside passing gates makes its exit code not 0, with the reason.

The tree's protocol registers one gate that needs no model, so a session costs its start only.
"""

import json
import re
import shutil
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from pregate_support.fakes import FAKES, REMOVER
from pregate_support.many import Case, Outcome, run_many
from pregate_support.mini import MINI, PROJECT, make_tree

from harness.journal.attempts_file import NAME, AttemptsFile
from harness.places import Places
from harness.protocols.load import load_protocol
from harness.records.attempts_file import Begun

SESSION = ("gates", "--protocol", MINI, "-p", "no:cacheprovider")
RUN = f"reports/{MINI}/one"


def session(fake: str, *extra: str, tier: str = "smoke") -> Case:
    """A session over the tree's run with a fault planted."""
    return Case((*SESSION, "-m", tier, "--run", RUN, *extra), {"FAKE": fake, "TIER": tier})


LAYOUTS: dict[str, tuple[str, ...]] = {"-n0": (), "-n1": ("-n1",), "-n2": ("-n2",), "other XML": ("--junitxml=o.xml",)}
SURROGATES = {f"surrogates {name}": session("surrogates", *extra) for name, extra in LAYOUTS.items()}
DEATHS = {
    f"dies {' '.join(extra)}": session("dies", *extra)
    for extra in (("-n1",), ("-n2",), ("-n2", "--dist=worksteal"), ("-n2", "--dist=loadfile", "--max-worker-restart=0"))
}
# Work sent to a worker that has just gone may break xdist itself before it says that the worker died.
DIED = re.compile(r"BOOKS NOT CLOSED: (a worker died|internal error: OSError: cannot send)")
OPEN: dict[str, tuple[Case, str]] = {
    "pytest breaks": (session("breaks"), "internal error: BrokenPipeError: as xdist does"),
    "pytest breaks, -n2": (session("breaks", "-n2"), "internal error: BrokenPipeError: as xdist does"),
    "removed": (session("removed"), "1 of 10 cases never reported, first gates/test_1_registration.py::"),
    "collected differently": (session("differs", "-n2"), "never reported, first gates/"),
    "run twice": (session("", "-n2", "--dist=each"), "10 of 10 cases reported twice, first gates/"),
    "bad module, ignored": (
        session("bad module", "--continue-on-collection-errors"),
        "failed at collection: gates/test_9_fakes.py",
    ),
    "bad module, -n2": (session("bad module", "-n2"), "failed at collection: gates/test_9_fakes.py"),
    "skipped file": (session("skips its file", tier="formal"), "failed at collection: gates/test_9_fakes.py"),
    "skipped file, -n2": (
        session("skips its file", "-n2", tier="formal"),
        "failed at collection: gates/test_9_fakes.py",
    ),
}
REFUSED: dict[str, tuple[Case, str]] = {
    "bad name": (session("bad name"), "test_9_fakes.py::test_\\ud800: expected a name in Unicode text"),
    "unmarked": (
        session("unmarked"),
        "test_unmarked: expected exactly one of the markers smoke, formal, replay, found none.",
    ),
    "two tiers": (session("two tiers"), "test_twice: expected exactly one of the markers"),
    "shows fixtures": (session("", "--fixtures"), "found --fixtures"),
    "judges nothing": (session("judges nothing"), "test_judges_nothing: expected exactly one of the markers"),
}
WORKERS_REFUSED = {f"{name} -n2": session(name, "-n2") for name in ("bad name", "unmarked")}
SKIPPING = {"skips": session("skips", tier="formal"), "skips -n2": session("skips", "-n2", tier="formal")}
PASSING = {
    "alone": session(""),
    "-n2": session("", "-n2"),
    "formal": session("", tier="formal"),
    "odd parameters": session("passes"),
    "odd parameters -n2": session("passes", "-n2"),
    "smoke skips": session("one skip"),
}
FAILING = {"fails": session("fails")}
NOTHING = {"nothing": session("", "-k", "no_such_test"), "nothing -n2": session("", "-k", "no_such_test", "-n2")}


@pytest.fixture(scope="module")
def books_tree(formal_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree whose protocol registers the registration gate alone, with a run of it, and the fakes beside its gates."""
    content = tomllib.loads((PROJECT / "fixtures/protocols/nano-behavior/protocol.toml").read_text("utf-8"))
    gate = next(one for one in content["gates"] if one["id"] == "registration")
    tree = make_tree(tmp_path_factory.mktemp("books") / "tree", gates=[gate])
    (tree / "gates/test_9_fakes.py").write_text(FAKES)
    (tree / "gates/conftest.py").write_text(REMOVER)
    (tree / RUN).mkdir(parents=True)
    # Only what the audit record names: the session judges registration and generates nothing.
    shutil.copyfile(formal_run / "run.json", tree / RUN / "run.json")
    digest = load_protocol(MINI, Places(tree)).digest
    lines = AttemptsFile((tree / RUN).with_name(NAME)).append(
        lambda number, previous: Begun(
            schema=1,
            number=number,
            previous_sha256=previous,
            at_us=1,
            protocol=MINI,
            protocol_digest=digest,
            run_id="one",
            port=False,
            how="new",
            units_there=0,
        )
    )
    (tree / RUN / NAME).write_bytes(lines)
    return tree


@pytest.fixture(scope="module")
def outcomes(books_tree: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """All sessions, each run once, with the files that they left."""
    judged = {name: case for group in (OPEN, REFUSED) for name, (case, _) in group.items()}
    plain = SURROGATES | DEATHS | WORKERS_REFUSED | SKIPPING | PASSING | FAILING | NOTHING
    keep = [books_tree / RUN / "junit.xml", books_tree / RUN / "audit.json"]
    return run_many(books_tree, judged | plain, tmp_path_factory.mktemp("outcomes"), keep=keep)


def junit(outcomes: dict[str, Outcome], name: str) -> ET.Element:
    """The JUnit file that a session left."""
    return ET.parse(outcomes[name].kept / "junit.xml").getroot()


def audit(outcomes: dict[str, Outcome], name: str) -> dict[str, object]:
    """The audit record that a session left."""
    content: dict[str, object] = json.loads((outcomes[name].kept / "audit.json").read_bytes())
    return content


@pytest.mark.parametrize("name", PASSING)
def test_all_passed_is_zero(outcomes: dict[str, Outcome], name: str) -> None:
    """With nothing planted the same session exits 0 and its record says passed: the faults below are what fails."""
    outcome = outcomes[name]
    assert (outcome.code, audit(outcomes, name)["passed"]) == (0, True), outcome.output


@pytest.mark.parametrize("name", OPEN)
def test_an_open_book_is_a_failure(outcomes: dict[str, Outcome], name: str) -> None:
    """The exit code isn't 0, the output says which entry is open, and the record says not passed."""
    outcome = outcomes[name]
    assert outcome.code != 0, outcome.output
    assert OPEN[name][1] in outcome.output
    assert "BOOKS NOT CLOSED" in outcome.output
    assert audit(outcomes, name)["passed"] is False


@pytest.mark.parametrize("name", DEATHS)
def test_a_dead_worker_is_a_failure(outcomes: dict[str, Outcome], name: str) -> None:
    """A worker that leaves with exit code 0 in the middle of a test isn't a pass, whoever takes its items."""
    outcome = outcomes[name]
    assert outcome.code != 0, outcome.output
    assert DIED.search(outcome.output), outcome.output
    assert audit(outcomes, name)["passed"] is False


@pytest.mark.parametrize("name", SURROGATES)
def test_a_lone_surrogate_is_reported_like_anything_else(outcomes: dict[str, Outcome], name: str) -> None:
    """Every failing test stays one failure, the passing one a pass, no worker dies, in each layout."""
    outcome = outcomes[name]
    assert outcome.code == 1, outcome.output
    assert "5 failed, 11 passed" in outcome.output
    assert "a worker died" not in outcome.output
    assert audit(outcomes, name)["books"] == []


@pytest.mark.parametrize("name", SURROGATES)
def test_junit_holds_every_case_and_ascii_values(outcomes: dict[str, Outcome], name: str) -> None:
    """The file parses, holds all 16 cases with their names, and every property, message and text is ASCII."""
    root = junit(outcomes, name)
    cases = list(root.iter("testcase"))
    assert len(cases) == 16
    assert all(case.get("name") and case.get("classname") for case in cases)
    texts = [text for one in root.iter() for text in (one.text or "", *one.attrib.values())]
    assert all(text.isascii() for text in texts)


@pytest.mark.parametrize("name", REFUSED)
def test_an_item_out_of_order_is_refused(outcomes: dict[str, Outcome], name: str) -> None:
    """An item without a tier, with two, or without a name in Unicode is a collection error: exit code 4, one line."""
    outcome = outcomes[name]
    assert (outcome.code, len(outcome.errors)) == (4, 1), outcome.output
    assert REFUSED[name][1] in outcome.errors[0]


@pytest.mark.parametrize("name", WORKERS_REFUSED)
def test_workers_refuse_too(outcomes: dict[str, Outcome], name: str) -> None:
    """What every worker refuses ends the session with an exit code that isn't 0."""
    outcome = outcomes[name]
    assert outcome.code != 0, outcome.output
    assert "test_9_fakes.py::test_" in outcome.output


@pytest.mark.parametrize("name", SKIPPING)
def test_formal_has_no_skips(outcomes: dict[str, Outcome], name: str) -> None:
    """Skips, an importorskip and expected failures fail, met or not, also in JUnit."""
    outcome = outcomes[name]
    assert outcome.code == 1, outcome.output
    root = junit(outcomes, name)
    failures = [one.get("message", "") for one in [*root.iter("failure"), *root.iter("error")]]
    assert len(failures) == 5
    assert all("a formal session has no skips" in text for text in failures)
    assert not list(root.iter("skipped"))


@pytest.mark.parametrize("name", FAILING)
def test_a_failing_item_that_no_gate_registers_fails_the_record(outcomes: dict[str, Outcome], name: str) -> None:
    """All registered rows pass, yet the record isn't one of a passed session; the summary line has the reason."""
    assert (outcomes[name].code, audit(outcomes, name)["passed"]) == (1, False)
    assert "test_fails - assert 0" in outcomes[name].output
    assert [one.get("message") for one in junit(outcomes, name).iter("failure")] == ["assert 0"]


@pytest.mark.parametrize("name", NOTHING)
def test_nothing_collected_is_no_pass(outcomes: dict[str, Outcome], name: str) -> None:
    """A smoke session that was narrowed to nothing doesn't exit 0."""
    assert outcomes[name].code != 0, outcomes[name].output
    assert "nothing was collected" in outcomes[name].output


@pytest.mark.parametrize("name", ["alone", "-n2"])
def test_every_case_carries_its_properties(outcomes: dict[str, Outcome], name: str) -> None:
    """Protocol, digest, tier, gate, clause, cell, run, fraction and differences, each case, also from workers."""
    wanted = {"protocol", "protocol_digest", "tier", "gate", "clause", "cell", "run_sha256", "fraction", "differences"}
    cases = list(junit(outcomes, name).iter("testcase"))
    assert len(cases) == 10
    for case in cases:
        found = {one.get("name"): one.get("value") for one in case.iter("property")}
        assert set(found) == wanted
        assert (found["protocol"], found["gate"], found["fraction"]) == (MINI, "registration", "10/10")
