"""`judge numeric`: the vectors, strictness by rule, bad lines, whole files, streams."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness.evaluate.numeric import NUMERIC_RULES
from harness.judge import lines as lines_module
from harness.judge.numeric import RULES, NumericRuleName

VECTORS = Path(__file__).parents[1] / "evaluate" / "vectors_numeric.jsonl"
ROWS = [json.loads(line) for line in VECTORS.read_text(encoding="utf-8").splitlines()]
COMMAND = (sys.executable, "-m", "harness", "judge")
GOOD = {"id": "good", "text": "#### 5", "gold": "5"}


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_vector(row, invoke, write):
    """Every vector is exact or not as it says."""
    result = invoke("numeric", write(row))
    assert result.code == 0
    assert [(one["id"], one["exact"]) for one in result.lines] == [(row["id"], row["exact"])]


def test_whole_file_twice(invoke):
    """The vectors' file in one call: order kept, counts on stderr, the same bytes again."""
    first, second = invoke("numeric", VECTORS), invoke("numeric", VECTORS)
    assert [one["id"] for one in first.lines] == [row["id"] for row in ROWS]
    assert first.out == second.out
    exact = sum(row["exact"] for row in ROWS)
    assert f"numeric-v1: number found 22/24, exact {exact}/24, strict 13/24; 0 error lines of 24" in first.err


def test_the_line_that_comes_out(invoke, write):
    """Fields, order and types of a judged line, found and not found."""
    result = invoke("numeric", write({**GOOD, "text": "so #### -1,250.50", "gold": "-1250.5"}, {**GOOD, "text": "no"}))
    assert result.out.splitlines() == [
        '{"id":"good","line":1,"rule":"numeric-v1","method":"hash","value":"-1250.5","start":8,"end":17,'
        '"exact":true,"strict":true}',
        '{"id":"good","line":2,"rule":"numeric-v1","method":null,"value":null,"start":null,"end":null,'
        '"exact":false,"strict":false}',
    ]


@pytest.mark.parametrize(
    ("rule", "text", "eos", "exact", "strict"),
    [
        ("numeric-v1", "\\boxed{5}", None, True, True),
        ("numeric-v1", "it is 5", None, True, False),
        ("numeric-v1", "it is 5", False, True, False),
        ("numeric-v1", "it is 5", True, True, True),
        ("numeric-v1", "\\boxed{6}", True, False, False),
        ("numeric-v1", "\\boxed{5", None, True, False),
        ("numeric-r05", "#### 5", None, True, True),
        ("numeric-r05", "#### five, that is 5", None, True, True),  # 4.2's marker is there; the number is a fallback
        ("numeric-r05", "it is 5", None, True, False),
        ("numeric-r08", "#### 9 and 5", None, True, True),
        ("numeric-r08", "it is 5", None, True, False),
        ("numeric-r08", "it is 5", True, True, True),
        ("number-r04", "#### 5", None, True, False),
        ("number-r04", "#### 5", True, True, True),
        ("number-r04", "#### 5 or 6", True, False, False),
    ],
)
def test_strict(rule, text, eos, exact, strict, invoke, write):
    """An answer is strict where it is exact and has natural EOS or the rule's marker (R05 5)."""
    row = {"id": "a", "text": text, "gold": "5"} | ({} if eos is None else {"natural_eos": eos})
    (line,) = invoke("numeric", write(row), "--rule", rule).lines
    assert (line["rule"], line["exact"], line["strict"]) == (rule, exact, strict)


def test_every_numeric_rule_is_offered():
    """A rule that the evaluators gain has to be offered here too."""
    assert {name.value for name in NumericRuleName} == {*NUMERIC_RULES, "number-r04"}
    assert set(RULES) == set(NumericRuleName)


@pytest.mark.parametrize(
    "gold",
    ["5", "5.0", " +5 ", 5, 5.0, "10/2", "She has 4 + 1 = <<4+1=5>>5.\n#### 5"],
    ids=["digits", "decimal", "spaces", "integer", "float", "fraction", "GSM8K answer"],
)
def test_gold_forms(gold, invoke, write):
    """A gold number in any of its forms is the number."""
    assert invoke("numeric", write({**GOOD, "gold": gold})).lines[0]["exact"]


def test_gold_keeps_every_digit(invoke, write):
    """A long JSON number isn't read through a float."""
    long = "0.1234567890123456789012345678901234567890"
    row = b'{"id":"a","text":"#### %s","gold":%s}' % (long.encode(), long.encode())
    assert invoke("numeric", write(row)).lines[0]["exact"]


