"""`verify`: a run as it was made holds, and every alteration is found and named."""

import errno
import json
import os
import re
import shutil
from fnmatch import fnmatch
from pathlib import Path

import pytest
from pregate_support.mini import COMPLETION, MINI

from harness.canon import canonical_bytes, digest, ids_sha256, sha256_hex
from harness.errors import ModelError, ProtocolError
from harness.journal.folder import RunFolder
from harness.ledgers.close import close_run
from harness.places import Places
from harness.protocols.load import digest_files, load_protocol, read_protocol
from harness.records.base import decode_json
from harness.records.manifest import Manifest
from harness.snapshots.store import accept
from harness.verify.run import verify

from .conftest import reseal, write_audit

# Every kind of file of a run folder. `{part}`: a run made apart.
KINDS = (
    "spec.json", "environment.json", "placement.json", "gold.json", "baseline.json", "tasks.json", "smoke.json",
    "journal/*.json", "workers/*.json", "run.json", "sandbox.json", "sandbox/*.json", "ledger.json", "statistics.json",
    "observations.json", "junit.xml", "audit.json", "audit.json.sha256", "claims.json",
    "attempts.jsonl",
)  # fmt: skip
IN_A_PART = (
    "spec.json", "environment.json", "placement.json", "gold.json", "baseline.json", "tasks.json", "journal/*.json",
    "workers/*.json", "run.json", "ledger.json", "statistics.json", "observations.json", "request.json",
    "complete.json", "child-*.log", "ready/*",
)  # fmt: skip
ALL = (*KINDS, *(f"{part}/{kind}" for part in ("placement", "replay") for kind in IN_A_PART))


