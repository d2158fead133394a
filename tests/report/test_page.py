"""report.html: what it says, that it is exact, safe and whole by itself, and the same wherever it is made."""

import dataclasses
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from harness.__main__ import app
from harness.canon import canonical_bytes, unescaped
from harness.claims.view import judged_view
from harness.errors import JournalError, SnapshotError
from harness.journal.folder import RunFolder
from harness.places import Places, places
from harness.protocols.load import load_protocol
from harness.records.claims import Difference
from harness.report.cells import anchor
from harness.report.make import frozen_words, page_of, report_bytes, write_report
from harness.report.render import render
from harness.report.visible import passage
from harness.snapshots.store import read_audit, read_frozen, run_files
from harness.verify.ground import Ground
from harness.verify.page import report_holds

ORDER = (
    "claims",
    "prohibited",
    "deviations",
    "gates",
    "attempts",
    "history",
    "environment",
    "ladder",
    "ledgers",
    "edges",
    "diagnostics",
    "cells",
    "records",
)
LOADING = (
    "src",
    "href",
    "srcset",
    "data",
    "action",
    "formaction",
    "poster",
    "background",
    "cite",
    "ping",
    "xlink:href",
)


def words(element) -> str:
    """An element's text, runs of space as one."""
    return " ".join("".join(element.itertext()).split())


def section(tree, name):
    """The section with that ID."""
    return tree.find(f".//section[@id='{name}']")


def test_sections_stand_in_order(hand_tree):
    """Claims first, prohibited conclusions next, records last."""
    assert [one.get("id") for one in hand_tree.iter("section")] == list(ORDER)


def test_the_page_says_that_it_is_unsigned(hand_tree):
    """Whatever lies in the folder, and how a reader learns who signed the run."""
    said = words(section(hand_tree, "records"))
    assert "This page carries no signature." in said
    assert "python -m harness verify RUN --signers FILE" in said


def test_every_output_is_there_exactly(hand_tree, hand_view, reading):
    """Each cell's page holds its text, whatever the text is; a megabyte line too."""
    found = {}
    for unit in hand_view.run.units:
        for cell in unit.cells:
            body = hand_tree.find(f".//div[@id='{anchor(unit.domain, unit.index, unit.replicate, cell.condition)}']")
            found[unit.source_id, cell.condition] = reading.passage_in(body.find("div[@class='output']")) == unescaped(
                cell.text_escaped
            )
    assert len(found) == 128
    assert [key for key, same in found.items() if not same] == []


def test_every_prompt_is_there_with_its_edit_marked(hand_tree, hand_view):
    """Each cell's IDs in order; the mark is on the edited position's ID and nowhere in an official sequence."""
    for unit in hand_view.run.units:
        for cell in unit.cells:
            body = hand_tree.find(f".//div[@id='{anchor(unit.domain, unit.index, unit.replicate, cell.condition)}']")
            ids = body.find(".//div[@class='ids']")
            assert words(ids).split() == [str(one) for one in cell.prompt_ids]
            assert [words(one) for one in ids.iter("mark")] == [str(edit.replaced) for edit in cell.edits]
            assert len(list(body.find("div[@class='prompt']").iter("mark"))) == len(cell.edits)


def test_an_output_is_never_markup(hand_tree):
    """One script, which is the page's; no element that any output names."""
    assert len(list(hand_tree.iter("script"))) == 1
    assert [
        one.tag for one in hand_tree.iter() if one.tag in ("img", "iframe", "object", "embed", "link", "base", "audio")
    ] == []
    assert [
        name for one in hand_tree.iter() if isinstance(one.tag, str) for name in one.attrib if name.startswith("on")
    ] == []
    assert [one for one in hand_tree.iter() if not isinstance(one.tag, str)] == []  # comments


def test_a_template_in_an_output_is_text(hand_html):
    """Nothing in it is evaluated."""
    assert "{{ 7*7 }}" in hand_html


