"""Valid evidence by hand: a builder of cells, units and runs over the nano protocol's own conditions and edges.

Token IDs are 1000 + code point and EOS is the protocol's, so a text and its IDs are readable in a test and token
distances are character distances. Everything in a built run agrees with itself as the gates ask.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from harness.canon import digest, escaped, ids_sha256, sha256_hex, text_sha256
from harness.protocols.load import read_protocol
from harness.records.protocol import BehaviorProtocol, Condition, Grid
from harness.records.run import (
    CellRecord,
    Edit,
    NoDevice,
    PlacementFacts,
    RngStates,
    Run,
    StateHash,
    StepChecks,
    UnitEvidence,
)

NANO = Path(__file__).parents[2] / "fixtures" / "protocols" / "nano-behavior" / "protocol.toml"
FIRST_ID = 1000
SYSTEM_TOKENS = (900, 901, 902)
BOUNDARY_POSITION = 5


@dataclass(frozen=True)
class Said:
    """What a cell's model said: its text without EOS, and whether EOS followed (else it was cut off)."""

    text: str
    eos: bool = True


@dataclass(frozen=True)
class Builder:
    """Makes records of one protocol. `sources` maps (domain, index) to a source ID where the default won't do."""

    protocol: BehaviorProtocol
    sources: Mapping[tuple[str, int], str] = field(default_factory=dict)

    def with_grid(self, grid: str, *, per_domain: int, replicates: tuple[str, ...] = ("greedy",)) -> "Builder":
        """The same protocol with another grid under that name."""
        budget = self.protocol.grids[grid].max_new_tokens
        changed = Grid(per_domain=per_domain, replicates=replicates, max_new_tokens=budget)
        grids = {**self.protocol.grids, grid: changed}
        return Builder(msgspec.structs.replace(self.protocol, grids=grids), self.sources)

    def source_id(self, domain: str, index: int) -> str:
        """The named source ID, else `domain/0000` and so on."""
        return self.sources.get((domain, index), f"{domain}/{index:04d}")

    def boundary_id(self, name: str) -> int:
        """The registered ID of a boundary."""
        return next(boundary.id for boundary in self.protocol.boundaries if boundary.name == name)

    def ids(self, said: Said) -> tuple[int, ...]:
        """The generated IDs of what was said."""
        letters = tuple(FIRST_ID + ord(letter) for letter in said.text)
        return (*letters, self.boundary_id("eos")) if said.eos else letters

    def cell(self, condition: Condition, said: Said) -> CellRecord:
        """A row whose prompt keeps the single-ID contract and whose hashes and counts fit its IDs and text."""
        edits = self._edits(condition)
        prompt = self._prompt(condition, edits)
        ids = self.ids(said)
        eos_text = next(boundary.token for boundary in self.protocol.boundaries if boundary.name == "eos")
        text = said.text + (eos_text if said.eos else "")
        return CellRecord(
            condition=condition.id,
            prompt_ids=prompt,
            prompt_sha256=ids_sha256(prompt),
            left_padding=0 if condition.system else len(SYSTEM_TOKENS),
            edits=edits,
            generated_ids=ids,
            generated_sha256=ids_sha256(ids),
            text_escaped=escaped(text),
            text_sha256=text_sha256(text),
            eos=said.eos,
            truncated=not said.eos,
            length=len(ids),
        )

    def unit(
        self, domain: str, index: int, said: Mapping[str, Said], *, grid: str = "smoke", replicate: str = "greedy"
    ) -> UnitEvidence:
        """One batch. `said` maps condition IDs to what was said; "*" stands for the conditions not named."""
        chosen = {each.id: said.get(each.id, said.get("*")) for each in self.protocol.conditions}
        cells = tuple(self.cell(each, chosen[each.id] or Said("")) for each in self.protocol.conditions)
        rows = sum(cell.length for cell in cells)
        states = _states()
        return UnitEvidence(
            protocol_digest=digest(self.protocol),
            environment_sha256=sha256_hex(b"environment"),
            placement_sha256=digest(self.placement()),
            grid=grid,
            domain=domain,
            index=index,
            source_id=self.source_id(domain, index),
            source_text_sha256=text_sha256(f"source {domain} {index}"),
            replicate=replicate,
            max_new_tokens=self.protocol.grids[grid].max_new_tokens,
            cells=cells,
            checks=StepChecks(steps=max(cell.length for cell in cells), rows_checked=rows, finite=rows, argmax=rows),
            rng_before=states,
            rng_after=states,
        )

    def run(
        self,
        units: tuple[UnitEvidence, ...],
        *,
        domains: tuple[str, ...],
        gold: Mapping[str, str],
        grid: str = "smoke",
    ) -> Run:
        """The assembled evidence of units, in the order given."""
        return Run(
            schema=1,
            protocol=self.protocol.id,
            registered_id=self.protocol.registered_id,
            protocol_digest=digest(self.protocol),
            result_name=self.protocol.result_name,
            grid=grid,
            port=False,
            deviations=(),
            domains=domains,
            environment_sha256=sha256_hex(b"environment"),
            placement=self.placement(),
            gold=dict(gold),
            units=units,
        )

    def placement(self) -> PlacementFacts:
        """Everything on the CPU, under the protocol's own placement ID."""
        return PlacementFacts(
            id=self.protocol.placement,
            dispatched=False,
            device_map={"": "cpu"},
            parameter_bytes={"cpu": 4},
            offloaded=(),
            offloaded_moe_layers=(),
        )

    def _edits(self, condition: Condition) -> tuple[Edit, ...]:
        if not condition.edits:
            return ()
        position = BOUNDARY_POSITION + (len(SYSTEM_TOKENS) if condition.system else 0)
        eos, other = self.boundary_id("eos"), self.boundary_id(condition.boundary)
        return (Edit(position=position, official=eos, replaced=other),)

    def _prompt(self, condition: Condition, edits: tuple[Edit, ...]) -> tuple[int, ...]:
        system = SYSTEM_TOKENS if condition.system else ()
        official = [self.boundary_id("bos"), *system, 910, 911, 912, 913, self.boundary_id("eos"), 914, 915]
        for edit in edits:
            official[edit.position] = edit.replaced
        return tuple(official)


