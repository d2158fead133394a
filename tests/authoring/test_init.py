"""`init`: what it asks, what it writes, and what it refuses before anything is written."""

import json
import tomllib
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from harness.__main__ import app
from harness.authoring.answers import ClaimAnswer, answered, claim_of, edit_of, source_of
from harness.authoring.make import make_study
from harness.claims.load import load_claims
from harness.errors import HarnessError, InputError, ModelError, PromptError, ProtocolError
from harness.places import places
from harness.protocols.load import read_protocol
from harness.records.protocol import StudyProtocol, TapedStudyProtocol

from .conftest import MODULE, freeze_study, write_study


def init(folder, *words, text=None):
    """The verb, in this process."""
    return CliRunner().invoke(app, ["init", str(folder), *words], input=text)


def test_an_input_that_ends_is_one_line(tmp_path):
    """Nobody to ask: the question, and what to give instead; nothing is written."""
    done = init(tmp_path / "mine", text="")
    assert done.exit_code == 1
    assert "init: Model: nano, or a checkpoint folder: expected an answer, found the end of the input" in done.output
    assert "--yes" in done.output
    assert "Aborted" not in done.output
    assert not (tmp_path / "mine").exists()


def test_without_a_history_no_edit_is_asked_for(tmp_path):
    """An edit's place is where the one-shot answer ends; flags are taken as they are."""
    done = init(tmp_path / "mine", "--model", "nano", "--question", "", text="\n" * 40)
    assert "One-shot answer" not in done.output
    assert "Token in place of EOS" not in done.output


def test_without_questions_it_is_a_study_of_the_embedded_model(tmp_path):
    """Two pools, one condition, claims that load; and it says what comes next."""
    done = init(tmp_path / "mine", "--yes", "--claim", "math:plain:1")
    assert done.exit_code == 0, done.output
    loaded = freeze_study(tmp_path / "mine")
    assert isinstance(loaded.protocol, StudyProtocol)
    assert [one.name for one in loaded.protocol.domains] == ["english", "math"]
    assert [one.id for one in load_claims(loaded).rules.permitted] == ["account", "replay", "at-least-math-plain"]
    assert f"Next: python -m harness freeze {tmp_path / 'mine'}" in done.stdout


def test_what_it_writes_is_commented_throughout(tmp_path):
    """A comment before every table of protocol.toml."""
    init(tmp_path / "mine", "--yes")
    lines = (tmp_path / "mine/protocol.toml").read_text(encoding="utf-8").splitlines()
    heads = {}
    for number, line in enumerate(lines):
        if line.startswith("["):
            heads.setdefault(line, number)
    assert len(heads) > 15
    assert [head for head, number in heads.items() if not lines[number - 1].startswith("#")] == []


def test_questions_make_the_same_study_as_flags(tmp_path, files):
    """One answer a line, in the order of the questions; the empty ones take defaults."""
    said = ["nano", "Asked?", "qa", str(files["qa"]), "key", "question", "Q: {text}", "exact", "label", ""]
    said += ["Be brief.", "What?", "That.", "x=x", "", "1", "2", "5", "9", "0", "qa:plain:1", ""]
    done = init(tmp_path / "asked", text="\n".join(said) + "\n")
    assert done.exit_code == 0, done.output
    words = f"qa={files['qa']},id=key,text=question,judge=exact,gold=label,content=Q: {{text}}"
    flags = [
        "--title",
        "Asked?",
        "--source",
        words,
        "--system",
        "Be brief.",
        "--question",
        "What?",
        "--answer",
        "That.",
    ]
    flags += [
        "--edit",
        "x=x",
        "--formal",
        "2",
        "--smoke-tokens",
        "5",
        "--tokens",
        "9",
        "--claim",
        "qa:plain:1",
        "--yes",
    ]
    assert init(tmp_path / "flags" / "asked", *flags).exit_code == 0
    for name in ("protocol.toml", "claims.toml", "inputs/qa.csv"):
        assert (tmp_path / "asked" / name).read_bytes() == (tmp_path / "flags/asked" / name).read_bytes()