def test_nothing_is_loaded(hand_tree, hand_html):
    """No reference leaves the page, by attribute or by style, and the policy allows none."""
    references = [
        one.get(name)
        for one in hand_tree.iter()
        if isinstance(one.tag, str)
        for name in LOADING
        if one.get(name) is not None
    ]
    assert [one for one in references if not one.startswith("#")] == []
    styles = "".join(one.text for one in hand_tree.iter("style"))
    assert "url(" not in styles
    assert "@import" not in styles
    assert [one for one in hand_tree.iter() if isinstance(one.tag, str) and "style" in one.attrib] == []
    assert re.findall(r"https?://", hand_html) == []
    policy = hand_tree.find(".//meta[@http-equiv='Content-Security-Policy']").get("content")
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy


def test_every_reference_within_the_page_resolves(hand_tree):
    """IDs are unique, and every link, clip path, pattern and label names one of them."""
    ids = [one.get("id") for one in hand_tree.iter() if isinstance(one.tag, str) and one.get("id")]
    assert len(ids) == len(set(ids))
    named = [one.get("href")[1:] for one in hand_tree.iter() if isinstance(one.tag, str) and one.get("href")]
    named += re.findall(
        r"url\(#([^)]+)\)",
        " ".join(v for one in hand_tree.iter() if isinstance(one.tag, str) for v in one.attrib.values()),
    )
    named += " ".join(one.get("aria-labelledby") or "" for one in hand_tree.iter() if isinstance(one.tag, str)).split()
    assert set(named) <= set(ids)


def test_structure_for_a_reader_without_eyes_or_mouse(hand_tree):
    """One h1, landmarks, a language, headings without gaps, table heads with a scope, names on what scrolls."""
    assert len(list(hand_tree.iter("h1"))) == 1
    assert [len(list(hand_tree.iter(one))) for one in ("header", "nav", "main", "footer")] == [1, 1, 1, 1]
    assert hand_tree.getroot().get("lang") == "en"
    assert [one for one in hand_tree.iter("th") if one.get("scope") not in ("col", "row")] == []
    assert [one for one in hand_tree.iter("table") if one.find("caption") is None] == []
    scrolled = [one for one in hand_tree.iter("div") if one.get("class") in ("scroll", "text")]
    assert [one for one in scrolled if not (one.get("aria-label") and one.get("tabindex") == "0")] == []


def test_every_chart_has_its_words_and_its_table(hand_tree):
    """A title and a description in the drawing, and the numbers behind it."""
    figures = list(hand_tree.iter("figure"))
    assert len(figures) == 2
    for one in figures:
        drawing = one.find("svg")
        assert (drawing.get("role"), words(drawing.find("title")) != "", words(drawing.find("desc")) != "") == (
            "img",
            True,
            True,
        )
        assert one.find(".//table") is not None
        assert len(list(drawing.iter("text"))) > 5


def test_the_ladder_is_the_ledgers_rows(hand_tree, hand_view):
    """Each group's five classes sum to its cells, and a class is the ledger's."""
    rows = [[words(one) for one in row] for row in section(hand_tree, "ladder").find(".//tbody")]
    assert len(rows) == 32
    for domain, condition, *found in rows:
        cells = [one for one in hand_view.ledger.cells if (one.domain, one.condition) == (domain, condition)]
        assert {one.split("/")[1] for one in found} == {str(len(cells))}
        assert sum(int(one.split("/")[0]) for one in found) == len(cells)
        assert found[0] == f"{sum(one.completion == 'NATURAL_EOS' for one in cells)}/{len(cells)}"


def test_each_comparison_leads_to_its_two_cells(hand_tree, hand_view):
    """A row an edge of the ledger, with links to both sides."""
    rows = section(hand_tree, "edges").findall(".//tbody")[-1]
    assert len(rows) == len(hand_view.ledger.edges) == 160
    for row, edge in zip(rows, hand_view.ledger.edges, strict=True):
        wanted = [anchor(edge.domain, edge.index, edge.replicate, one) for one in (edge.left, edge.right)]
        assert [one.get("href") for one in row.iter("a")] == [f"#{one}" for one in wanted]