def _states() -> RngStates:
    python, numpy, torch = (StateHash(sha256=sha256_hex(name)) for name in (b"python", b"numpy", b"torch"))
    return RngStates(python=python, numpy=numpy, torch_cpu=torch, torch_cuda=NoDevice())


@pytest.fixture(scope="session")
def protocol() -> BehaviorProtocol:
    """The nano protocol as its file has it (digests aren't this folder's business)."""
    return read_protocol(NANO)


@pytest.fixture(scope="session")
def builder(protocol) -> Builder:
    """A builder for the nano protocol."""
    return Builder(protocol)


@pytest.fixture(scope="session")
def say():
    """Said, for tests that can't import this file."""
    return Said


@pytest.fixture(scope="session")
def two_sources(builder, say) -> Run:
    """A hand-made smoke run of two sources, one of mathematics and one of code; the values are in the tests."""
    math = builder.unit(
        "math", 0,
        {
            "*": say("so 12"),
            "s0_eos": say("so 1,234.50"),
            "s1_eos": say("so 1234.5", eos=False),
            "s0_bos": say("none"),
        },
    )  # fmt: skip
    code = builder.unit(
        "code", 0,
        {
            "*": say("```python\ndef f():\n    return 1\n```"),
            "s0_x": say("def f():\n    return 1"),
            "s1_x": say("```python\ndef f():", eos=False),
            "s0_period": say(""),
            "s1_period": say("-" * 400 + "1"),
        },
    )  # fmt: skip
    return builder.run((code, math), domains=("code", "math"), gold={"math/0000": "1,234.50"})