def flip(path: Path, at: int | None = None) -> None:
    """One bit of one byte, by default in the middle; in an empty file a byte appears."""
    data = bytearray(path.read_bytes())
    if not data:
        data = bytearray(b"x")
    else:
        data[len(data) // 2 if at is None else at] ^= 1
    path.write_bytes(bytes(data))


def names(lines) -> str:
    """All that the lines say."""
    return "\n".join(
        f"{one.step}: {one.where}: expected {one.expected}, found {one.found}. {one.todo}" for one in lines
    )


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    """A mistyped path isn't a run that nobody judged."""
    found = verify(tmp_path / "nothing", Places(tmp_path))
    assert found.verdict == "not checkable"
    assert (found.lines[0].expected, found.lines[0].found) == ("a run folder", "no such folder")


def test_the_run_holds(run, judge):
    """The control of everything below."""
    assert judge(run) == ("holds", [])


def test_a_run_that_was_judged_twice_holds(judged_twice, judge):
    """An earlier judgement is part of the folder."""
    assert judge(judged_twice) == ("holds", [])


def test_every_file_is_of_a_kind_that_is_flipped(run):
    """No file of the folder is left out of the flips, but empty locks."""
    found = [path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()]
    left = [name for name in found if "locks" not in name.split("/") and not any(fnmatch(name, kind) for kind in ALL)]
    assert left == []


@pytest.mark.parametrize("kind", ALL)
def test_a_flipped_byte_is_found(kind, run, judge):
    """In each kind of file: exit 1, and the file is named."""
    path = sorted(run.glob(kind))[0]
    flip(path)
    verdict, lines = judge(run)
    assert verdict == "fails"
    assert path.relative_to(run).as_posix() in names(lines)


def test_a_tokenizer_that_is_not_here_is_no_fault_of_the_run(run, judge, monkeypatch):
    """The gates that decode again can't be judged; everything else still is, and nothing fails."""

    def gone(*_):
        raise ModelError("tokenizer of nano", expected="tokenizer.json", found="neither", todo="Give --checkpoint DIR.")

    monkeypatch.setattr("harness.evidence.locate_tokenizer", gone)
    verdict, lines = judge(run)
    assert verdict == "not checkable"
    assert {(one.step, one.where) for one in lines} == {
        ("apart", "gate placement_equivalence"),
        ("apart", "gate independent_replay"),
    }
    assert {(one.state, one.found) for one in lines} == {("not checkable", "neither")}


@pytest.mark.parametrize("kind", ["run.json", "junit.xml", "audit.json", "journal/*.json", "claims.json", "smoke.json"])
@pytest.mark.parametrize("where", [0, -1])
def test_the_first_and_last_byte_are_covered(kind, where, run, judge):
    """A reader that forgives a space or a newline would miss these."""
    path = sorted(run.glob(kind))[0]
    flip(path, where)
    verdict, lines = judge(run)
    assert verdict == "fails"
    assert path.name in names(lines)


@pytest.mark.parametrize(
    "kind", ["run.json", "junit.xml", "audit.json", "audit.json.sha256", "journal/*.json", "replay/run.json"]
)
def test_a_truncated_file_is_found(kind, run, judge):
    """Half of it is missing."""
    path = sorted(run.glob(kind))[0]
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    verdict, lines = judge(run)
    assert verdict == "fails"
    assert path.name in names(lines)


@pytest.mark.parametrize(
    "kind",
    [
        "run.json",
        "journal/*.json",
        "sandbox/*.json",
        "junit.xml",
        "audit.json.sha256",
        "smoke.json",
        "replay/journal/*.json",
    ],
)
def test_a_file_that_is_gone_is_found(kind, run, judge):
    """A dropped unit, execution or record."""
    path = sorted(run.glob(kind))[0]
    path.unlink()
    verdict, lines = judge(run)
    assert verdict == "fails"
    assert path.name in names(lines)


@pytest.mark.parametrize(
    "name",
    ["more.json", "journal/more.json", "sandbox/more.json", "replay/more.txt", "locks/more.txt", "judgements/note.txt",
     "x.partial", "journal/README", "replay/judgements/more.json", "journal/judgements/more",
     "placement/workers/locks"],
)  # fmt: skip
def test_a_foreign_file_is_found(name, run, judge):
    """Wherever it lies."""
    (run / name).parent.mkdir(exist_ok=True)
    (run / name).write_text("{}")
    verdict, lines = judge(run)
    assert verdict == "fails"
    assert name in names(lines)


@pytest.mark.parametrize("name", ["more", "junit.xml", "audit.json.sha256", "smoke.json", "journal/more.json"])
def test_a_pipe_is_found_and_not_waited_for(name, run, judge):
    """Beside the run's files, or in the place of one."""
    (run / name).unlink(missing_ok=True)
    os.mkfifo(run / name)
    verdict, lines = judge(run)
    assert verdict == "fails"
    assert name in names(lines)


DEEP = b"[" * 100_000 + b"]" * 100_000
FORMS = {
    "a name twice": lambda data: b'{"port":true,' + data[1:],
    "a space": lambda data: data.replace(b":", b": ", 1),
    "deeper than any reader goes": lambda data: DEEP,
}


@pytest.mark.parametrize("form", FORMS)
def test_a_record_in_another_form_is_found_under_a_new_seal(form, run, judge):
    """Another reader might take the first of two equal names."""
    path = run / "spec.json"
    path.write_bytes(FORMS[form](path.read_bytes()))
    reseal(run)
    verdict, lines = judge(run)
    assert verdict == "fails"
    assert "files: spec.json: expected canonical JSON" in names(lines)


def test_a_folder_that_may_not_be_looked_into_is_one_line(run, judge, monkeypatch):
    """Its step says so; the others are taken."""

    def refused(*_):
        raise PermissionError(errno.EACCES, "Permission denied", "replay")

    monkeypatch.setattr("harness.verify.files.run_files", refused)
    verdict, lines = judge(run)
    assert verdict == "fails"
    assert [(one.step, one.where, one.found) for one in lines] == [("files", "replay", "Permission denied")]


def test_a_lock_with_content_is_found(run, judge):
    """Locks are empty files."""
    path = next((run / "locks").glob("*.lock"))
    path.write_text("x")
    verdict, lines = judge(run)
    assert (verdict, path.name in names(lines)) == ("fails", True)


def test_a_link_is_found(run, judge):
    """What it points to isn't the run's own, also with the same bytes."""
    kept = run.parent / "gold-elsewhere.json"
    (run / "gold.json").rename(kept)
    (run / "gold.json").symlink_to(kept)
    verdict, lines = judge(run)
    kept.unlink()
    assert verdict == "fails"
    assert "gold.json" in names(lines)


def test_a_renamed_run_is_found(run, judge):
    """The audit record and the request name the folder."""
    other = run.with_name("formal-2")
    run.rename(other)
    try:
        verdict, lines = judge(other)
    finally:
        other.rename(run)
    assert verdict == "fails"
    assert "formal-2" in names(lines)


def test_a_copy_may_lie_in_any_folder(run, judge):
    """The run's records say which protocol it is of; its neighbours are the attempts file and the smoke run."""
    other = run.parent.with_name("nano-elsewhere")
    run.parent.rename(other)
    try:
        verdict, lines = judge(other / run.name)
    finally:
        other.rename(run.parent)
    assert (verdict, lines) == ("holds", [])


def swap_cells(run: Path) -> None:
    """Two conditions of a mathematics unit exchange their outputs; the journal agrees with itself afterwards."""
    path = next((run / "journal").glob("math-*.json"))
    journal = json.loads(path.read_bytes())
    one, *others = journal["evidence"]["cells"]
    other = next(cell for cell in others if cell["generated_ids"] != one["generated_ids"])
    outputs = ("generated_ids", "generated_sha256", "text_escaped", "text_sha256", "eos", "truncated", "length")
    for name in outputs:
        one[name], other[name] = other[name], one[name]
    journal["evidence_sha256"] = digest(journal["evidence"])
    path.write_bytes(canonical_bytes(journal))


def forge(run: Path) -> None:
    """Run, ledger and statistics made again from the journals as they are now."""
    loaded = load_protocol(COMPLETION, Places(run.parents[2]))
    for name in ("run.json", "ledger.json", "statistics.json"):
        (run / name).unlink()
    close_run(RunFolder(run), loaded)


def change_tokens(run: Path) -> None:
    """A mathematics cell says one other token, and its digests follow."""
    path = next((run / "journal").glob("math-*.json"))
    journal = json.loads(path.read_bytes())
    cell = journal["evidence"]["cells"][0]
    cell["generated_ids"][0] += 1
    cell["generated_sha256"] = ids_sha256(cell["generated_ids"])
    journal["evidence_sha256"] = digest(journal["evidence"])
    path.write_bytes(canonical_bytes(journal))


@pytest.mark.parametrize("damage", [swap_cells, change_tokens])
def test_swapped_cells_are_found(damage, run, judge):
    """The journal agrees with itself; the audit record and run.json don't agree with it."""
    damage(run)
    verdict, lines = judge(run)
    assert verdict == "fails"
    assert "journal/" in names(lines)
    assert "run.json" in names(lines)


@pytest.mark.parametrize("damage", [swap_cells, change_tokens])
def test_a_forger_who_makes_all_records_again_is_found(damage, run, judge):
    """Records, audit and JUnit follow from the altered journal; the replay, the other placement and the smoke don't."""
    before = json.loads((run / "audit.json").read_bytes())["run_sha256"]
    damage(run)
    forge(run)
    sha256 = sha256_hex((run / "run.json").read_bytes())
    junit = (run / "junit.xml").read_text()
    (run / "junit.xml").write_text(junit.replace(before, sha256))
    reseal(run, run_sha256=sha256)
    verdict, lines = judge(run)
    assert verdict == "fails"
    assert {"apart", "smoke"} & {one.step for one in lines}, names(lines)


def test_a_unit_dropped_from_all_records_is_found(run, judge):
    """The grid says how many there are."""
    path = sorted((run / "journal").glob("*.json"))[0]
    path.unlink()
    content = json.loads((run / "run.json").read_bytes())
    content["units"] = content["units"][1:]
    (run / "run.json").write_bytes(canonical_bytes(content))
    reseal(run)
    verdict, lines = judge(run)
    assert verdict == "fails"
    assert path.name in names(lines)


def test_another_judgement_of_the_same_run_is_not_another_run(run, judge):
    """A resealed record over unaltered files holds: the seal is not what is trusted."""
    reseal(run)
    assert judge(run) == ("holds", [])


CASE = re.compile(r"<testcase .*?</testcase>", re.DOTALL)


def first_case(text: str) -> str:
    """The first case."""
    return CASE.search(text)[0]


def of_cells(text: str) -> str:
    """A case of a gate over cells."""
    return next(one for one in CASE.findall(text) if 'value="normal_return"' in one)


EDITS = {
    "a case removed": lambda text: text.replace(first_case(text), "", 1),
    "a case twice": lambda text: text.replace(first_case(text), first_case(text) * 2, 1),
    "a case failed": lambda text: text.replace(
        of_cells(text), of_cells(text).replace("<properties>", '<failure message="x" /><properties>'), 1
    ),
    "a difference": lambda text: text.replace('"differences" value="0"', '"differences" value="1"', 1),
    "a fraction": lambda text: text.replace('"fraction" value="16/16"', '"fraction" value="128/128"', 1),
    "another run": lambda text: re.sub(r'(name="run_sha256" value=")[0-9a-f]{64}', r"\g<1>" + "0" * 64, text, count=1),
    "another protocol": lambda text: re.sub(
        r'(name="protocol_digest" value=")\w{64}', r"\g<1>" + "0" * 64, text, count=1
    ),
    "another tier": lambda text: text.replace('name="tier" value="formal"', 'name="tier" value="smoke"', 1),
    "another clause": lambda text: re.sub(r'(name="clause" value=")', r"\g<1>Not ", text, count=1),
    "another cell": lambda text: text.replace('name="cell" value="', 'name="cell" value="x', 1),
    "an unknown gate": lambda text: text.replace('name="gate" value="', 'name="gate" value="x', 1),
    "a total": lambda text: re.sub(r'tests="\d+"', 'tests="1"', text, count=1),
    "a property more": lambda text: text.replace("<properties>", '<properties><property name="x" value="y" />', 1),
    "a document type": lambda text: text.replace("<testsuites", '<!DOCTYPE x [<!ENTITY a "b">]><testsuites', 1),
    "a type behind an instruction": lambda text: text.replace(
        "<testsuites", "<?x <testcase ?><!DOCTYPE x><testsuites", 1
    ),
    "no XML": lambda text: text[: len(text) // 2],
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_xml_is_found_under_a_new_seal(edit, run, judge):
    """The file's digest is renewed in the audit record: cases, accounts and the protocol's rows no longer agree."""
    text = (run / "junit.xml").read_text()
    edited = EDITS[edit](text)
    assert edited != text
    (run / "junit.xml").write_text(edited)
    reseal(run)
    verdict, lines = judge(run)
    assert verdict == "fails"
    assert "junit" in {one.step for one in lines}
    assert "junit.xml" in names(lines) or "audit.json" in names(lines)


def test_a_failing_case_of_no_gate_is_found_in_a_session_that_passed(run, judge):
    """Totals and books count it; a session with such a case passed nothing."""
    text, audit = (run / "junit.xml").read_text(), json.loads((run / "audit.json").read_bytes())
    case = '<testcase classname="x" name="x" time="0"><failure message="x" /></testcase>'
    count = audit["reported"] + 1
    text = text.replace("<testcase ", f"{case}<testcase ", 1).replace('failures="0"', 'failures="1"', 1)
    (run / "junit.xml").write_text(text.replace(f'tests="{count - 1}"', f'tests="{count}"', 1))
    reseal(run, collected=count, reported=count)
    verdict, lines = judge(run)
    assert verdict == "fails"
    assert "junit: junit.xml: failures of a session that passed: expected 0, found 1" in names(lines)


def of_gate(audit, name, **changes):
    """The accounts with one changed."""
    return [one | changes if one["id"] == name else one for one in audit["gates"]]


AUDITS = {
    "a larger denominator": lambda a: {"gates": of_gate(a, "independent_replay", passed=128, registered=128)},
    "fewer passed": lambda a: {"gates": of_gate(a, "observations", passed=3)},
    "a gate left out": lambda a: {"gates": a["gates"][1:]},
    "another clause": lambda a: {"gates": of_gate(a, "observations", clause="x")},
    "another result": lambda a: {"result_name": "benchmark"},
    "a port": lambda a: {"port": True},
    "another tier": lambda a: {"tier": "smoke"},
    "no such tier": lambda a: {"tier": "grand"},
    "another run": lambda a: {"run_sha256": "0" * 64},
    "another environment": lambda a: {"environment_sha256": "0" * 64},
    "another run ID": lambda a: {"run_id": "formal-9"},
    "another registered ID": lambda a: {"registered_id": "x"},
    "open books that passed": lambda a: {"books": ["a worker died"]},
    "errors that passed": lambda a: {"errors": 1},
    "cases not reported": lambda a: {"reported": a["reported"] - 1},
    "no smoke": lambda a: {"smoke": None},
    "a deviation": lambda a: {"deviations": [{"field": "placement", "registered": "a", "actual": "b"}]},
}


@pytest.mark.parametrize("change", AUDITS)
def test_a_forged_audit_record_is_found_under_its_own_digest(change, run, judge):
    """What it says of gates, run and session is held against XML, protocol and the run's files."""
    (run / "claims.json").unlink()
    write_audit(run, **AUDITS[change](json.loads((run / "audit.json").read_bytes())))
    verdict, lines = judge(run)
    assert verdict == "fails"
    assert "audit.json" in names(lines) or "junit.xml" in names(lines)


@pytest.mark.parametrize(
    "name", ["protocol.toml", "manifest.json", "FILES.sha256", "CANONICAL.sha256", "PROMPTS.sha256"]
)
def test_an_altered_protocol_file_is_found(name, whole_run, tree, judge):
    """The protocol's own digests come first."""
    flip(tree / "fixtures/protocols" / COMPLETION / name, 0 if name == "protocol.toml" else None)
    verdict, lines = judge(whole_run)
    assert verdict == "fails"
    assert COMPLETION in names(lines)


def test_an_altered_registration_of_claims_is_found(whole_run, tree, judge):
    """claims.json names its digest, and is made again from it."""
    path = tree / "fixtures/protocols" / COMPLETION / "claims.toml"
    path.write_text(f"{path.read_text()}\n# more\n")
    verdict, lines = judge(whole_run)
    assert verdict == "fails"
    assert "claims.json" in names(lines)


def test_an_altered_frozen_baseline_is_found(whole_run, tree, judge):
    """The baseline's cells come from frozen files."""
    path = sorted((tree / "snapshots" / MINI / "formal").glob("*-greedy.json"))[0]
    flip(path)
    verdict, lines = judge(whole_run)
    assert verdict == "fails"
    assert path.name in names(lines)


def test_frozen_results_are_compared(run, tree, judge):
    """An accepted run is its own frozen result; a changed snapshot or a lost one is named."""
    accept(run, Places(tree))
    assert judge(run) == ("holds", [])
    folder = tree / "snapshots" / COMPLETION / "formal"
    for path in (
        folder / "index.json",
        sorted(folder.glob("*-verdicts.json"))[0],
        sorted(folder.glob("*-greedy.json"))[0],
    ):
        data = path.read_bytes()
        flip(path)
        verdict, lines = judge(run)
        path.write_bytes(data)
        assert verdict == "fails"
        assert path.name in names(lines) or path.stem in names(lines)


def test_the_smoke_run_is_part_of_it(whole_run, judge):
    """A byte of its journal, its run or its audit record."""
    smoke = whole_run.parent / json.loads((whole_run / "smoke.json").read_bytes())["run_id"]
    for path in (sorted((smoke / "journal").glob("*.json"))[0], smoke / "run.json", smoke / "audit.json"):
        data = path.read_bytes()
        flip(path)
        verdict, lines = judge(whole_run)
        path.write_bytes(data)
        assert verdict == "fails"
        assert "smoke" in {one.step for one in lines}


@pytest.mark.parametrize("name", ["audit.json", "audit.json.sha256", "junit.xml"])
def test_an_earlier_judgement_is_covered(name, judged_twice, judge):
    """A flipped byte in each file of it."""
    path = judged_twice / "judgements/01" / name
    data = path.read_bytes()
    flip(path)
    verdict, lines = judge(judged_twice)
    path.write_bytes(data)
    assert verdict == "fails"
    assert f"judgements/01/{name}" in names(lines)


def test_without_an_audit_record_nothing_can_be_checked(run, judge):
    """Nobody judged it."""
    (run / "audit.json").unlink()
    verdict, lines = judge(run)
    assert (verdict, lines[0].where) == ("not checkable", "audit.json")


def test_a_record_of_another_format_cannot_be_checked(run, judge):
    """Its digest holds, and this version doesn't know its fields."""
    write_audit(run, more=1)
    verdict, lines = judge(run)
    assert verdict == "not checkable"
    assert "version of the harness" in names(lines)


def test_an_unknown_protocol_cannot_be_checked(whole_run, tree, judge):
    """The tree lacks it."""
    shutil.rmtree(tree / "fixtures/protocols" / COMPLETION)
    assert judge(whole_run)[0] == "not checkable"


def test_a_protocol_that_was_edited_is_refused(whole_run, tree, judge, tmp_path):
    """Edited with its digest files: runs of the tree say which was meant. A run elsewhere is of another protocol."""
    folder = tree / "fixtures/protocols" / COMPLETION
    path = folder / "protocol.toml"
    path.write_text(re.sub(r'^title = ".*"', 'title = "Another"', path.read_text(), flags=re.MULTILINE))
    manifest = decode_json(
        (folder / "manifest.json").read_bytes(), Manifest, where=folder, error=ProtocolError, todo=""
    )
    for name, text in digest_files(folder, read_protocol(path), manifest).items():
        (folder / name).write_text(text)
    verdict, lines = judge(whole_run)
    assert verdict == "fails"
    assert "digest in force, and of reports/" in names(lines)
    with_no_runs = shutil.copytree(tree, tmp_path / "tree", symlinks=True, ignore=shutil.ignore_patterns("reports"))
    elsewhere = verify(whole_run, Places(with_no_runs))
    assert (elsewhere.verdict, elsewhere.lines[0].where) == ("not checkable", f"protocol {COMPLETION}: digest")


def test_without_the_smoke_run_beside_it_a_part_cannot_be_checked(whole_run, judge):
    """The rest is checked all the same, and nothing fails."""
    smoke = whole_run.parent / json.loads((whole_run / "smoke.json").read_bytes())["run_id"]
    smoke.rename(smoke.with_name("elsewhere"))
    try:
        verdict, lines = judge(whole_run)
    finally:
        smoke.with_name("elsewhere").rename(smoke)
    assert verdict == "not checkable"
    assert {one.state for one in lines} == {"not checkable"}


def test_claims_that_were_not_written_are_no_fault(run, judge):
    """They follow from the rest."""
    (run / "claims.json").unlink()
    assert judge(run) == ("holds", [])


def test_a_report_that_cannot_be_made_again_is_said(run, judge):
    """Until there is a way to make it, it isn't vouched for."""
    (run / "report.html").write_text("<p>128/128</p>")
    verdict, lines = judge(run)
    assert (verdict, lines[0].where) == ("not checkable", "report.html")


def test_a_smoke_run_holds_by_itself(whole_run):
    """Its tier has no parts, no smoke record and no frozen results."""
    smoke = whole_run.parent / json.loads((whole_run / "smoke.json").read_bytes())["run_id"]
    found = verify(smoke, Places(whole_run.parents[2]))
    assert found.verdict == "holds", found.lines
    assert {one.step for one in found.lines if one.state == "none"} >= {"parts", "smoke"}
