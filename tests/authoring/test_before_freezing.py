"""What freezing finds out of a study before anything is generated, and what nobody may leave out of it."""

import json
import os
import re
import shutil

import msgspec
import pytest
from typer.testing import CliRunner

from harness.__main__ import app
from harness.authoring.answers import source_of
from harness.cli.freeze import ANEW
from harness.errors import HarnessError, InputError, ProtocolError
from harness.files import file_sha256
from harness.gold import registered_gold
from harness.places import STUDIES, Places, include, places
from harness.protocols.check import check_manifest
from harness.protocols.folders import protocol_ids
from harness.protocols.load import load_line, load_protocol
from harness.protocols.study_gates import check_study_gates
from harness.selection import selection_rank

from .conftest import freeze_study, write_study

replace = msgspec.structs.replace


@pytest.fixture(scope="module")
def protocol(frozen):
    """The study of the tiny Llama."""
    return load_line(frozen("llama"), places())[-1].protocol


@pytest.fixture
def lines(tmp_path):
    """`lines(*gold)`: a file of sources with these gold fields, one each."""

    def write(*gold):
        rows = [{"id": f"n{at}", "text": f"Add {at}.", "answer": one} for at, one in enumerate(gold)]
        path = tmp_path / "n.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return write


def of(file, judge):
    """Answers for one domain with this judge."""
    return {"sources": (source_of(f"n={file},judge={judge},gold=answer"),), "claims": (), "formal": 2}


def with_gate(protocol, name, **fields):
    """The study with one gate changed."""
    return replace(protocol, gates=tuple(replace(one, **fields) if one.id == name else one for one in protocol.gates))


def test_a_study_has_all_of_its_gates(protocol):
    """The one that init wrote."""
    check_study_gates(protocol, "p")


@pytest.mark.parametrize("name", ["edit_contract", "function_scores", "smoke_passed", "independent_replay"])
def test_no_gate_is_left_out(protocol, name):
    """A passed run of fewer gates would read like any other."""
    fewer = replace(protocol, gates=tuple(one for one in protocol.gates if one.id != name))
    with pytest.raises(ProtocolError, match=rf"p: gates: expected .*{name}"):
        check_study_gates(fewer, "p")


def test_no_gate_is_weakened(protocol):
    """By other rows, another tier, or another gate's place."""
    gate = next(one for one in protocol.gates if one.id == "prompt_hashes")
    for fields in ({"rows": "whole"}, {"tiers": {"smoke": gate.tiers["smoke"]}}, {"reach": "registration"}):
        with pytest.raises(ProtocolError, match=r"p: gates\.prompt_hashes"):
            check_study_gates(with_gate(protocol, "prompt_hashes", **fields), "p")


def test_a_gate_that_was_left_out_by_hand_is_not_frozen(answers_for, tmp_path):
    """protocol.toml is its author's, and this isn't."""
    folder = write_study(tmp_path, answers_for("llama", id="fewer-study"))
    path = folder / "protocol.toml"
    head, first, rest = path.read_text("utf-8").partition("[[gates]]")
    listed = [f"{first}{one}" for one in rest.split("[[gates]]") if 'id = "function_scores"' not in one]
    path.write_text(head + "".join(listed), "utf-8")
    with pytest.raises(ProtocolError, match="function_scores"):
        freeze_study(folder)
    assert not (folder / "manifest.json").exists()


@pytest.mark.parametrize(("judge", "word"), [("number", "#### N"), ("exact", "an expected text")])
def test_a_judge_without_anything_to_compare_with_is_refused(answers_for, lines, tmp_path, judge, word):
    """An empty field of a CSV would be what an empty output is."""
    own = of(lines("1", " ", "3"), judge) | {"formal": 3}
    with pytest.raises(InputError, match=word):
        write_study(tmp_path, answers_for("llama", id="blank-study", **own))


