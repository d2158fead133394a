"""A write-up against a run: what it doesn't support is named with its line; what it supports is left alone."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.claims.judge import claims_of
from harness.claims.quoted import quoted
from harness.claims.text import plain, sentences
from harness.claims.writeup import check_text
from harness.records.run import Deviation

ZERO_WIDTH = "\u200b"


@pytest.fixture
def check(make_view, registration):
    """`check(text, **changes)`: (line, what, found) of each finding."""

    def run(text, **changes):
        view = make_view(**changes)
        findings = check_text(text, view, claims_of(view, registration), registration)
        return [(one.line, one.what, one.found) for one in findings]

    return run


HOLDS = [
    "32/32 cells were replayed exactly.",
    "32 of 32 cells were reproduced in a fresh process.",
    "32 of the 128 cells were replayed exactly.",
    "全部 32 格复现。",
    "All replayed cells are exact: 32/32.",
    "Not all cells were replayed.",
    "All cells are listed.",
    "32 / 32 长序列复现。",
    "Natural EOS: 112/128.",
    "自然 EOS 112 / 128，截断 16 / 128。",
    "128 格中 112 格自然结束。",
    "87.5% of the 128 cells ended by EOS.",
    "Natural EOS in 87.50 % of cells.",
    "Mathematics: strict 24/32.",
    "Prompt hashes: 128/128.",
    "prompt hash 128/128; replay 32/32",
    "16 sources under 8 conditions, at most 512 new tokens.",
    "一共 16 条 source，8 个条件。",
    "| condition | natural EOS |\n|---|---|\n| s0_x | 8/16 |\n| s0_eos | 16/16 |",
    "Run under torch 2.13.0 with temperature 0.3, clause 4.2, on 2026-11-30, see 2026/11/30.",
    "HumanEval/31, nano-math/0128 and `gsm8k/test/1069`.",
    "第 1 条 source。",
    "只能写“32 / 32 长序列复现”，不能写成 128 / 128 独立复跑。",
    "32 of 32 were replayed; this can't be read as 128/128 replayed.",
    "Of 128 cells, 112 ended by EOS and 16 were cut at the budget of 512 tokens.",
    "在 128 格中，112 格自然结束，16 格被截断。",
    "复跑只覆盖 32 格，而不是 128 格。",
    "The replay is of 32 cells, not 128 cells.",
    "All cells that ended by EOS are listed.",
    "所有截断的格列于表 3。",
    "| outcome | cells |\n|---|---|\n| natural EOS | 112 |",
    "EOS: 112.",
    "| EOS token ID | 1 |",
    "All 128 cells returned, and 112 ended by EOS.",
    "128 cells were generated, 32 cells in each domain and 16 cells under each condition.",
    "32 cells of mathematics were generated; the smoke grid has 32 cells.",
    "每域 32 格，一共 128 格。",
    "Mathematics: twenty-four correct.",
    "Thirty-two of thirty-two cells were replayed.",
    "数学：二十四道正确。",
    "一百二十八格中一百一十二格自然结束。",
    "Two runs of one layer, three stages and four conditions: see the sixth table.",
    "唯一一条来源，统一记录一次，分两个阶段。",
    "Problem 3 passed its container check.",
    "More than half of the cells ended by EOS, nearly all programs returned.",
    "Most mathematics answers were correct, three quarters of them strict.",
    "A quarter of the cells were replayed.",
    "Fewer than half were cut; most cells were not cut.",
    "超过一半的格自然结束。",
    "At most one answer is kept, and most of the time went into generation.",
    "All cells ran under CPU offload.",
    "No cell stopped otherwise.",
]


@pytest.mark.parametrize("text", HOLDS)
def test_what_the_run_supports_is_left_alone(text, check):
    """Figures in either language, alone and in tables."""
    assert check(text) == []


OVERSTATED = [
    ("256/256 reproduced.", "256/256"),
    ("128/128 cells were replayed.", "128/128"),
    ("Replay: 128 of 128.", "128 of 128"),
    ("We reproduced the outputs: all of them, 128/128, are equal.", "128/128"),
    ("All 128 cells were reproduced.", "All 128"),
    ("128 cells were replayed exactly.", "128 cells"),
    ("全部 128 格独立复跑。", "全部 128"),
    ("复现了 128 格。", "128 格"),
    ("All cells were reproduced.", "All cells"),
    ("We replayed every one of the runs, and all outputs are equal.", "all outputs"),
    ("全部输出都复现。", "全部输出"),
    ("Replay reached 100 % in 1,280 cells.", "1,280 cells"),
    ("Natural EOS 128/128.", "128/128"),
    ("128 outputs ended by EOS.", "128 outputs"),
    ("90% of cells ended by EOS.", "90%"),
    ("百分之 90 自然结束。", "百分之 90"),
    ("128 格中 120 格自然结束。", "128 格中 120"),
    ("24–32 of 32 programs passed.", "24–32 of 32"),
    ("Between 24 and 32 of 32 programs passed.", "24 and 32 of 32"),
    ("数学严格 32／32。", "32/32"),
    ("复现 １２８／１２８。", "128/128"),
    ("Mean length 999.5 tokens.", "999.5 tokens"),
    ("352 outputs were generated.", "352 outputs"),
    ("English natural EOS 112/128.", "112/128"),
    ("s0_x natural EOS 16/16.", "16/16"),
    ("Every cell ended by EOS.", "Every cell"),
    ("所有格都自然结束。", "所有格"),
    ("All answers are correct.", "All answers"),
    ("The model solved every mathematics problem.", "every mathematics problem"),
    ("The full grid of 128 cells was regenerated bit for bit in a second process.", "128 cells"),
    ("The replication was complete: no cell differed in any of the 128 cells.", "128 cells"),
    ("The whole experiment was reproduced.", "The whole experiment"),
    ("整个实验重新运行后结果完全一致。", "整个实验"),
    ("所有结果均可复现。", "所有结果"),
    ("EOS: 113", "113"),
    ("| outcome | n |\n|---|---|\n| natural EOS | 113 |", "113"),
    ("| replay | 128 |", "128"),
    ("32/32 of mathematics cells are correct.", "32/32"),
    ("Mathematics: thirty correct.", "thirty"),
    ("Mathematics: 30 correct.", "30 correct"),
    ("Thirty-one of the thirty-two programs passed.", "Thirty-one"),
    ("One hundred and twenty outputs ended by EOS.", "One hundred and twenty"),
    ("数学三十道正确。", "三十道"),
    ("复现了一百二十八格。", "一百二十八格"),
    ("百分之九十自然结束。", "百分之九十"),
    ("Nearly all cells ended by EOS.", "Nearly all"),
    ("Most cells were cut.", "Most cells"),
    ("Half of the cells were cut by the budget.", "Half of the cells"),
    ("Less than half ended by EOS.", "Less than half"),
    ("No cell was cut.", "No cell"),
    ("大多数格被截断。", "大多数"),
    ("不到一半的格自然结束。", "不到一半"),
    ("Most cells were replayed.", "Most cells"),
    ("The whole grid was reproduced in a fresh process.", "The whole grid"),
    ("整个网格逐位重放。", "整个网格"),
    ("All cells gave the same tokens under a second placement.", "All cells"),
    ("Everything was replayed.", "Everything"),
]


@pytest.mark.parametrize(("text", "found"), OVERSTATED)
def test_what_the_run_does_not_support_is_named(text, found, check):
    """Overstated replays, totals, percentages, ranges and groups, with separators and full-width digits."""
    figures = [one for one in check(text) if one[1] == "figure"]
    assert any(found.split(" tokens")[0] in one[2] for one in figures), figures


@pytest.mark.parametrize("count", [16, 32, 64, 96, 256, 352])
@pytest.mark.parametrize(
    "text", ["All {} cells returned.", "We generated {} cells.", "{} cells were generated.", "共生成 {} 格。"]
)
def test_a_run_has_its_own_cells_and_no_others(text, count, check):
    """Sizes of other grids, of gates and of groups are no size of this run's grid."""
    assert [one[1] for one in check(text.format(count))] == ["figure"]
    assert check(text.format(128)) == []