BAD = [
    ("words as gold", {**GOOD, "gold": "SECRET five"}, "line 1, field gold", "something else"),
    ("division by zero", {**GOOD, "gold": "1/0"}, "line 1, field gold", "something else"),
    ("exponent", {**GOOD, "gold": 10.0**30}, "line 1, field gold", "something else"),
    ("NaN as gold", {**GOOD, "gold": float("nan")}, "line 1, field gold", "something else"),
    ("true as gold", {**GOOD, "gold": True}, "line 1, field gold", "true or false"),
    ("no gold", {"id": "good", "text": "5"}, "line 1, field gold", "no such field"),
    ("no text", {"id": "good", "gold": "5"}, "line 1, field text", "no such field"),
    ("number as text", {**GOOD, "text": 5}, "line 1, field text", "a number"),
    ("null as text", {**GOOD, "text": None}, "line 1, field text", "null"),
    ("array as text", {**GOOD, "text": ["5"]}, "line 1, field text", "an array"),
    ("lone surrogate", {**GOOD, "text": "5\ud800"}, "line 1, field text", "a lone surrogate"),
    ("null as eos", {**GOOD, "natural_eos": None}, "line 1, field natural_eos", "null"),
    ("NaN as eos", {**GOOD, "natural_eos": float("nan")}, "line 1, field natural_eos", "NaN or an infinity"),
    ("invalid UTF-8", b'{"id":"good","text":"\xff","gold":"SECRET"}', "line 1", "byte 0xff at 21"),
]  # fmt: skip


@pytest.mark.parametrize(("row", "where", "found"), [one[1:] for one in BAD], ids=[one[0] for one in BAD])
def test_bad_line_keeps_its_id(row, where, found, invoke, write):
    """A line that can't be judged is an error line under its ID, and the next one is judged; no gold is quoted."""
    result = invoke("numeric", write(row, GOOD))
    assert result.code == 1
    bad, good = result.lines
    assert (bad["id"], bad["line"], bad["error"]["where"], bad["error"]["found"]) == ("good", 1, where, found)
    assert list(bad["error"]) == ["where", "expected", "found", "todo"]
    assert good["exact"]
    assert "SECRET" not in result.out + result.err
    assert "1 error lines of 2" in result.err


NAMELESS = [
    ("no id", {"text": "5", "gold": "5"}, "no such field"),
    ("null id", {**GOOD, "id": None}, "null"),
    ("float id", {**GOOD, "id": 1.5}, "a number"),
    ("too large an id", {**GOOD, "id": 2**53 + 1}, "a number"),
    ("true as id", {**GOOD, "id": True}, "true or false"),
    ("surrogate id", {**GOOD, "id": "\udc00"}, "a string"),
    ("no JSON", b"hello", "no JSON: Expecting value at character 0"),
    ("cut off", b'{"id": "a", "text"', "no JSON: Expecting ':' delimiter at character 18"),
    ("raw NUL", b'{"id":"a","text":"\0","gold":"5"}', "no JSON: Invalid control character at at character 18"),
    ("two objects", b'{"id":"a"}{"id":"b"}', "no JSON: Extra data at character 10"),
    ("a string", b'"a"', "a string"),
    ("deep nesting", b'{"id":' + b"[" * 100_000, "nesting too deep to read"),
]


@pytest.mark.parametrize(("row", "found"), [one[1:] for one in NAMELESS], ids=[one[0] for one in NAMELESS])
def test_bad_line_without_a_usable_id(row, found, invoke, write):
    """Where no ID can be read it is null, and the line's number says which line."""
    result = invoke("numeric", write(GOOD, row, GOOD))
    assert result.code == 1
    assert [one["line"] for one in result.lines] == [1, 2, 3]
    assert (result.lines[1]["id"], result.lines[1]["error"]["found"]) == (None, found)


HARMLESS = [
    ("unknown fields", {**GOOD, "logprob": float("-inf"), "sub": {"gold": []}, "n": 10**400}, "good"),
    ("NUL escape", {**GOOD, "text": "\0#### 5\0"}, "good"),
    ("byte order mark", b"\xef\xbb\xbf" + json.dumps(GOOD).encode(), "good"),
    ("CR LF", json.dumps(GOOD).encode() + b"\r", "good"),
    ("integer id", {**GOOD, "id": -7}, -7),
    ("empty id", {**GOOD, "id": ""}, ""),
    ("task_id", {"task_id": "t", "text": "#### 5", "gold": "5"}, "t"),
    ("id before task_id", {**GOOD, "task_id": "t"}, "good"),
    ("line separator in a string", '{"id":"a\u2028b","text":"#### 5","gold":"5"}'.encode(), "a\u2028b"),
    ("10 MB", {**GOOD, "text": "word " * 2_000_000 + "#### 5"}, "good"),
]


@pytest.mark.parametrize(("row", "line_id"), [one[1:] for one in HARMLESS], ids=[one[0] for one in HARMLESS])
def test_harmless_line(row, line_id, invoke, write):
    """What other harnesses' files carry doesn't matter."""
    result = invoke("numeric", write(row))
    (line,) = result.lines
    assert (result.code, line["id"], line["exact"]) == (0, line_id, True)