def test_tapes_are_asked_for_and_flagged_alike(tmp_path):
    """A study under tapes by one answer; temperature and top-p are the embedded model's own where no flag says any."""
    said = ["nano", "", "", "", "", "1", "2", "5", "9", "3", ""]
    done = init(tmp_path / "asked", text="\n".join(said) + "\n")
    assert done.exit_code == 0, done.output
    flags = ["--formal", "2", "--smoke-tokens", "5", "--tokens", "9", "--tapes", "3", "--yes"]
    assert init(tmp_path / "flags" / "asked", *flags).exit_code == 0
    written = [(tmp_path / name / "protocol.toml").read_bytes() for name in ("asked", "flags/asked")]
    assert written[0] == written[1]
    protocol = read_protocol(tmp_path / "asked" / "protocol.toml")
    assert isinstance(protocol, TapedStudyProtocol)
    assert (protocol.decode.sampler.temperature, protocol.decode.sampler.top_p) == (0.3, 0.95)
    assert init(tmp_path / "own", *flags, "--temperature", "1.5", "--top-p", "1").exit_code == 0
    own = read_protocol(tmp_path / "own" / "protocol.toml").decode.sampler
    assert (own.temperature, own.top_p) == (1.5, 1.0)
    refused = init(tmp_path / "one", *flags[:-3], "--tapes", "1", "--yes")
    assert refused.exit_code == 1
    assert "--tapes: expected 2 or more, or 0 for greedy decoding, found 1" in refused.output
    assert not (tmp_path / "one").exists()


def test_smoke_is_never_longer_than_formal(tmp_path):
    """Without a flag it takes the formal budget where that is smaller; with one it is refused."""
    assert init(tmp_path / "short", "--yes", "--tokens", "16").exit_code == 0
    assert read_protocol(tmp_path / "short" / "protocol.toml").grids["smoke"].max_new_tokens == 16
    refused = init(tmp_path / "long", "--yes", "--tokens", "16", "--smoke-tokens", "17")
    assert refused.exit_code == 1
    assert "grids.smoke.max_new_tokens: expected from 1 to 16, the formal grid's, found 17" in refused.output


def test_json_is_the_record(tmp_path):
    """And nothing else on stdout."""
    made = json.loads(init(tmp_path / "mine", "--yes", "--json").stdout)
    assert (made["protocol"], made["sources"], made["prompts"], made["joined"]) == ("mine", 8, 8, [])
    assert sorted(made["files"]) == ["claims.toml", "protocol.toml"]