def test_another_part_has_its_size_under_its_own_name_only(check):
    """A domain's cells, a condition's and the replay's grid's, each beside its name."""
    for text in ("{} cells of mathematics were generated.", "{} cells in each domain.", "The smoke grid has {} cells."):
        assert check(text.format(32)) == []
        assert [one[1] for one in check(text.format(16))] == ["figure"]
    assert check("16 cells were generated under s0_x.") == []


OVERCLAIMS = [
    ("greedy-as-sampling", "Since greedy decoding replays exactly, sampling is stable too"),
    ("greedy-as-sampling", "Sampling would give the same result"),
    ("greedy-as-sampling", "采样也是稳定的"),
    ("benchmark", "The four sources are representative of the domain"),
    ("benchmark", "HumanEval pass@1: 24/32"),
    ("eos-better", "The answer improves with EOS"),
    ("eos-better", "The model answers better after EOS"),
    ("eos-better", "加了 EOS 之后模型答得更准"),
    ("budget-suffices", "512 tokens was plenty"),
    ("budget-suffices", "This is everything it can do"),
]


@pytest.mark.parametrize(("rule", "text"), OVERCLAIMS)
def test_a_conclusion_in_other_words_is_found(rule, text, check):
    """And left alone where it is denied."""
    assert f"prohibited {rule}" in [one[1] for one in check(f"{text}.")]
    assert check(f"## Prohibited conclusions\n\n- {text}.") == [] or "pass@1" in text