def test_blank_lines_and_repeated_ids(invoke, write):
    """Blank lines are passed over and counted; every line of an ID comes out."""
    result = invoke("numeric", write(b"", GOOD, b"  \t\r", GOOD))
    assert [(one["id"], one["line"]) for one in result.lines] == [("good", 2), ("good", 4)]
    assert result.code == 0


def test_no_line_end_at_the_end(invoke, tmp_path):
    """The last line counts without its line end."""
    (tmp_path / "x").write_text(json.dumps(GOOD), encoding="utf-8")
    assert len(invoke("numeric", tmp_path / "x").lines) == 1


def test_too_long_a_line(invoke, write, monkeypatch):
    """A line beyond the bound is an error line, its rest is no line."""
    monkeypatch.setattr(lines_module, "LINE_LIMIT", 100)
    result = invoke("numeric", write({**GOOD, "text": "x" * 5_000_000}, GOOD))
    assert [one["line"] for one in result.lines] == [1, 2]
    assert result.lines[0]["error"]["expected"] == "at most 100 bytes"
    assert result.lines[1]["exact"]


REFUSED = [
    ("array", b'[\n{"id": "a"}]', "expected JSON lines: one object on each line, found a JSON array"),
    ("array after a mark", b'\xef\xbb\xbf  [{"id": "a"}]', "found a JSON array"),
    ("empty", b"", "found nothing but white space"),
    ("blank", b"\n \n", "found nothing but white space"),
]


@pytest.mark.parametrize(("data", "said"), [one[1:] for one in REFUSED], ids=[one[0] for one in REFUSED])
@pytest.mark.parametrize("verb", ["numeric", "code"])
def test_no_lines_at_all(verb, data, said, invoke, fake, tmp_path):
    """A file that isn't lines is one line on stderr and exit 2."""
    (tmp_path / "x").write_bytes(data)
    result = invoke(verb, tmp_path / "x")
    assert (result.code, result.out) == (2, "")
    assert said in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize("verb", ["numeric", "code"])
@pytest.mark.parametrize("name", ["absent", "."])
def test_no_such_file(verb, name, invoke, fake, tmp_path):
    """A file that can't be read is one line on stderr and exit 2."""
    result = invoke(verb, tmp_path / name)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert "expected a readable file of JSON lines" in result.err


def test_unknown_rule(invoke, write):
    """An unknown rule is refused with the known ones."""
    result = invoke("numeric", write(GOOD), "--rule", "numeric-v0")
    assert result.code == 2
    assert "numeric-v1" in result.err


def test_gzip_under_any_name(invoke, tmp_path):
    """Gzip is recognised by its bytes, from a file and from standard input."""
    data = gzip.compress(json.dumps(GOOD).encode())
    (tmp_path / "plain").write_bytes(data)
    assert invoke("numeric", tmp_path / "plain").lines == invoke("numeric", "-", data=data).lines
    assert invoke("numeric", "-", data=data).lines[0]["exact"]


def test_gzip_cut_off(invoke, tmp_path):
    """What was read is judged; the break is an error line, exit 1."""
    rows = "".join(json.dumps({**GOOD, "id": str(n)}) + "\n" for n in range(20_000))
    data = gzip.compress(rows.encode())
    (tmp_path / "x.gz").write_bytes(data[: len(data) // 2])
    result = invoke("numeric", tmp_path / "x.gz")
    assert result.code == 1
    assert len(result.lines) > 100
    assert result.lines[-1]["error"]["expected"] == "a file that can be read to its end"
    assert all("error" not in line for line in result.lines[:-1])


def test_streams(write):
    """A line's result is there before the next line is."""
    with subprocess.Popen([*COMMAND, "numeric", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        for number in (1, 2):
            child.stdin.write(json.dumps(GOOD).encode() + b"\n")
            child.stdin.flush()
            assert json.loads(child.stdout.readline())["line"] == number
        child.stdin.close()
        assert child.wait(60) == 0


def test_broken_pipe_is_quiet(write):
    """A reader that goes away ends the verb without a traceback."""
    path = write(*[GOOD] * 20_000)
    with subprocess.Popen([*COMMAND, "numeric", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        child.stdout.readline()
        child.stdout.close()
        said = child.stderr.read()
        assert (child.wait(60), said) == (1, b"")


@pytest.mark.parametrize("verb", ["numeric", "code"])
def test_help(verb, invoke):
    """The help says the fields, the exit codes and where the counts are."""
    text = " ".join(invoke(verb, "--help").out.split())
    for word in ("Lines have id,", "standard input", "nothing could be judged", "stderr", "-v1"):
        assert word in text


def test_a_full_disk_is_one_line(write):
    """No traceback, exit 2, and nothing more from Python's own end."""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, "numeric", str(write(GOOD, GOOD))], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("standard output: expected room for every line, found No space left on device")