def test_claims_are_those_of_the_record(hand_tree, hand_page):
    """State, statement and figures of each; all prohibited conclusions in the protocol's words."""
    claims, said = hand_page.claims, words(section(hand_tree, "claims"))
    for one in claims.permitted:
        assert f"{one.id} {one.status}" in said
        assert one.heading != "results" or one.statement in said
    assert [words(one) for one in section(hand_tree, "prohibited").iter("li")] == [
        f"{one.id}: {one.text}" for one in claims.prohibited
    ]
    assert len(section(hand_tree, "deviations").find(".//tbody")) == len(claims.differences)


def test_what_is_conditioned_on_completion_stands_under_diagnostics_alone(hand_tree, hand_page):
    """Neither its statement nor its counts nor its name is anywhere else."""
    claim = next(one for one in hand_page.claims.permitted if one.heading == "diagnostics")
    for one in hand_tree.iter("section"):
        text = words(one)
        if one.get("id") not in ("diagnostics", "cells"):
            assert "completion conditioned" not in text
            assert claim.statement == "" or claim.statement not in text
            assert all(figure.source not in text for figure in claim.figures)
    said = words(section(hand_tree, "diagnostics"))
    assert "completion conditioned numeric exact" in said
    assert claim.text in said or claim.statement in said


def test_gates_say_their_fractions_and_failures(hand_tree, reading):
    """The gate that isn't whole is named at a glance, with the rows that don't hold."""
    said = words(section(hand_tree, "gates"))
    assert f"{reading.SHORT} 157/160" in said
    assert f"{reading.SHORT}: 3 named rows don't hold" in said
    assert "not passed" in words(hand_tree.find(".//header"))


def test_a_port_says_so_in_its_name(tmp_path, reading):
    """In the heading, the title and beside the protocol."""
    view = judged_view(reading.write_run(tmp_path / "port", port=True))
    tree = reading.parsed(report_bytes(view).decode())
    assert words(tree.find(".//h1")).endswith("(port)")
    assert "(port)" in words(tree.find(".//title"))
    assert "port: not the registered run" in words(tree.find(".//header"))


def test_random_weights_are_said_before_any_number(tmp_path, reading):
    """In the heading, with what such a run can show; a page of another port says nothing of the kind."""
    run = reading.write_run(tmp_path / "port", port=True)
    assert "random" not in words(reading.parsed(report_bytes(judged_view(run)).decode()).find(".//header"))
    spec = json.loads((run / "spec.json").read_bytes())
    spec["deviations"] = [{"field": "checkpoint", "registered": "nano", "actual": "nano-random, random weights (cpu)"}]
    (run / "spec.json").write_text(json.dumps(spec))
    folder = RunFolder(run)
    reading.write_audit(folder, msgspec.structs.replace(read_audit(folder), files=run_files(folder)))
    tree = reading.parsed(report_bytes(judged_view(run)).decode())
    assert words(tree.find(".//h1")).endswith("(port) on nano-random, random weights")
    said = words(tree.find(".//header"))
    assert "nano-random, drawn at random, not nano. Nothing on this page is an output of the registered model" in said
    assert "Random weights rarely end by themselves" in said
    assert "exactness gates" in said


def test_a_figure_without_its_denominator_is_nowhere(hand_tree):
    """In ledgers and gates every count is n/m or a sum over its number of terms."""
    for table in section(hand_tree, "ledgers").iter("table"):
        for row in table.iter("tr"):
            cells = [words(one) for one in row.iter("td")]
            assert [one for one in cells if re.fullmatch(r"\d+", one)] == []