@pytest.mark.parametrize(
    "text",
    [
        "It doesn't show that sampling is stable.",
        "Sampling robustness was not measured.",
        "EOS is a token that ends a row.",
        "The four sources were drawn by rank and are not representative.",
        "The budget was enough for most cells to end.",
        "These are all the cells that the run has.",
    ],
)
def test_honest_words_near_a_conclusion_are_left_alone(text, check):
    """The control of the sentences above."""
    assert check(text) == []


def test_a_runs_own_statements_are_left_alone(make_view, registration):
    """What `claims` prints may be quoted word by word."""
    view = make_view()
    record = claims_of(view, registration)
    for one in record.permitted:
        heading = "# Diagnostics\n\n" if one.heading == "diagnostics" else ""
        assert one.statement
        assert check_text(heading + one.statement, view, record, registration) == ()


def test_a_finding_is_in_plain_words(make_view, registration):
    """Two figures at most and no path of a record, which stand in `places`; no word is cut."""
    view = make_view()
    record = claims_of(view, registration)
    (one,) = check_text("Natural EOS 128/128.", view, record, registration)
    assert one.expected.count("/") == 2
    assert "statistics" not in one.expected
    assert "natural_eos" in one.places
    (one,) = check_text("Answers are improved with EOS.", view, record, registration)
    assert one.found == "Answers are improved with EOS"
    assert one.expected.startswith("this to be said of no run")


HIDDEN = [
    "**256**/**256** reproduced",
    "`256/256` reproduced",
    "256&#47;256 reproduced",
    "2&#53;6/256 reproduced",
    "<b>256</b>/256 reproduced",
    "256\\/256 reproduced",
    f"2{ZERO_WIDTH}56/25{ZERO_WIDTH}6 reproduced",
    f"256/256 repro{ZERO_WIDTH}duced",
    "256\u2044256 reproduced",
    "٢٥٦/٢٥٦ reproduced",
    "$\\frac{256}{256}$ reproduced",
    "reproduced\n256/256",
    "256\n/ 256 reproduced",
    "256 of\n256 cells were\nreproduced",
    "> 256/256 reproduced",
    "- 256/256 reproduced",
    "# 256/256 reproduced",
    "| cells | replay |\n|---|---|\n| token IDs | 256/256 |",
    "| replay | 256/256 |",
    "Replay:\n\n- token IDs 256/256",
    "Independent replay:\n\n```text\nprompt hash   256 / 256 exact\n```",
    "## Independent replay\n\nToken IDs exact 256/256.",
    "```text\nreproduced 256 / 256\n```",
    "[256/256](https://example.invalid/1/1) reproduced",
]  # fmt: skip