def alike(path, *texts, ids="a"):
    """A file of sources with these texts, under IDs of their own."""
    rows = [{"id": f"{ids}{at}", "text": text, "answer": "1"} for at, text in enumerate(texts)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


TWICE = re.escape("n sources: expected each text once, found one text under the IDs a")


def test_one_text_under_two_ids_is_refused_by_init(answers_for, tmp_path):
    """It would be counted as two sources; one character more is another text, and in another domain it may stand."""
    file = alike(tmp_path / "n.jsonl", "Add 1.", "Add 1.")
    with pytest.raises(ProtocolError, match=f"{TWICE}[01] and a[01]. Take one of the two"):
        write_study(tmp_path, answers_for("llama", id="twice-study", **of(file, "exact")))
    assert not (tmp_path / "twice-study/protocol.toml").exists()
    alike(file, "Add 1.", "Add 1. ")
    also = alike(tmp_path / "m.jsonl", "Add 1.", "Add 1. ", ids="b")
    own = of(file, "exact")
    own["sources"] = (*own["sources"], source_of(f"m={also},judge=exact,gold=answer"))
    write_study(tmp_path, answers_for("llama", id="once-study", **own))


def first_of(study, domain, own, other):
    """An ID that comes before `own` by rank where `own` is to be second, or after it."""
    salt = f"{study}-source-selection-v1"
    rank = selection_rank(salt, domain, own)
    ids = (f"{other}{at}" for at in range(1000))
    return next(one for one in ids if (selection_rank(salt, domain, one) < rank) is (other == "before"))


@pytest.mark.parametrize("names", [("a", "a-00"), ("a", "A-00")])
def test_two_units_of_one_file_name_are_refused(answers_for, tmp_path, names):
    """Dashes join domain, rank and ID, and some file systems know no case: the second unit's journal would be the
    first's.
    """
    study, sources = "joined-study", []
    for name, own, other in ((names[0], "01-x", "after"), (names[1], "x", "before")):
        rows = [{"id": one, "text": f"{name} {one}"} for one in (own, first_of(study, name, own, other))]
        path = tmp_path / f"of-{len(sources)}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        sources.append(source_of(f"{name}={path}"))
    with pytest.raises(ProtocolError, match=r"files of grid .*: expected each name once.* found .*-00-01-x-.* of "):
        write_study(tmp_path, answers_for("llama", id=study, sources=tuple(sources), claims=()))
    assert not (tmp_path / study / "protocol.toml").exists()


def test_a_file_name_that_no_file_can_have_is_refused(answers_for, tmp_path):
    """Domain, ID and condition are each as long as they may be: no execution of such a cell could be written."""
    path = tmp_path / "n.jsonl"
    path.write_text(json.dumps({"id": "q" * 100, "text": "Add."}) + "\n", encoding="utf-8")
    own = {"sources": (source_of(f"{'d' * 64}={path}"),), "edits": {"y" * 40: "x"}, "claims": (), "formal": 1}
    with pytest.raises(ProtocolError, match="expected names of 200 characters at most"):
        write_study(tmp_path, answers_for("llama", id="long-named", **own))


def test_only_chosen_sources_must_differ(answers_for, tmp_path):
    """Of three rows of one text a study of one source takes one."""
    own = of(alike(tmp_path / "n.jsonl", *["Add 1."] * 3), "exact") | {"formal": 1}
    freeze_study(write_study(tmp_path, answers_for("llama", id="one-study", **own)))


def test_one_text_under_two_ids_is_refused_by_freeze_and_by_loading(answers_for, tmp_path):
    """Of a file that was changed after `init`, and of a manifest that somebody wrote."""
    file = alike(tmp_path / "n.jsonl", "Add 1.", "Add 2.")
    folder = write_study(tmp_path, answers_for("llama", id="later-study", **of(file, "exact")))
    loaded = freeze_study(folder)
    first, second = loaded.manifest.sources
    twins = (first, replace(second, text_sha256=first.text_sha256))
    with pytest.raises(ProtocolError, match=f"{TWICE}[01] and a[01]"):
        check_manifest(loaded.protocol, replace(loaded.manifest, sources=twins))
    before = file_sha256(file, what="sources")
    alike(folder / "inputs/n.jsonl", "Add 1.", "Add 1.")
    after, path = file_sha256(folder / "inputs/n.jsonl", what="sources"), folder / "protocol.toml"
    path.write_text(path.read_text("utf-8").replace(before, after), "utf-8")
    with pytest.raises(ProtocolError, match=f"{TWICE}[01] and a[01]"):
        freeze_study(folder)


def test_a_number_may_stand_alone(answers_for, lines, tmp_path):
    """As a table has it; `#### N` of a worked answer stays what it is."""
    folder = write_study(
        tmp_path, answers_for("llama", id="number-study", **of(lines("1,000.0", "so #### 7"), "number"))
    )
    loaded = freeze_study(folder)
    keys = loaded.units("formal", loaded.domains)
    assert registered_gold(loaded, [folder / "inputs"], keys) == {"n0": "1000", "n1": "7"}


def test_a_module_is_tried_before_freezing(answers_for, tmp_path):
    """Another source, none, one without the function: found before a grid is generated."""
    folder = write_study(tmp_path, answers_for("llama", id="tried-study"))
    module, text = folder / "score.py", (folder / "score.py").read_text("utf-8")
    for change in (lambda: module.write_text(text + "\n", "utf-8"), module.unlink):
        change()
        with pytest.raises(ProtocolError, match=r"score\.py: bytes"):
            freeze_study(folder)
    module.write_text(text, "utf-8")
    path = folder / "protocol.toml"
    path.write_bytes(path.read_bytes().replace(b'function = "score"', b'function = "scores"'))
    with pytest.raises(InputError, match="no function scores"):
        freeze_study(folder)
    assert not (folder / "manifest.json").exists()


def test_an_altered_module_loads_nowhere(frozen, tmp_path):
    """It is a frozen file like any other."""
    folder = shutil.copytree(frozen("llama"), tmp_path / "llama-study", symlinks=True)
    (folder / "score.py").write_text("def score(text, gold):\n    return True\n", encoding="utf-8")
    with pytest.raises(ProtocolError, match=r"score\.py: bytes"):
        load_line(folder, places())


def test_a_function_that_is_not_there_is_refused_by_init(answers_for, tmp_path):
    """And nothing is written."""
    sources = answers_for("llama").sources
    own = (sources[0], source_of(f"t={sources[1].file},judge=function,gold=want,function=score:nothing"))
    with pytest.raises(InputError, match="no function nothing"):
        write_study(tmp_path, answers_for("llama", id="named-study", sources=own, claims=()))
    assert not (tmp_path / "named-study/protocol.toml").exists()


def test_freezing_again_without_an_input_gives_up_no_source(answers_for, tmp_path):
    """Frozen texts and prompt hashes don't become owed unsaid."""
    folder = write_study(tmp_path, answers_for("llama", id="again-study"))
    before = freeze_study(folder)
    shutil.move(folder / "inputs/qa.csv", tmp_path / "qa.csv")
    ids = [one.source_id for one in before.manifest.sources if one.domain == "qa"]
    (folder / "published_sources.json").write_text(json.dumps({"qa": ids}), "utf-8")
    manifest = (folder / "manifest.json").read_bytes()
    with pytest.raises(ProtocolError, match=re.escape("manifest.json: qa: expected frozen sources, as until now")):
        freeze_study(folder)
    assert (folder / "manifest.json").read_bytes() == manifest
    shutil.move(tmp_path / "qa.csv", folder / "inputs/qa.csv")
    assert freeze_study(folder).digest == before.digest


def test_freezing_anew_is_said(answers_for, tmp_path):
    """The first time and without a change it isn't anew."""
    folder = write_study(tmp_path, answers_for("llama", id="anew-study"))
    path, said = folder / "protocol.toml", []
    for title in (b"A study of a tiny model", b"A study of a tiny model", b"Another"):
        path.write_bytes(path.read_bytes().replace(b"A study of a tiny model", title))
        done = CliRunner().invoke(app, ["freeze", str(folder), "--json"])
        assert done.exit_code == 0, done.stderr
        said.append(json.loads(done.stdout)["anew"])
    assert said == [False, False, True]
    path.write_bytes(path.read_bytes().replace(b"Another", b"A third"))
    assert ANEW in CliRunner().invoke(app, ["freeze", str(folder)]).stdout.replace("\n", " ")


def test_two_folders_of_one_id_are_refused(frozen, tmp_path):
    """Which of them is meant isn't guessed by the order of a variable."""
    first, other = frozen("llama"), tmp_path / "llama-study"
    other.mkdir()
    shutil.copyfile(first / "protocol.toml", other / "protocol.toml")
    tree = places().with_studies((first, other))
    with pytest.raises(ProtocolError, match=f"one folder of a protocol's ID, found {re.escape(str(first))} too"):
        load_protocol("llama-study", tree)
    taken = tmp_path / "nano-completion"
    taken.mkdir()
    shutil.copyfile(first / "protocol.toml", taken / "protocol.toml")
    with pytest.raises(ProtocolError, match="one folder of a protocol's ID"):
        protocol_ids(Places(places().root, (taken,)))


def test_a_path_that_no_variable_can_hold_is_refused(monkeypatch, tmp_path):
    """Another process would be told of two other folders."""
    monkeypatch.delenv(STUDIES, raising=False)
    with pytest.raises(HarnessError, match="a path without"):
        include([tmp_path / f"a{os.pathsep}b"])
    assert STUDIES not in os.environ