def test_bytes_are_the_same_in_another_process(hand_run, hand_html, tmp_path):
    """Another hash seed, time zone, language, folder and user settings of matplotlib."""
    run = shutil.copytree(hand_run, tmp_path / "elsewhere" / "renamed")
    settings_folder = tmp_path / "settings"
    settings_folder.mkdir()
    (settings_folder / "matplotlibrc").write_text("font.size: 17\naxes.facecolor: red\n", encoding="ascii")
    for seed, zone, language in (("1", "Asia/Shanghai", "C"), ("4242", "America/New_York", "de_DE.UTF-8")):
        words_of_language = {"LANG": language, "LC_ALL": language, "MPLCONFIGDIR": str(settings_folder)}
        environment = os.environ | words_of_language | {"PYTHONHASHSEED": seed, "TZ": zone}
        command = [sys.executable, "-m", "harness", "report", str(run)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert (run / "report.html").read_bytes() == hand_html.encode()


def test_no_path_and_no_clock_is_in_it(hand_run, hand_html):
    """The folder may move."""
    assert str(hand_run.parent) not in hand_html
    assert re.findall(r"\b\d\d:\d\d:\d\d\b", hand_html) == []


def test_writing_it_leaves_the_run_as_judged(hand_run, tmp_path):
    """report.html isn't a file of the run that its audit record would miss."""
    run = shutil.copytree(hand_run, tmp_path / "run")
    first = write_report(run).read_bytes()
    assert write_report(run).read_bytes() == first


ABSENT = """
import importlib.abc, socket, sys
from pathlib import Path

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {absent!r}:
            raise ImportError(f"{{name}} can't be imported here")

def refused(*arguments, **named):
    raise OSError("no network here")

sys.meta_path.insert(0, Absent())
socket.socket.connect = socket.getaddrinfo = refused
from harness.report.make import write_report
write_report(Path({run!r}))
"""


def test_it_needs_no_model_no_engine_and_no_network(hand_run, hand_html, tmp_path):
    """Made where torch and docker can't be imported and no connection can be opened."""
    run = shutil.copytree(hand_run, tmp_path / "run")
    absent = ("torch", "transformers", "accelerate", "safetensors", "docker", "pyarrow", "pytest")
    command = [sys.executable, "-c", ABSENT.format(absent=absent, run=str(run))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (run / "report.html").read_bytes() == hand_html.encode()


def test_frozen_results_are_named_by_their_digest(hand_view):
    """Of the same run.json, of another one, or none when the run was judged."""
    assert page_of(hand_view).frozen.startswith("unfrozen")
    for run_sha256, said in (("0" * 64, "20 files, are of a run.json with digest "), (None, "with this digest")):
        index = read_frozen("nano-completion").index
        audit = msgspec.structs.replace(hand_view.audit, frozen=True, run_sha256=run_sha256 or index.run_sha256)
        assert said in frozen_words(dataclasses.replace(hand_view, audit=audit), None)


def test_verify_makes_it_again(hand_run, tmp_path):
    """The page as it was written holds; with one other byte, or of another generator, it doesn't."""
    run = shutil.copytree(hand_run, tmp_path / "run")
    ground = Ground(load_protocol("nano-completion"), RunFolder(run), read_audit(RunFolder(run)), places())
    assert [one.state for one in report_holds(ground)] == ["none"]
    data = write_report(run).read_bytes()
    assert [one.state for one in report_holds(ground)] == ["holds"]
    (run / "report.html").write_bytes(data.replace(b"SUPPORTED", b"SUPPORTEd", 1).replace(b"REFUTED", b"REFUTEd", 1))
    assert [one.state for one in report_holds(ground)] == ["fails"]
    (run / "report.html").write_bytes(data.replace(b"matplotlib 3", b"matplotlib 2", 1))
    assert [one.state for one in report_holds(ground)] == ["not checkable"]


def test_the_verb_says_where_it_wrote(hand_run, tmp_path):
    """The path on stdout; a HarnessError as one line and exit code 1."""
    run = shutil.copytree(hand_run, tmp_path / "run")
    done = CliRunner().invoke(app, ["report", str(run)])
    assert (done.exit_code, done.stdout) == (0, f"{run / 'report.html'}\n")
    (run / "run.json").write_bytes(b"{}")
    done = CliRunner().invoke(app, ["report", str(run)])
    assert done.exit_code == 1
    assert "run.json" in done.stderr


def test_without_matplotlib_the_verb_says_what_to_install(hand_run, monkeypatch):
    """One line, and no traceback."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "matplotlib" else find(name, *more)
    )
    done = CliRunner().invoke(app, ["report", str(hand_run)])
    assert done.exit_code == 1
    assert ".[report]" in done.stderr


@pytest.mark.parametrize("name", ["run.json", "ledger.json", "statistics.json", "environment.json"])
def test_an_altered_run_has_no_report(hand_run, tmp_path, name):
    """What the audit record doesn't speak for isn't shown."""
    run = shutil.copytree(hand_run, tmp_path / "run")
    data = bytearray((run / name).read_bytes())
    data[len(data) // 2] ^= 1
    (run / name).write_bytes(bytes(data))
    with pytest.raises(SnapshotError, match=name):
        write_report(run)
    assert not (run / "report.html").exists()


def test_claims_on_disk_that_say_otherwise_are_refused(hand_run, tmp_path):
    """The page never has claims of its own."""
    run = shutil.copytree(hand_run, tmp_path / "run")
    view = judged_view(run)
    claims = page_of(view).claims
    (run / "claims.json").write_bytes(canonical_bytes(claims))
    assert report_bytes(view) == report_bytes(judged_view(hand_run))
    (run / "claims.json").write_bytes(canonical_bytes(msgspec.structs.replace(claims, passed=True)))
    with pytest.raises(JournalError, match=r"claims\.json"):
        report_bytes(view)


def test_without_registered_claims_nothing_is_supported(hand_run, tmp_path, reading):
    """A protocol without claims.toml: each permitted conclusion NOT CHECKED, prohibited ones as always."""
    tree, here = Places(tmp_path), places()
    shutil.copytree(here.protocols / "nano-completion", tree.protocols / "nano-completion")
    (tree.protocols / "nano-completion" / "claims.toml").unlink()
    tree.models.parent.mkdir(parents=True, exist_ok=True)
    tree.models.symlink_to(here.models, target_is_directory=True)
    view = judged_view(hand_run, tree)
    html = reading.parsed(report_bytes(view, tree).decode())
    claims = words(section(html, "claims"))
    assert claims.count("NOT CHECKED") == len(view.loaded.protocol.permitted)
    assert "SUPPORTED" not in claims
    assert "No claims are registered beside this protocol" in claims
    assert len(list(section(html, "prohibited").iter("li"))) == len(view.loaded.protocol.prohibited)
    assert len(section(html, "deviations").find(".//tbody")) > 0


def test_a_part_that_is_not_there_is_named(hand_run, tmp_path, reading):
    """A run that ended before it was assembled has a page: gates, what is prohibited, what is missing and why."""
    run = reading.unfinished(shutil.copytree(hand_run, tmp_path / "run"))
    tree = reading.parsed(write_report(run).read_text(encoding="utf-8"))
    said = words(tree.find(".//header"))
    assert "Not there: ledger: expected a readable ledger, found No such file or directory" in said
    assert "environment and placement: expected a readable assembled run" in said
    assert [one.get("id") for one in tree.iter("section")] == [
        "claims", "prohibited", "deviations", "gates", "attempts", "history", "diagnostics", "cells", "records",
    ]  # fmt: skip
    assert "SUPPORTED" not in words(section(tree, "claims"))


@pytest.fixture(scope="module")
def page_of_text(hand_page, reading):
    """`page_of_text(text)`: the tree of a page in which one output, one fact, a title and a deviation are that text."""

    def make(text):
        cell = dataclasses.replace(
            hand_page.cells[0], title=text, facts=(("name", text),), output=passage(text, {}), prompt_text=None,
            prompt_ids=passage("", {}), generated_ids=None,
        )  # fmt: skip
        found = (Difference(kind="port", field="f", registered="r", found=text),)
        claims = msgspec.structs.replace(hand_page.claims, permitted=(), differences=found)
        page = dataclasses.replace(
            hand_page, cells=(cell,), cell_maps=(), results=(), diagnostics=None, environment=None, claims=claims
        )
        return reading.parsed(render(page))

    return make


@settings(max_examples=20)
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_any_text_anywhere_is_shown_exactly(page_of_text, reading, text):
    """Read back exactly from each place, and the page's own elements stay as they are."""
    tree = page_of_text(text)
    assert reading.passage_in(tree.find(".//div[@class='output']")) == text
    assert reading.text_in(tree.find(".//dd")) == text
    assert reading.text_in(tree.find(".//details[@class='cell']/summary/span")) == text
    assert reading.text_in(section(tree, "deviations").findall(".//td")[-1]) == text
    assert len(list(tree.iter("script"))) == 1
    short = ["claims", "prohibited", "deviations", "gates", "attempts", "history", "cells", "records"]
    assert [one.get("id") for one in tree.iter("section")] == short