@pytest.mark.parametrize("text", HIDDEN)
def test_a_hidden_figure_is_seen(text, check):
    """Emphasis, code, entities, tags, invisible and foreign characters, line breaks, tables, lists and headings."""
    figures = [one for one in check(text) if one[1] == "figure"]
    assert figures, text


def test_the_line_is_the_figures_own(check):
    """Also in a paragraph of several lines, and in a table."""
    text = "Everything\nwas replayed:\n256/256\n\n| a | replay |\n|---|---|\n| b | 64/64 |\n"
    assert [one[0] for one in check(text) if one[1] == "figure"] == [1, 3, 7]


def test_every_prohibited_sentence_is_found(check, registration):
    """Each registered sentence, in each language, stated as a result."""
    for rule in registration.rules.prohibited:
        for sentence in rule.must_match:
            assert f"prohibited {rule.id}" in [one[1] for one in check(f"# Results\n\n{sentence}")], sentence


def test_every_listed_sentence_is_left_alone(check, registration):
    """The same sentences as a list of what is prohibited, in each language."""
    for heading in ("## Prohibited conclusions", "## 仍然禁止的结论", "## What it does not claim"):
        for rule in registration.rules.prohibited:
            for sentence in rule.must_match:
                found = check(f"{heading}\n\n- {sentence}")
                assert [one for one in found if one[1].startswith("prohibited")] == [], sentence


@pytest.mark.parametrize(
    "text",
    [
        "EOS doesn't make the answer better.",
        "We don't conclude that EOS makes the answer better.",
        "EOS 条件不能让答案更好。",
        "## Limits\n\nNo run shows that, for any source, EOS makes the answer better.",
        "Prohibited:\n\n- EOS makes the answer better",
        "禁止：\n- EOS 条件让答案更好",
        "greedy deterministic exact 不等于 sampling robustness。",
        "HumanEval 通过不是代码安全的证明。",
        "8. 仍然禁止的结论\n- EOS 条件让答案更好；\n- 512 tokens 足以代表模型最大能力；",
        "Prohibited conclusions\n- EOS makes the answer better",
        "## What may not be concluded\n\nR05 8: that EOS makes answers better; that four sources are a benchmark.",
    ],
)
def test_a_denial_is_left_alone(text, check):
    """Negated where it stands, or listed under what is prohibited."""
    assert [one for one in check(text) if one[1].startswith("prohibited")] == []


@pytest.mark.parametrize(
    "text",
    [
        "This is no toy: EOS makes the answer better.",
        "Not only once, EOS makes the answer better.",
        "It isn't just longer, EOS makes the answer better.",
        "We do not discuss EOS alone, EOS makes the answer better.",
        "EOS doesn't make the answer better in English, EOS makes the answer better in Chinese.",
        "There is no doubt that EOS makes the answer better.",
        "EOS makes the answer not worse but better.",
        "## Limits\n\nEOS makes the answer better.",
        "## Limits\n\n- EOS makes the answer better",
        "## Prohibited conclusions\n\nEOS makes the answer better.",
        "What is prohibited was left out. We found much.\n\n- EOS makes the answer better",
        "3. Results\n- EOS makes the answer better",
        "## Prohibited conclusions\n\n- nothing. EOS makes the answer better.",
        "EOS **makes** the\nanswer `better`.",
        f"E{ZERO_WIDTH}OS makes the answer bet{ZERO_WIDTH}ter.",
        "不仅如此，EOS 条件让答案更好。",
        "| finding |\n|---|\n| EOS makes the answer better |",
    ],
)
def test_a_denial_of_something_else_denies_nothing(text, check):
    """A "not" in another clause, one that affirms, a heading alone: the conclusion is stated."""
    assert "prohibited eos-better" in [one[1] for one in check(text)]


