"""What is refused before anything is generated: altered inputs, protocols, digest files, weights, snapshots."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pregate_support.mini import MINI, copy_tree, run_gates

from harness.canon import sha256_hex
from harness.errors import HarnessError, InputError, ModelError, ProtocolError, SnapshotError
from harness.places import Places
from harness.protocols.load import load_protocol
from harness.run.registration import registration_evidence
from harness.run.request import Options, make_request
from harness.snapshots.store import accept, read_frozen

from .damage import Case, edit, failed_gates, read

FOLDER = f"fixtures/protocols/{MINI}"
OPTIONS = Options(checkpoint=None, inputs=(), gpu_memory=None, cpu_memory=None, port=False)


@pytest.fixture
def tree(mini_tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A private tree without runs, in use."""
    target = copy_tree(mini_tree, tmp_path / "tree")
    monkeypatch.setenv("HARNESS_ROOT", str(target))
    return target


def replace(path: Path, old: bytes, new: bytes) -> None:
    """Exactly one occurrence replaced."""
    content = path.read_bytes()
    if content.count(old) < 1:
        raise RuntimeError(f"{path} doesn't hold {old!r}")
    path.write_bytes(content.replace(old, new, 1))


def start(tree: Path) -> None:
    """What a session checks before it generates."""
    loaded = load_protocol(MINI, Places(tree))
    registration_evidence(loaded, make_request(loaded, "formal", "formal-9", OPTIONS, Places(tree)))


def other_digit(path: Path) -> None:
    """The first hex digit of a file of digests is another one."""
    content = path.read_bytes()
    path.write_bytes((b"0" if content[:1] != b"0" else b"1") + content[1:])


@pytest.mark.parametrize(
    ("name", "damage", "error"),
    [
        ("protocol.toml", lambda path: replace(path, b"max_new_tokens", b"max_new_tokens "), ProtocolError),
        ("manifest.json", lambda path: path.write_bytes(path.read_bytes() + b"\n"), ProtocolError),
        ("FILES.sha256", other_digit, ProtocolError),
        ("CANONICAL.sha256", other_digit, ProtocolError),
        ("PROMPTS.sha256", other_digit, ProtocolError),
        ("PROMPTS.sha256", Path.unlink, HarnessError),
    ],
)
def test_an_altered_protocol(tree: Path, name: str, damage: Callable[[Path], Any], error: type[HarnessError]) -> None:
    """A byte of the protocol, its manifest or a digest file changed: refused, with that file, expected and found."""
    damage(tree / FOLDER / name)
    with pytest.raises(error, match=r"expected .*, found") as refused:
        start(tree)
    assert name.split(".", maxsplit=1)[0] in str(refused.value) or "bytes" in str(refused.value)


@pytest.mark.parametrize("source", ["code.jsonl", "math.jsonl"])
def test_a_byte_of_a_source(tree: Path, source: str) -> None:
    """A byte of a source's text changed: the registered input isn't there, by digest."""
    path = tree / "fixtures/nano/pools" / source
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises((InputError, ProtocolError), match=r"expected .*, found") as refused:
        start(tree)
    assert source in str(refused.value)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_another_checkpoint(tree: Path, tmp_path: Path, name: str) -> None:
    """A byte of a checkpoint file changed: refused without --port, with the file, expected and found."""
    link = tree / "fixtures/models/nano/checkpoint"
    files = {file.name: file.read_bytes() for file in link.iterdir()}
    link.unlink()
    link.mkdir()
    for file, content in files.items():
        (link / file).write_bytes(content + (b"\n" if file == name else b""))
    with pytest.raises(ModelError, match=r"expected .*, found") as refused:
        start(tree)
    assert name in str(refused.value)


def test_a_session_over_an_altered_input(tree: Path) -> None:
    """End to end: exit code 4, the input's name, and neither a journal nor an audit record."""
    path = tree / "fixtures/nano/pools/math.jsonl"
    path.write_bytes(path.read_bytes() + b"\n")
    refused = run_gates(tree, "-m", "formal", "--run", "reports/mini-behavior/formal-9")
    assert refused.code == 4
    assert "math.jsonl" in refused.output
    assert not list((tree / "reports").rglob("journal/*"))
    assert not list((tree / "reports").rglob("audit.json"))


SNAPSHOTS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a token": (lambda folder: other_token(units(folder)[0]), "expected"),
    "a file more": (lambda folder: (folder / "more.json").write_bytes(b"{}"), "unlisted ['more.json']"),
    "a file less": (lambda folder: units(folder)[0].unlink(), "missing ['code"),
    "no index": (lambda folder: (folder / "index.json").unlink(), "index.json"),
    "an index digest": (
        lambda folder: edit(
            folder / "index.json", lambda one: one["units"].update(dict.fromkeys(one["units"], "0" * 64))
        ),
        "expected 0000",
    ),
    "an index without a unit": (
        lambda folder: edit(folder / "index.json", lambda one: one["units"].popitem()),
        "unlisted",
    ),
    "an index with another field": (
        lambda folder: edit(folder / "index.json", lambda one: one.update(x=1)),
        "unknown field",
    ),
}


def units(folder: Path) -> list[Path]:
    """The unit files of a snapshot folder."""
    return sorted(path for path in folder.glob("*.json") if path.name != "index.json")


