"""Ledger and statistics follow from protocol, run.json and executions: made again where nothing else can be had."""

import subprocess
import sys

import pytest
from pregate_support.books import PROTOCOLS, CompletionBuilder

from harness.files import write_atomic
from harness.journal.folder import write_record
from harness.ledgers.completion import completion_ledger
from harness.ledgers.completion_statistics import completion_statistics

ABSENT = ("torch", "transformers", "accelerate", "safetensors", "docker", "tokenizers", "pyarrow", "pytest")
AGAIN = """
import importlib.abc, sys
from pathlib import Path

absent, folder, protocol = {absent!r}, Path({folder!r}), Path({protocol!r})

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in absent:
            raise ImportError(f"{{name}} can't be imported here")

sys.meta_path.insert(0, Absent())

import msgspec
from harness.canon import canonical_bytes
from harness.journal.assemble import read_run
from harness.journal.folder import RunFolder
from harness.ledgers.book import ledger_of, statistics_of
from harness.ledgers.executions import read_executions
from harness.protocols.load import read_protocol

protocol, folder = read_protocol(protocol), RunFolder(folder)
run = read_run(folder, protocol)
book = ledger_of(protocol, run, read_executions(folder))
for name, record in (("ledger", book), ("statistics", statistics_of(protocol, book))):
    if canonical_bytes(record) != folder.file(name + ".json").read_bytes():
        raise SystemExit(name + " was made again with other bytes")
if set(absent) & set(sys.modules):
    raise SystemExit("something absent is loaded")
print("the same bytes")
"""


@pytest.fixture
def folder(tmp_path, completion, say):
    """A whole formal run by hand, its executions, ledger and statistics on disk."""
    books = CompletionBuilder(completion)
    texts = {"english": "Text.", "chinese": "完。", "code": "```python\ndef f(n):\n    return n\n```", "math": "so 12"}
    units = tuple(
        books.unit(name, index, {"*": say(text), "s0_x": say(text, eos=False)}, grid="formal")
        for name, text in texts.items()
        for index in range(4)
    )
    run = books.completion_run(units, gold={f"math/{n:04d}": "12" for n in range(4)}, grid="formal")
    executions = books.executions(run, {"*": "passed", "s0_bos": "timeout"})
    book = completion_ledger(completion, run, executions)
    for key, execution in executions.items():
        write_record(tmp_path / "sandbox" / f"{key}.json", execution)
    write_record(tmp_path / "run.json", run)
    write_record(tmp_path / "ledger.json", book)
    write_record(tmp_path / "statistics.json", completion_statistics(completion, book))
    return tmp_path


def again(folder, seed="0"):
    """Exit code and output of a fresh interpreter that makes both records again."""
    program = AGAIN.format(
        absent=ABSENT, folder=str(folder), protocol=str(PROTOCOLS / "nano-completion" / "protocol.toml")
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed, "PATH": ""}, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=False, cwd=folder,
    )  # fmt: skip
    return done.returncode, done.stdout.strip().splitlines()[-1]


@pytest.mark.parametrize("seed", ["0", "1"])
def test_made_again_without_model_engine_or_tokenizer(folder, seed):
    """The same bytes in a fresh interpreter, where no model, engine, tokenizer or data reader can be imported."""
    assert again(folder, seed) == (0, "the same bytes")


def test_the_order_of_executions_on_disk_doesnt_matter(folder):
    """Files written again in another order, and other observations, change nothing."""
    paths = sorted((folder / "sandbox").glob("*.json"), reverse=True)
    for path in paths:
        data = path.read_bytes()
        path.unlink()
        write_atomic(path, data.replace(b'"wall_ns":1', b'"wall_ns":5'))
    assert again(folder) == (0, "the same bytes")


@pytest.mark.parametrize("name", ["ledger", "statistics"])
def test_an_altered_record_is_seen(folder, name):
    """The control: one count, one word."""
    path = folder / f"{name}.json"
    path.write_bytes(path.read_bytes().replace(b"true", b"false", 1).replace(b'"count":4', b'"count":5', 1))
    assert again(folder) == (1, f"{name} was made again with other bytes")


def test_an_execution_less_is_seen(folder):
    """The control: a verdict that is gone isn't made up."""
    next((folder / "sandbox").glob("*.json")).unlink()
    code, line = again(folder)
    assert code == 1
    assert "expected the verdict on this cell's program, found none" in line
