"""report.html in a real headless browser: no error, no request, keyboard, contrast, paper, a phone, the filter."""

import os

import pytest
from playwright.sync_api import expect, sync_playwright

pytestmark = pytest.mark.browser

PHONE, DESK = {"width": 360, "height": 740}, {"width": 1200, "height": 900}
CONTRAST = """
() => {
  const parts = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = (c) => c.slice(0, 3).map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const found = parts(getComputedStyle(one).backgroundColor);
      if (found.length === 3 || found[3] > 0) return found;
    }
    return [255, 255, 255];
  };
  const low = {};
  let seen = 0;
  for (const one of document.querySelectorAll("body *")) {
    const has = [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!["SCRIPT", "STYLE"].includes(one.tagName) && has) {
      const style = getComputedStyle(one);
      const drawn = one.closest("svg");
      const front = light(parts(drawn ? (style.fill === "none" ? "rgb(0,0,0)" : style.fill) : style.color));
      const back = light(behind(drawn ? drawn : one));
      const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
      seen += 1;
      if (ratio < 4.5) low[one.tagName + "." + one.getAttribute("class")] = ratio;
    }
  }
  return { low, seen };
}
"""

FOCUS = """
() => {
  const here = document.activeElement;
  return here.name || (here.closest("details.cell") ? "cell" : here.tagName);
}
"""


@pytest.fixture(scope="module")
def browser():
    """The chromium that HARNESS_BROWSER names."""
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=os.environ["HARNESS_BROWSER"], args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture(scope="module")
def address(hand_html, tmp_path_factory) -> str:
    """The report's file."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(hand_html, encoding="utf-8", newline="")
    return path.as_uri()


@pytest.fixture
def visit(browser, address):
    """`visit(size, hash, **context)`: the open page; what went wrong in it is in `page.problems`."""
    contexts = []

    def go(size=DESK, hash_of="", **more):
        context = browser.new_context(viewport=size, **more)
        contexts.append(context)
        page = context.new_page()
        page.problems = []
        page.on("console", lambda said: page.problems.append(said.text))
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.on("request", lambda one: None if one.url.split("#")[0] == address else page.problems.append(one.url))
        page.on("dialog", lambda one: page.problems.append(one.message))
        page.goto(address + hash_of)
        return page

    yield go
    for one in contexts:
        one.close()


def shown(page) -> list[str]:
    """Domains of the cells that the filter leaves."""
    return page.eval_on_selector_all(
        "details.cell", "all => all.filter(one => !one.hidden).map(one => one.dataset.domain)"
    )


def test_nothing_goes_wrong_and_nothing_is_loaded(visit):
    """No message on the console, no error, no request but the page itself, no dialog of an output."""
    page = visit()
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert page.problems == []
    assert page.title().startswith("fixed-budget completion account")


def test_the_policy_is_in_force(visit):
    """A script that isn't the page's own doesn't run: the control of the test above."""
    page = visit()
    page.evaluate(
        "const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s)"
    )
    assert page.evaluate("window.ran") is None
    assert any("Content Security Policy" in one for one in page.problems)


def test_a_phone_scrolls_no_page_sideways(visit):
    """At 360 pixels only tables scroll, with every cell and fold open too."""
    page = visit(PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_every_text_has_contrast(visit):
    """4.5 to 1 or more, folded and drawn texts too."""
    page = visit()
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    found = page.evaluate(CONTRAST)
    assert found["seen"] > 1000
    assert found["low"] == {}
    page.evaluate("document.querySelector('h1').style.color = '#8a8a8a'")
    assert [*page.evaluate(CONTRAST)["low"]] == ["H1.null"]  # the control


def test_the_filter_is_reached_and_used_by_keyboard(visit):
    """Tab reaches the skip link, the filter and a cell; the cell opens with Enter."""
    page = visit()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    reached = []
    for _ in range(400):
        page.keyboard.press("Tab")
        here = page.evaluate(FOCUS)
        reached.append(here)
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none"
        if here == "cell":
            break
    assert reached[-1] == "cell"
    assert {"domain", "condition", "state", "search"} <= set(reached)
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.closest('details').open")


def test_the_filter_filters(visit):
    """By domain, condition, state and text, with the number of cells said; `Show all` undoes it."""
    page = visit()
    assert len(shown(page)) == 128
    page.select_option("[name=domain]", "code")
    expect(page.locator("#shown")).to_contain_text("32 of 128")
    assert set(shown(page)) == {"code"}
    page.select_option("[name=condition]", "s0_bos")
    expect(page.locator("#shown")).to_contain_text("4 of 128")
    page.fill("[name=search]", "assertion_FAILED")
    expect(page.locator("#shown")).to_contain_text("4 of 128")
    page.fill("[name=search]", "no such text anywhere")
    expect(page.locator("#shown")).to_contain_text("0 of 128")
    page.click("button[type=reset]")
    expect(page.locator("#shown")).to_contain_text("128 of 128")
    page.select_option("[name=state]", "BUDGET_TRUNCATED_UNRESOLVED")
    expect(page.locator("#shown")).not_to_contain_text("128 of 128")
    assert 0 < len(shown(page)) < 128


def test_an_anchor_opens_its_cell(visit):
    """On arrival, and later, also where the filter hides it."""
    page = visit(hash_of="#cell-math-00-greedy-s1-x")
    assert page.evaluate("document.getElementById('cell-math-00-greedy-s1-x').closest('details').open")
    page.select_option("[name=domain]", "english")
    expect(page.locator("#shown")).to_contain_text("32 of 128")
    page.evaluate("location.hash = '#cell-code-00-greedy-s0-eos'")
    expect(page.locator("#cell-code-00-greedy-s0-eos")).to_be_visible()
    assert page.problems == []


def test_everything_is_there_without_script(visit):
    """No filter, and every cell; an anchor still leads into its cell."""
    page = visit(hash_of="#cell-math-00-greedy-s1-x", java_script_enabled=False)
    assert page.locator("form.filter").is_hidden()
    assert page.locator("details.cell > summary").count() == 128
    assert page.locator("#cell-math-00-greedy-s1-x").is_visible()


def test_paper_has_no_controls_and_folds_nothing(visit):
    """Navigation and filter are gone, numbers of charts are there, nothing is wider than the paper."""
    page = visit()
    page.emulate_media(media="print")
    assert page.locator("nav").is_hidden()
    assert page.locator("form.filter").is_hidden()
    assert page.locator("figure details table").first.is_visible()
    assert len(page.pdf(format="A4")) > 10_000


def test_a_bidi_mark_turns_nothing_around(visit):
    """The title after a hostile output is laid out from left to right."""
    page = visit(hash_of="#cell-english-00-greedy-s0-bos")
    boxes = page.evaluate(
        "[...document.querySelectorAll('details.cell')].slice(2, 4)"
        ".map(one => one.querySelector('summary span').getBoundingClientRect().left)"
    )
    assert boxes[0] == boxes[1]
    assert "\u202e" not in page.inner_text("#cell-english-00-greedy-s0-bos .output")
    assert "\\u202e" in page.inner_text("#cell-english-00-greedy-s0-bos .output")
