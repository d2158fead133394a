"""A judged formal run of nano-completion on disk that was written by hand: hostile outputs, a gate that isn't whole."""

import sys
from pathlib import Path

import html5lib
import msgspec
import pytest
from pregate_support.books import CompletionBuilder, Said

from harness.canon import canonical_bytes, digest, sha256_hex, unescaped
from harness.claims.view import RunView, judged_view
from harness.journal.folder import RunFolder, write_record
from harness.ledgers.completion import completion_ledger
from harness.ledgers.completion_statistics import completion_statistics
from harness.protocols.grids import gate_rows
from harness.protocols.load import LoadedProtocol, load_protocol
from harness.records.audit import Audit, GateAccount
from harness.records.base import Frozen
from harness.records.run import Environment, PlacementFacts, RunSpec
from harness.report.make import page_of, report_bytes
from harness.snapshots.store import read_audit, run_files

FENCED = "```python\ndef f(n):\n    return n + 1\n```"
ATTACK = "<script>alert(1)</script><img src=x onerror=alert(2)><!-- </div></details></main> ]]> &lt;b&gt; {{ 7*7 }}"
HOSTILE = {
    "s0_eos": Said(ATTACK),
    "s1_eos": Said("\x00\x07\x1b[31mred\x1b[0m\r\n\x0c\x0b\x85\u2028\u2029 tab\t end\n"),
    "s0_bos": Said("\u202egpj.exe\u202c \u2066isolate\u2069 \u200bzero\ufeff \U000e0041tag \u0627\u0644\u0639"),
    "s1_bos": Said("line " * 200_000 + "last"),
    "s0_x": Said("<eos-less", eos=False),
    "s1_x": Said("\n\nfirst lines empty  \n "),
    "s0_period": Said("z\u0353\u0353\u0353 \U0001f468\u200d\U0001f469 \\x07 \\\\ \"'`<|eos|>", eos=True),
    "s1_period": Said("", eos=False),
}
MATH = {"*": Said(r"so \boxed{12}"), "s1_x": Said("so 13", eos=False), "s0_period": Said("none", eos=False)}
SHORT = "paired_comparison"


def said_by(domain: str, index: int) -> dict[str, Said]:
    """What the cells of a source said."""
    if domain == "english" and index == 0:
        return HOSTILE
    plain = {"*": Said("It ended."), "s0_x": Said("It", eos=False)}
    return {"code": {"*": Said(FENCED)}, "math": MATH}.get(domain, plain)


def environment_of(loaded: LoadedProtocol) -> Environment:
    """Where the hand-made run says it ran: as registered, but for the versions, which the protocol doesn't pin."""
    asked = loaded.protocol.execution
    return Environment(
        packages={"torch": "2.13.0"}, python="3.11.7", machine="x86_64", cpu="a cpu", cpu_capability="AVX2", gpus=(),
        cuda="none", dtype=asked.dtype, attention=asked.attention, experts=asked.experts, threads=asked.threads,
        interop_threads=1, deterministic_algorithms=asked.deterministic_algorithms,
        float32_matmul_precision=asked.float32_matmul_precision, kernels={"mkl": "True"},
        generation_config={"do_sample": "false"},
        checkpoint={one.name: one.digest.sha256 for one in loaded.profile.files if isinstance(one.digest, Frozen)},
    )  # fmt: skip


def audit_of(loaded: LoadedProtocol, folder: RunFolder, *, port: bool = False) -> Audit:
    """An audit record of the folder as it is; of one gate three rows don't hold."""
    gates = []
    for gate in loaded.protocol.gates:
        if "formal" in gate.tiers:
            units = loaded.units(gate.tiers["formal"].grid, loaded.domains)
            names = [row.name for row in gate_rows(loaded.protocol, loaded.profile, gate, units)]
            count, failed = len(names), tuple(names[:3]) if gate.id == SHORT else ()
            gates.append(
                GateAccount(id=gate.id, clause=gate.clause, passed=count - len(failed), registered=count, failed=failed)
            )
    files = run_files(folder)
    return Audit(
        schema=1, protocol=loaded.protocol.id, registered_id=loaded.protocol.registered_id,
        protocol_digest=loaded.digest, result_name=loaded.protocol.result_name, tier="formal", run_id="formal-1",
        port=port, deviations=(), frozen=False, not_compared=(), unfrozen_sources=(), run_sha256=files["run.json"],
        environment_sha256=files["environment.json"], smoke=None, gates=tuple(gates), collected=2, reported=2, errors=0,
        books=(), judge={"tree.state": "clean"}, passed=False, files=files,
    )  # fmt: skip