@pytest.mark.parametrize(
    "name", ["protocol.toml", "profile.toml", "claims.toml", "inputs", "checkpoint", "manifest.json"]
)
def test_nothing_is_overwritten(tmp_path, name):
    """A file that is there is named, and the folder is left as it was."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / name).write_bytes(b"mine")
    done = init(tmp_path / "mine", "--yes")
    assert done.exit_code == 1
    assert f"found {name}" in done.output
    assert [path.name for path in (tmp_path / "mine").iterdir()] == [name]
    assert (tmp_path / "mine" / name).read_bytes() == b"mine"


def test_a_name_that_is_a_protocol_is_refused(tmp_path):
    """Another protocol of that name would answer to it."""
    done = init(tmp_path / "nano-behavior", "--yes")
    assert "nano-behavior, which is a protocol already" in done.output
    assert not (tmp_path / "nano-behavior").exists()


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"edits": {"two": "two"}}, ProtocolError, "another text than EOS, of one token"),
        ({"edits": {"eos": "x"}}, ProtocolError, "under the name eos"),
        ({"shot": None}, ProtocolError, "an assistant message in the history"),
        ({"formal": 9}, InputError, "domain qa: expected 9 sources, found 8"),
        ({"claims": (ClaimAnswer("t", "plain", 3),)}, ProtocolError, "at_least from 1 to 2"),
        ({"claims": (ClaimAnswer("t", "nothing", 1),)}, ProtocolError, "sources: expected only"),
        ({"shot": ("What?", "That </s> is it.")}, PromptError, "no special token's text"),
        ({"dtype": "float64"}, ProtocolError, r"execution\.dtype"),
        ({"id": "two words"}, ProtocolError, "the protocol's ID as name"),
        ({"tokens": 2040}, ProtocolError, "at most 2048 tokens in all"),
    ],
)
def test_what_does_not_hold_is_refused_and_nothing_is_written(tmp_path, answers_for, changes, error, words):
    """One error, in the folder nothing but what was there."""
    answers = answers_for("llama", **changes)
    folder = tmp_path / "llama-study"
    folder.mkdir()
    (folder / "score.py").write_text(MODULE, encoding="utf-8")
    with pytest.raises(error, match=words):
        make_study(answers, folder, places())
    assert [path.name for path in folder.iterdir()] == ["score.py"]


def test_an_edit_without_a_one_shot_answer_is_refused(tmp_path):
    """By its flag, and by those that are missing; the same study with an answer is written."""
    done = init(tmp_path / "mine", "--yes", "--edit", "x=x")
    assert done.exit_code == 1
    assert "init: --edit x=x: expected --question and --answer beside it" in done.output
    assert not (tmp_path / "mine").exists()
    assert init(tmp_path / "mine", "--yes", "--edit", "x=x", "--question", "1 + 1?", "--answer", "2").exit_code == 0


def test_a_gold_answer_without_its_number_is_refused(tmp_path):
    """Before anything is written, and not by the first run: source and end of the answer are named."""
    row = {"id": "two", "text": "What is 1 + 1?", "answer": "it is two"}
    (tmp_path / "q.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    words = f"q={tmp_path / 'q.jsonl'},judge=number,gold=answer"
    done = init(tmp_path / "mine", "--yes", "--source", words, "--smoke", "1", "--formal", "1")
    assert done.exit_code == 1
    assert "answer of two: expected an answer that ends in `#### N`, found an end of `#### it is two`" in done.output
    assert not (tmp_path / "mine").exists()


def test_a_template_that_refuses_a_system_message_is_said(tmp_path, answers_for):
    """In the template's own words."""
    with pytest.raises(ModelError, match="no system message here"):
        write_study(tmp_path, answers_for("mixtral", system="Be brief."))


def test_a_module_that_is_not_there_is_refused(tmp_path, answers_for):
    """Its digest can't be frozen."""
    (tmp_path / "llama-study").mkdir()
    with pytest.raises(HarnessError, match=r"score\.py"):
        make_study(answers_for("llama"), tmp_path / "llama-study", places())


@pytest.mark.parametrize(
    "words",
    [
        "qa",
        "=file.csv",
        "qa=f.csv,judge=nothing",
        "qa=f.csv,judge=exact",
        "qa=f.csv,judge=number",
        "qa=f.csv,judge=regex",
        "qa=f.csv,judge=function,function=score",
        "qa=f.csv,content=nothing",
        "qa=f.csv,colour=red",
    ],
)
def test_words_of_a_source_that_are_none(words):
    """Each lacks something, or names what isn't."""
    with pytest.raises(ProtocolError, match=r"^init: "):
        source_of(words)


def test_words_of_a_source():
    """A pattern takes the rest, commas and all; several gold fields are joined by a plus."""
    one = source_of("qa=a/b.csv,id=key,judge=regex,gold=label+more,pattern=(yes|no),? end")
    assert (one.name, one.file.name, one.id, one.text) == ("qa", "b.csv", "key", "text")
    assert (one.gold, one.pattern) == (("label", "more"), "(yes|no),? end")
    assert answered({"name": "c", "file": "c.jsonl", "judge": "program"}, "c").gold == ("entry_point", "test")


