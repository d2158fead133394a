"""What a gate session refuses: exit code 4, one line that says what was found, and nothing written."""

from pathlib import Path

import pytest
from pregate_support.many import Case, Outcome, run_many
from pregate_support.mini import MINI, add_protocol, make_tree

from harness.journal.attempts_file import attempt_rows, chained

NAMED = ("--protocol", MINI)


def whole(*extra: str, tier: str = "formal", gates: str = "gates") -> Case:
    """A session of a whole tier with something added."""
    return Case((gates, "-m", tier, *NAMED, *extra))


NARROWED = {
    "-k": whole("-k", "registration"),
    "--lf": whole("--lf"),
    "--ff": whole("--ff"),
    "--nf": whole("--nf"),
    "--deselect": whole("--deselect", "gates/test_1_registration.py"),
    "--ignore": whole("--ignore", "gates/test_2_prompts.py"),
    "--ignore-glob": whole("--ignore-glob", "*prompts*"),
    "--sw": whole("--sw"),
    "--sw-skip": whole("--sw-skip"),
    "-x/--maxfail": whole("-x"),
    "--setup-only": whole("--setup-only"),
    "--setup-plan": whole("--setup-plan"),
    "--runxfail": whole("--runxfail"),
    "--pyargs": whole("--pyargs"),
    "--snapshot-update": whole("--snapshot-update"),
    "--snapshot-update-new-only": whole("--snapshot-update-new-only"),
    "the argument gates/test_1_registration.py": whole(gates="gates/test_1_registration.py"),
    "the argument gates/test_1_registration.py::test_identity_is_the_registered_one": whole(
        gates="gates/test_1_registration.py::test_identity_is_the_registered_one"
    ),
    "the argument .": whole(gates="."),
    "the argument tests": whole("tests"),
}
OTHER = {
    "replay -k": (whole("-k", "prompts", tier="replay"), "found -k"),
    "replay --lf": (whole("--lf", tier="replay"), "found --lf"),
    "replay deselect": (whole("--deselect", "gates/test_2_prompts.py", tier="replay"), "found --deselect"),
    "smoke update": (whole("--snapshot-update", tier="smoke"), "found --snapshot-update"),
    "smoke of everything": (whole(tier="smoke", gates="."), "found the argument ."),
    "compound and": (whole(tier="formal and not bench"), "found -m 'formal and not bench'"),
    "compound or": (whole(tier="smoke or formal"), "A compound -m would judge part of smoke"),
    "negated": (whole(tier="not smoke"), "expected -m smoke, formal or replay"),
    "in brackets": (whole(tier="(formal)"), "found -m '(formal)'"),
    "no marker": (Case(("gates", *NAMED)), "found -m ''"),
    "bench": (whole(tier="bench"), "found -m 'bench'"),
    "everything, no marker": (Case((".", *NAMED)), "found -m ''"),
    "unfrozen replay": (whole(tier="replay"), f"protocol {MINI} is unfrozen"),
    "unknown protocol": (
        Case(("gates", "-m", "smoke", "--protocol", "no-such")),
        f"protocol no-such: expected one of {MINI}, mini-other, found no such folder",
    ),
    "no protocol": (Case(("gates", "-m", "smoke")), f"no --protocol given: expected one of {MINI}"),
    "one folder, two protocols": (
        Case(("gates", "-m", "smoke", *NAMED, "--protocol", "mini-other", "--run", "reports/one")),
        f"--run names one run folder: expected one --protocol, found {MINI}, mini-other",
    ),
    "by the environment": (Case(("gates", "-m", "formal", *NAMED), {"PYTEST_ADDOPTS": "-k x"}), "found -k"),
    "by the ini file": (whole("-o", "addopts=--lf"), "found --lf"),
    "without JUnit": (whole("-p", "no:junitxml"), "expected pytest's junitxml plugin"),
    "under xdist": (whole("-k", "prompts", "-n", "2"), "found -k"),
    "a run of another checkpoint": (whole("--checkpoint", "nowhere"), "Name it with --checkpoint DIR"),
    "an unregistered placement": (whole("--gpu-memory", "1GiB"), "Choose a registered placement"),
}


@pytest.fixture(scope="module")
def refusing_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree with two unfrozen protocols and no run."""
    tree = make_tree(tmp_path_factory.mktemp("refusals") / "tree")
    (tree / "tests").mkdir()
    (tree / "tests/test_nothing.py").write_text('"""None."""\n')
    add_protocol(tree, "mini-other")
    return tree


@pytest.fixture(scope="module")
def outcomes(refusing_tree: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """All cases, run once."""
    cases = NARROWED | {name: case for name, (case, _) in OTHER.items()}
    return run_many(refusing_tree, cases, tmp_path_factory.mktemp("refusals"))


@pytest.mark.parametrize("name", NARROWED)
def test_a_formal_session_is_whole(outcomes: dict[str, Outcome], name: str) -> None:
    """Whatever leaves out, adds or alters a gate is refused by its name."""
    outcome = outcomes[name]
    assert (outcome.code, len(outcome.errors)) == (4, 1), outcome.output
    assert f"{name}. Run `pytest gates/ -m formal` as it stands." in outcome.errors[0]


@pytest.mark.parametrize("name", OTHER)
def test_a_session_says_why_it_is_refused(outcomes: dict[str, Outcome], name: str) -> None:
    """Exit code 4 and one line that names what was found."""
    outcome = outcomes[name]
    assert (outcome.code, len(outcome.errors)) == (4, 1), outcome.output
    assert OTHER[name][1] in outcome.errors[0]


def test_a_refused_session_writes_no_results(outcomes: dict[str, Outcome], refusing_tree: Path) -> None:
    """No refused session leaves a journal, a run, an audit record or a JUnit file."""
    assert outcomes
    assert [path for path in refusing_tree.glob("reports/*/*/*") if path.name != "locks"] == []


def test_a_refused_formal_session_is_on_record(outcomes: dict[str, Outcome], refusing_tree: Path) -> None:
    """What a session is refused for after its protocol was loaded; a command that isn't a session's enters nothing."""
    assert outcomes
    (file,) = refusing_tree.glob("reports/*/attempts.jsonl")
    rows = attempt_rows(chained(file.read_bytes(), file))
    assert file.parent.name == MINI
    assert [row.outcome for row in rows] == ["refused", "refused"]
    assert [name in row.reason for row, name in zip(rows, ("nowhere", "1GiB"), strict=True)] == [True, True]