def write_run(path: Path, *, port: bool = False) -> Path:
    """The run folder, whole, with its audit record and the detached digest."""
    loaded, folder = load_protocol("nano-completion"), RunFolder(path)
    books = CompletionBuilder(loaded.protocol)
    units = tuple(
        msgspec.structs.replace(
            books.unit(key.domain, key.index, said_by(key.domain, key.index), grid="formal"), source_id=key.source_id
        )
        for key in loaded.units("formal", loaded.domains)
    )
    gold = {unit.source_id: "12" for unit in units if unit.domain == "math"}
    run = msgspec.structs.replace(
        books.completion_run(units, gold=gold, grid="formal"), protocol_digest=loaded.digest, port=port
    )
    executions = books.executions(run, {"*": "passed", "s0_bos": "assertion_failed", "s1_bos": "timeout"})
    book = completion_ledger(loaded.protocol, run, executions)
    spec = RunSpec(
        schema=1, run_id="formal-1", protocol=run.protocol, registered_id=run.registered_id,
        protocol_digest=loaded.digest, tier="formal", grid="formal", placement=loaded.protocol.placement,
        domains=loaded.domains, port=port, deviations=(), threads=1,
    )  # fmt: skip
    placement: PlacementFacts = run.placement
    records = {
        "run.json": run, "ledger.json": book, "statistics.json": completion_statistics(loaded.protocol, book),
        "spec.json": spec, "environment.json": environment_of(loaded), "placement.json": placement,
        "sandbox.json": books.facts(),
    }  # fmt: skip
    for name, record in records.items():
        write_record(folder.file(name), record)
    for key, execution in executions.items():
        write_record(path / "sandbox" / f"{key}.json", execution)
    write_audit(folder, audit_of(loaded, folder, port=port))
    return path


def write_audit(folder: RunFolder, audit: Audit) -> None:
    """The record and its detached digest."""
    data = canonical_bytes(audit)
    folder.file("audit.json").write_bytes(data)
    folder.file("audit.json.sha256").write_text(f"{sha256_hex(data)}  audit.json\n", encoding="ascii")


def unfinished(path: Path) -> Path:
    """The run as one that ended before it was assembled, judged as that."""
    folder = RunFolder(path)
    for name in ("run.json", "ledger.json", "statistics.json"):
        folder.file(name).unlink()
    write_audit(folder, msgspec.structs.replace(read_audit(folder), files=run_files(folder), run_sha256=""))
    return path


@pytest.fixture(scope="session")
def hand_run(tmp_path_factory) -> Path:
    """The run folder. Read only."""
    return write_run(tmp_path_factory.mktemp("hand") / "formal-1")


@pytest.fixture(scope="session")
def hand_view(hand_run) -> RunView:
    """The run as the report reads it."""
    return judged_view(hand_run)


@pytest.fixture(scope="session")
def hand_page(hand_view):
    """What its page shows."""
    return page_of(hand_view)


@pytest.fixture(scope="session")
def hand_html(hand_view) -> str:
    """Its report."""
    return report_bytes(hand_view).decode("utf-8")


@pytest.fixture(scope="session")
def hand_tree(hand_html):
    """Its report as a browser's parser reads it."""
    return parsed(hand_html)


def parsed(html: str):
    """A document by the HTML standard's own rules, without namespaces."""
    tree = html5lib.parse(html, treebuilder="lxml", namespaceHTMLElements=False)
    for one in tree.iter():
        if isinstance(one.tag, str):
            one.tag = one.tag.rpartition("}")[2]
    return tree


def text_in(element) -> str:
    """The text that an element shows, each escape read back: what `visible` was given."""
    parts = [element.text or ""]
    for child in element:
        parts.append(unescaped(child.text) if child.tag == "span" and child.get("class") == "x" else text_in(child))
        parts.append(child.tail or "")
    return "".join(parts)


def passage_in(element) -> str:
    """A passage whole: what is shown and what is folded."""
    return "".join(text_in(one) for one in element.iter("bdi"))


@pytest.fixture(scope="session")
def reading():
    """The readers of this folder's pages, for tests that can't import this file."""
    return sys.modules[__name__]


def digest_of(record) -> str:
    """A record's digest."""
    return digest(record)