def test_a_claim_of_any_count_loads_and_can_fail(tmp_path):
    """By its source's name; one that there isn't is refused before anything is written."""
    flags = ["--yes", "--question", "What?", "--answer", "That.", "--edit", "x=x"]
    claims = ["statistics.left_only.math.x_plain:2", "statistics.natural_eos:3"]
    done = init(tmp_path / "mine", *flags, *(word for one in claims for word in ("--claim", one)))
    assert done.exit_code == 0, done.output
    rules = {one.id: one for one in load_claims(freeze_study(tmp_path / "mine")).rules.permitted}
    (figure,) = rules["at-least-left_only-math-x_plain"].figures
    assert (figure.name, figure.source) == ("left_only", "statistics.left_only.math.x_plain")
    assert "at-least-natural_eos" in rules
    refused = init(tmp_path / "other", *flags, "--claim", "statistics.left_only.math.y_plain:2")
    assert refused.exit_code == 1
    assert "statistics.left_only.math.y_plain" in refused.output
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("words", ["a:b", "a:b:c", "a::1", ":b:1", "audit.x:1", "statistics.a:b", "statistics.a:²"])
def test_a_claim_that_is_none(words):
    """Three words, the last a number; or a count's name and a number."""
    with pytest.raises(ProtocolError, match="DOMAIN:CONDITION:N"):
        claim_of(words)


@pytest.mark.parametrize("words", ["x", "=x", "x="])
def test_an_edit_that_is_none(words):
    """A name and a text."""
    with pytest.raises(ProtocolError, match="NAME=TOKEN"):
        edit_of(words)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--question", "What?"], "expected question and answer"),
        (["--smoke", "0"], "expected 1 or more, found 0"),
        (["--model", "nowhere", "--source", "a=b.csv"], "expected a checkpoint folder"),
        (["--source", "a=nowhere.csv"], "nowhere.csv"),
        (["--source", "a=b.txt"], "expected a file .jsonl"),
    ],
)
def test_flags_that_do_not_hold(tmp_path, flags, words):
    """Exit 1, one line, no folder."""
    done = init(tmp_path / "mine", "--yes", *flags)
    assert done.exit_code == 1
    assert words in done.output
    assert not (tmp_path / "mine").exists()


def test_a_checkpoint_needs_sources_of_its_own(tmp_path, checkpoints):
    """The embedded pools belong to the embedded model."""
    done = init(tmp_path / "mine", "--yes", "--model", str(checkpoints["llama"]))
    assert "sources: expected one or more, found none" in done.output


def test_two_files_of_one_name_are_refused(tmp_path, answers_for, files):
    """They would lie in one folder."""
    answers = answers_for("llama")
    twice = replace(answers, sources=(answers.sources[0], replace(answers.sources[0], name="again")), claims=())
    with pytest.raises(ProtocolError, match="files of different names"):
        write_study(tmp_path, twice)


def test_every_condition_and_edge(tmp_path, answers_for):
    """System text crossed with an edit: four conditions, four comparisons; the place is the history's end."""
    protocol = read_protocol(write_study(tmp_path, answers_for("llama")) / "protocol.toml")
    assert [one.id for one in protocol.conditions] == ["plain", "plain_x", "system", "system_x"]
    assert [(one.left, one.right) for one in protocol.edges] == [
        ("plain", "plain_x"), ("system", "system_x"), ("plain", "system"), ("plain_x", "system_x"),
    ]  # fmt: skip
    plain = tomllib.loads((tmp_path / "llama-study/protocol.toml").read_text(encoding="utf-8"))
    assert plain["conditions"][1]["edits"] == [{"at": {"place": "history_end"}, "official": ["eos"], "put": ["x"]}]


@pytest.mark.parametrize("kind", ["parquet", "jsonl.gz"])
def test_other_formats_are_read(tmp_path, files, kind):
    """Rows of a table or of a compressed file are sources like those of plain lines."""
    import gzip

    import pyarrow as pa
    from pyarrow import parquet

    path = tmp_path / f"t.{kind}"
    if kind == "parquet":
        rows = [json.loads(line) for line in files["t"].read_text(encoding="utf-8").splitlines()]
        parquet.write_table(pa.Table.from_pylist(rows), path)
    else:
        path.write_bytes(gzip.compress(files["t"].read_bytes()))
    for name, source in (("mine", path), ("other", files["t"])):
        done = init(tmp_path / name, "--yes", "--source", f"t={source},judge=exact,gold=want", "--formal", "3")
        assert done.exit_code == 0, done.output
    found = [freeze_study(tmp_path / name).manifest.sources for name in ("mine", "other")]
    assert len(found[0]) == 3
    salted = [sorted(one.source_id for one in sources) for sources in found]
    assert all(set(ids) <= {f"t/{i}" for i in range(8)} for ids in salted)