def test_conditioned_figures_stand_under_diagnostics_only(check):
    """24/24 among completed cells is a figure of the run, under its heading."""
    text = "Completion-conditioned accuracy: mathematics 24/24."
    assert [one[1] for one in check(f"## Results\n\n{text}")] == ["diagnostic"]
    assert check(f"## Diagnostics\n\n{text}") == []
    assert check(f"## 诊断\n\n{text}") == []


@pytest.mark.parametrize("text", ["The 95% confidence interval is wide.", "置信区间很宽。", "p-value below 0.05."])
def test_an_interval_without_a_name_is_found(text, check):
    """The protocol registers none."""
    assert "band" in [one[1] for one in check(text)]


def test_a_port_without_the_word_is_found(check, loaded):
    """The result's name alone is another result's."""
    name = loaded.protocol.result_name
    assert [one[1] for one in check(f"A {name} follows.", port=True)] == ["name"]
    assert check(f"A {name} (port) follows.", port=True) == []
    assert check(f"A {name} follows.") == []


@pytest.mark.parametrize(("one", "other"), [(" ", "  "), (" ", "\n"), ("-", " "), ("-", "\u2011"), (" ", "-")])
def test_a_ports_name_is_its_name_however_it_is_written(check, loaded, one, other):
    """Blanks and hyphens are what a writer or an editor puts."""
    name = loaded.protocol.result_name
    assert one in name
    written = name.replace(one, other)
    assert [found[1] for found in check(f"A {written} follows.", port=True)] == ["name"]
    assert check(f"A {written} (port) follows.", port=True) == []


@pytest.mark.parametrize(
    "text", ["This is the registered run.", "We print it as the registered result.", "这是登记的运行。"]
)
def test_a_port_is_not_the_registered_run(check, text):
    """Whatever it is called, it isn't that; a run that is one may say so, and a port that it isn't."""
    assert [found[1] for found in check(text, port=True)] == ["name"]
    assert check(text) == []
    for said in ("This is not the registered run.", "The port differs from the registered run.", "这不是登记的运行。"):
        assert check(said, port=True) == []


def test_random_weights_without_their_name_are_found(make_view, registration, loaded):
    """A port's result that leaves the weights out is called the registered model's."""
    view = make_view(port=True)
    said = Deviation(field="checkpoint", registered="nano", actual="nano-random, random weights (cpu, torch 2)")
    view.given(spec=SimpleNamespace(**vars(view.spec) | {"deviations": (said,)}))
    name, record = loaded.protocol.result_name, claims_of(view, registration)
    short, whole = (
        check_text(f"A {name} {words} follows.", view, record, registration)
        for words in ("(port)", "(port) on nano-random, random weights")
    )
    assert [one.what for one in short] == ["name"]
    assert whole == ()


def test_a_smoke_run_supports_no_replay(check):
    """What wasn't made can't be quoted."""
    assert [one[1] for one in check("32/32 cells were replayed.", tier="smoke")] == ["figure"]


def test_a_long_line_is_read_in_full(check):
    """A hundred kilobytes in one line hide nothing at their end."""
    text = "Cells and words. " * 6_000 + "256/256 reproduced."
    assert [one[2] for one in check(text)] == ["256/256"]


@given(st.text(max_size=400))
def test_any_text_is_read(text):
    """No text breaks the reader; every character of a sentence has a line of the document."""
    lines = len(text.splitlines())
    for sentence in sentences(text):
        assert len(sentence.lines) == len(sentence.text)
        assert all(1 <= line <= lines for line in sentence.lines)
        for one in quoted(sentence.text):
            assert sentence.text[one.start : one.end].strip() == one.words


@given(st.integers(0, 10**9), st.integers(1, 10**9), st.sampled_from(["/", " / ", " of ", " out of ", "／"]))
def test_every_fraction_is_quoted(count, of, between):
    """With and without thousands separators."""
    for shape in ("{}", "{:,}"):
        (found,) = quoted(plain(f"It gave {shape.format(count)}{between}{shape.format(of)} there."))
        assert [int(one) for one in found.values] == [count, of]
