"""A judged run of nano-completion that was written by hand: 128 cells of the real grid, 32 of them replayed."""

from types import SimpleNamespace

import msgspec
import pytest
from pregate_support.books import CompletionBuilder, Said

from harness.canon import canonical_bytes, sha256_hex
from harness.claims.load import load_claims
from harness.claims.view import RunView
from harness.journal.folder import RunFolder
from harness.ledgers.completion import completion_ledger
from harness.ledgers.completion_statistics import completion_statistics
from harness.protocols.grids import gate_rows
from harness.protocols.load import load_protocol
from harness.records.audit import Audit, GateAccount
from harness.records.run import CompletionRun

FENCED = "```python\ndef f(n):\n    return n + 1\n```"
SAYS = {
    "english": {"*": Said("It ended."), "s0_x": Said("It", eos=False)},
    "chinese": {"*": Said("It ended."), "s0_x": Said("It", eos=False)},
    "code": {"*": Said(FENCED)},
    "math": {"*": Said(r"so \boxed{12}"), "s1_x": Said("so 13", eos=False), "s0_period": Said("none", eos=False)},
}


class HandView(RunView):
    """A view whose parts are given instead of read."""

    def given(self, **parts):
        """The view with these parts."""
        for name, value in parts.items():
            self.__dict__[name] = value
        return self


@pytest.fixture(scope="session")
def loaded():
    """The registered protocol."""
    return load_protocol("nano-completion")


@pytest.fixture(scope="session")
def registration(loaded):
    """Its registered claims."""
    return load_claims(loaded)


def hand_run(loaded) -> tuple[CompletionRun, CompletionBuilder]:
    """The whole formal grid under the manifest's own source IDs."""
    books = CompletionBuilder(loaded.protocol)
    units = tuple(
        msgspec.structs.replace(
            books.unit(key.domain, key.index, SAYS[key.domain], grid="formal"), source_id=key.source_id
        )
        for key in loaded.units("formal", loaded.domains)
    )
    gold = {unit.source_id: "12" for unit in units if unit.domain == "math"}
    return books.completion_run(units, gold=gold, grid="formal"), books


def audit_of(loaded, run, name, *, tier="formal", port=False, failed=None) -> Audit:
    """An audit record in which every row held, but `failed` of the named gates."""
    gates = []
    for gate in loaded.protocol.gates:
        if tier in gate.tiers:
            rows = gate_rows(loaded.protocol, loaded.profile, gate, loaded.units(gate.tiers[tier].grid, loaded.domains))
            names = tuple(row.name for row in rows)[: (failed or {}).get(gate.id, 0)]
            gates.append(
                GateAccount(
                    id=gate.id, clause=gate.clause, passed=len(rows) - len(names), registered=len(rows), failed=names
                )
            )
    return Audit(
        schema=1, protocol=loaded.protocol.id, registered_id=loaded.protocol.registered_id,
        protocol_digest=loaded.digest, result_name=loaded.protocol.result_name, tier=tier, run_id="formal-1",
        port=port, deviations=(), frozen=False, not_compared=(), unfrozen_sources=(), run_sha256=name,
        environment_sha256=run.environment_sha256, smoke=None, gates=tuple(gates), collected=1, reported=1, errors=0,
        books=(), judge={}, passed=not failed, files={"run.json": name},
    )  # fmt: skip


@pytest.fixture(scope="session")
def hand_records(loaded):
    """The hand-made run, its ledger and its statistics."""
    run, books = hand_run(loaded)
    outcomes = {"*": "passed", "s0_bos": "assertion_failed", "s1_bos": "timeout"}
    book = completion_ledger(loaded.protocol, run, books.executions(run, outcomes))
    return run, book, completion_statistics(loaded.protocol, book)


@pytest.fixture(scope="session")
def hand_bytes(hand_records):
    """Their canonical bytes, by file name."""
    return dict(zip(("run.json", "ledger.json", "statistics.json"), map(canonical_bytes, hand_records), strict=True))


@pytest.fixture
def make_view(loaded, hand_records, hand_bytes, tmp_path):
    """`make_view(**changes)`: the hand-made run as a judged view; its files lie in a folder of their own."""
    run, book, numbers = hand_records

    def make(*, tier="formal", port=False, failed=None, replay=None, domains=None):
        folder = tmp_path / "formal-1"
        (folder / "replay").mkdir(parents=True, exist_ok=True)
        name = sha256_hex(hand_bytes["run.json"])
        audit = audit_of(loaded, run, name, tier=tier, port=port, failed=failed)
        again = msgspec.structs.replace(run, units=tuple(unit for unit in run.units if unit.index == 0))
        again = again if replay is None else replay(again)
        contents = hand_bytes | {"audit.json": canonical_bytes(audit), "replay/run.json": b"the replay"}
        for name, data in contents.items():
            (folder / name).write_bytes(data)
        execution = loaded.protocol.execution
        names = ("dtype", "attention", "experts", "threads", "deterministic_algorithms", "float32_matmul_precision")
        environment = SimpleNamespace(
            packages={"torch": "2.13.0"}, python="3.11", machine="m", cpu="c", cpu_capability="a", gpus=(), cuda="",
            interop_threads=1, generation_config={}, kernels={},
            checkpoint={file.name: file.digest.sha256 for file in loaded.profile.files},
            **{name: getattr(execution, name) for name in names},
        )  # fmt: skip
        spec = SimpleNamespace(port=port, grid="formal", domains=domains or loaded.domains, deviations=())
        view = HandView(loaded, RunFolder(folder), audit)
        return view.given(spec=spec, environment=environment, run=run, ledger=book, statistics=numbers, replay=again)

    return make