def other_token(path: Path) -> None:
    """One generated ID of the first cell is another one."""
    lines = path.read_text(encoding="ascii").splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if '"generated_ids"' in line)
    head, _, tail = lines[at].partition(", ")
    lines[at] = f"{head}, 30{tail}" if tail[:1].isdigit() else lines[at]
    path.write_text("".join(lines), encoding="ascii")


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_an_altered_snapshot(case: Case, name: str) -> None:
    """Frozen results are exactly what their index lists: a changed, added or missing file is refused by name."""
    accept(case.run, Places(case.tree))
    damage, words = SNAPSHOTS[name]
    damage(case.tree / "snapshots" / MINI / "formal")
    with pytest.raises(HarnessError) as refused:
        read_frozen(MINI, Places(case.tree))
    assert words in str(refused.value)
    assert isinstance(refused.value, SnapshotError) or name == "no index"


def another_process(case: Case) -> None:
    """The run says that another model load made it, as a run made later does."""
    for at in (0, 1):
        edit(case.journal(at), lambda one, at=at: one["observation"]["process"].update(model_load_id=f"{at}"))


def test_another_run_equals_the_snapshots(case: Case) -> None:
    """A run made apart with the same cells has no red unit."""
    accept(case.run, Places(case.tree))
    another_process(case)
    assert case.red("frozen_snapshots") == {}


def test_a_snapshot_of_another_token(case: Case) -> None:
    """With the index forged too, the altered unit alone is red, by condition, with expected and found."""
    accept(case.run, Places(case.tree))
    another_process(case)
    folder = case.tree / "snapshots" / MINI / "formal"
    first = units(folder)[0]
    other_token(first)
    forged = {first.stem: sha256_hex(first.read_bytes())}
    edit(folder / "index.json", lambda one: one["units"].update(forged))
    red = case.red("frozen_snapshots")
    assert list(red) == [case.source()]
    assert f"{case.source()} greedy s0_eos snapshot: expected" in red[case.source()]
    assert "generated_ids" in red[case.source()]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"protocol_digest": "0" * 64}, "digest in force, and of snapshots/mini-behavior/formal: expected 0000"),
        ({"protocol": "another"}, "protocol: expected mini-behavior, found another"),
        ({"tier": "smoke"}, "tier: expected formal, found smoke"),
        ({"origins": []}, "origins: expected True"),
    ],
)
def test_an_index_that_is_not_this_protocols(case: Case, change: dict[str, Any], words: str) -> None:
    """Frozen results of another protocol, revision or tier, or of no run, are refused before anything is compared."""
    accept(case.run, Places(case.tree))
    edit(case.tree / "snapshots" / MINI / "formal/index.json", lambda one: one.update(change))
    with pytest.raises(HarnessError, match=words):
        read_frozen(MINI, Places(case.tree))


def test_an_index_of_half_the_grid(case: Case) -> None:
    """Units that were taken out of the index with their files are missed."""
    accept(case.run, Places(case.tree))
    folder = case.tree / "snapshots" / MINI / "formal"
    gone = sorted(path for path in folder.glob("*.json") if path.name != "index.json")[0]
    gone.unlink()
    edit(folder / "index.json", lambda one: one["units"].pop(gone.stem))
    with pytest.raises(SnapshotError, match="units: expected"):
        read_frozen(MINI, Places(case.tree))


def test_a_run_resumed_from_the_accepted_one(case: Case) -> None:
    """A copy of the accepted run in which one unit was made again is still its own in the other unit."""
    accept(case.run, Places(case.tree))
    edit(case.journal(1), lambda one: one["observation"]["process"].update(model_load_id="another"))
    red = case.red("frozen_snapshots")
    assert list(red) == [case.source(0)]
    assert "this run's own" in red[case.source(0)]


def test_a_session_against_an_altered_snapshot(case: Case) -> None:
    """End to end: a token changed in a frozen file ends the session before it judges, with the file's name."""
    accept(case.run, Places(case.tree))
    other_token(units(case.tree / "snapshots" / MINI / "formal")[0])
    refused = run_gates(case.tree, "-m", "formal", "--run", str(case.run))
    assert refused.code == 4
    assert "SnapshotError" not in refused.output
    assert "snapshots/mini-behavior/formal/code-00" in "".join(refused.output.split())


@pytest.mark.parametrize(
    "damage",
    [
        lambda run: edit(run / "statistics.json", lambda one: one.update(grid="smoke")),
        lambda run: edit(run / "audit.json", lambda one: one.update(passed=True, collected=0)),
        lambda run: (run / "replay/run.json").unlink(),
    ],
    ids=["an audited file", "the audit", "a part's run"],
)
def test_an_altered_run_is_not_frozen(case: Case, damage: Callable[[Path], Any]) -> None:
    """Freezing takes a run whose files are the audited ones, or nothing."""
    damage(case.run)
    with pytest.raises(HarnessError):
        accept(case.run, Places(case.tree))
    assert not (case.tree / "snapshots" / MINI).exists()


def test_the_accepted_runs_audit_says_passed(case: Case) -> None:
    """What these controls freeze is a run whose gates all passed."""
    assert (read(case.run / "audit.json")["passed"], failed_gates(case.run)) == (True, {})
