"""Task runs and task ledgers by hand: a protocol of Round 08's shape over nano's code and mathematics.

`TaskBuilder` makes units whose rows consumed what their tape says; `task_book` makes a ledger from what each cell left,
without units. The gold answer of every source of mathematics is 12.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import msgspec
from pregate_support.books import PROTOCOLS, CompletionBuilder, Said
from pregate_support.sampling import IDS

from harness.canon import ids_sha256, sha256_hex
from harness.compare import compare_ids
from harness.evaluate.numeric.exact import plain
from harness.journal.assemble import run_blocks
from harness.ledgers.reading import NO_NUMBER, NO_PROGRAM
from harness.ledgers.task_blocks import roles_of
from harness.ledgers.task_rows import PUBLISHED_R08
from harness.protocols.grids import is_executed
from harness.protocols.load import read_protocol
from harness.records.completion import NotExecuted, NumericWithoutGold, ProgramTaken
from harness.records.evaluation import CodeMissing, NumericFound, NumericMissing
from harness.records.protocol import Grid, TaskCrnProtocol
from harness.records.sources import Domain
from harness.records.taped import GridBlock, TapedBatch, TapedEvidence, TapedRun
from harness.records.tapes import EdgeDistance, Finished, NotFinished, RowTape
from harness.records.task_ledger import (
    Diverged,
    NotDiverged,
    NoVerdict,
    SharedUniforms,
    TapeFacts,
    TaskCode,
    TaskExecution,
    TaskLedger,
    TaskNumeric,
    TaskPairRow,
    TaskRow,
    TaskVerdict,
)
from harness.tapes.consumed import registered_consumption
from harness.tapes.tape import Tape

Cell = tuple[str, int, str, str]

PROTOCOL = read_protocol(PROTOCOLS / "nano-task-crn" / "protocol.toml")
REGISTERED_ID = PROTOCOL.registered_id
FOUR = ("s0_eos", "s1_eos", "s0_period", "s1_period")
TAPES = ("T0", "T1", "T2", "T3")
DOMAINS = ("code", "math")
GOLD = "12"
CONTRASTS, RULE, SAMPLER = PROTOCOL.contrasts, PROTOCOL.bootstrap, PROTOCOL.decode.sampler


def task_protocol(
    *, tasks: int = 4, diagnostic: tuple[int, ...] = (0, 2), tapes: int = 4, resamples: int = 200
) -> TaskCrnProtocol:
    """Tasks of code and mathematics: all under T0, the diagnostic ones also under the others; a smoke grid of two."""
    others = TAPES[1:tapes]
    formal = [GridBlock(role="primary", indices=tuple(range(tasks)), replicates=TAPES[:1])]
    if diagnostic and others:
        formal.append(GridBlock(role="diagnostic", indices=diagnostic, replicates=others))
    return msgspec.structs.replace(
        PROTOCOL,
        id="hand-made-tasks",
        grids={
            "smoke": Grid(per_domain=tasks, replicates=TAPES[:2], max_new_tokens=16),
            "formal": Grid(per_domain=tasks, replicates=TAPES[:tapes], max_new_tokens=512),
        },
        grid_blocks={
            "smoke": (GridBlock(role="check", indices=(0,), replicates=TAPES[:2]),),
            "formal": tuple(formal),
        },
        bootstrap=msgspec.structs.replace(RULE, resamples=resamples),
    )


@dataclass(frozen=True)
class TaskBuilder(CompletionBuilder):
    """Makes runs of a task protocol. Programs and numbers are given as texts; no token was drawn."""

    def boundary_id(self, name: str) -> int:
        """The registered ID of a boundary; four conditions register no BOS, with which every prompt begins."""
        return IDS.bos if name == "bos" else super().boundary_id(name)

    def drawn(
        self, domain: str, index: int, said: Mapping[str, Said], *, tape: str = "T0", grid: str = "formal"
    ) -> TapedEvidence:
        """One batch under a tape; `said` as in `unit`."""
        unit = self.unit(domain, index, said, grid=grid, replicate=tape)
        own = Tape(self.protocol.registered_id, tape)
        steps = unit.checks.steps
        rows = tuple(
            RowTape(
                condition=cell.condition,
                tape=own.label,
                tape_sha256=own.sha256,
                sampler=SAMPLER,
                consumed=registered_consumption(own, unit.source_id, cell.length),
                gaps=0,
                gap_steps=(),
                boundary_ties=0,
                nearest_edge=EdgeDistance(distance=0.25),
                finish=Finished(step=cell.length - 1) if cell.eos else NotFinished(),
                attended=len(cell.prompt_ids) + min(cell.length, steps - 1),
            )
            for cell in unit.cells
        )
        batch = TapedBatch(
            label=own.label,
            sha256=own.sha256,
            sampler=SAMPLER,
            columns=2048,
            cache="DynamicCache",
            cached=max(len(cell.prompt_ids) for cell in unit.cells) + steps - 1,
            rows=rows,
        )
        return TapedEvidence(**{name: getattr(unit, name) for name in unit.__struct_fields__}, tape=batch)

    def units(self, said: Mapping[str, Mapping[str, Said]], *, grid: str = "formal") -> tuple[TapedEvidence, ...]:
        """Every unit of a grid; `said` by domain, the same in all its units."""
        places = roles_of(self.protocol, grid)
        return tuple(
            self.drawn(domain.name, index, said[domain.name], tape=tape, grid=grid)
            for domain in self.protocol.domains
            for index, tape in places
        )

    def task_run(
        self, units: tuple[TapedEvidence, ...], *, gold: Mapping[str, str] | None = None, grid: str = "formal"
    ) -> TapedRun:
        """The assembled run of units; a gold number is 12."""
        numbers = {unit.source_id: GOLD for unit in units if unit.domain == "math"} if gold is None else gold
        run = self.completion_run(units, gold=numbers, grid=grid)
        blocks = run_blocks(self.protocol, grid, len(run.domains))
        plain = {name: getattr(run, name) for name in TapedRun.__struct_fields__ if name != "blocks"}
        return TapedRun(**plain, blocks=blocks)


@dataclass(frozen=True)
class Left:
    """What one cell left. `answer`: the number taken, None for none; `marker`: a final marker stands in the text.

    `outcome`: the sandbox's word, `extract_failed`, or `tier`; `closed`: a closed fence; `gold`: the run has any.
    """

    ids: tuple[int, ...] = (7, 1)
    eos: bool = True
    answer: str | None = GOLD
    marker: bool = False
    outcome: str = "passed"
    closed: bool = False
    gold: bool = True
    gaps: int = 0


def cells_of(protocol: TaskCrnProtocol, grid: str = "formal") -> list[Cell]:
    """(domain, index, tape, condition) of every cell of a grid, in the protocol's order."""
    places = [(domain.name, *place) for domain in protocol.domains for place in roles_of(protocol, grid)]
    return [(*place, condition.id) for place, condition in product(places, protocol.conditions)]


def source_id(domain: str, index: int) -> str:
    """The ID of a hand-made source."""
    return f"{domain}/{index:04d}"


def task_book(protocol: TaskCrnProtocol, left: Mapping[Cell, Left], *, grid: str = "formal") -> TaskLedger:
    """The ledger of a grid; a cell that `left` doesn't name left `Left()`."""
    registered = {domain.name: domain for domain in protocol.domains}
    found = {cell: left.get(cell, Left()) for cell in cells_of(protocol, grid)}
    roles = roles_of(protocol, grid)
    return TaskLedger(
        schema=1,
        protocol=protocol.id,
        registered_id=protocol.registered_id,
        protocol_digest=sha256_hex(b"protocol"),
        run_sha256=sha256_hex(b"run"),
        result_name=protocol.result_name,
        grid=grid,
        port=False,
        domains=tuple(registered),
        pairing="shared uniform numbers",
        evaluators=protocol.evaluators,
        cells=tuple(
            row_of(registered[cell[0]], cell, one, role=roles[cell[1], cell[2]]) for cell, one in found.items()
        ),
        pairs=tuple(_pairs(protocol, found, roles)),
    )


def row_of(domain: Domain, cell: Cell, left: Left, *, role: str) -> TaskRow:
    """A cell's row with its domain's account."""
    name, index, tape, condition = cell
    return TaskRow(
        domain=name,
        index=index,
        source_id=source_id(name, index),
        replicate=tape,
        condition=condition,
        generated_sha256=ids_sha256(left.ids),
        length=len(left.ids),
        stop="natural_eos" if left.eos else "budget_truncated",
        role=role,
        numeric=_numeric(left) if "answer" in domain.gold else NO_NUMBER,
        code=_code(left) if is_executed(domain) else NO_PROGRAM,
        tape=TapeFacts(
            tape=tape,
            tape_sha256=Tape(REGISTERED_ID, tape).sha256,
            consumed=len(left.ids),
            consumed_sha256=sha256_hex(b"z"),
            gaps=left.gaps,
            boundary_ties=0,
            nearest_edge=EdgeDistance(distance=0.25),
        ),
    )


def _numeric(left: Left) -> TaskNumeric | NumericWithoutGold:
    missing = NumericMissing(rule="numeric-r08")
    found = missing if left.answer is None else NumericFound(
        rule="numeric-r08", method="last", value=left.answer, marker=False, start=0, end=len(left.answer)
    )  # fmt: skip
    if not left.gold:
        return NumericWithoutGold(extraction=found)
    exact = left.answer is not None and plain(left.answer) == GOLD
    return TaskNumeric(
        extraction=found,
        gold=GOLD,
        result="exact" if exact else "no_numeric_answer" if left.answer is None else "wrong_numeric_answer",
        final_marker=left.marker,
        fixed_budget_exact=exact,
        strict_complete_exact=exact and (left.eos or left.marker),
    )


def _code(left: Left) -> TaskCode:
    taken = ProgramTaken(rule="code-r05", method="fence", program_sha256=sha256_hex(b"program"), start=0, end=1)
    if left.outcome == "tier":
        return TaskCode(program=taken, execution=NotExecuted(reason="tier"), verdict=NoVerdict(reason="tier"))
    ran = left.outcome not in ("extract_failed", "syntax_error")
    executed = TaskExecution(outcome=left.outcome, execution_sha256=sha256_hex(b"execution"))
    if left.outcome == "infrastructure":
        return TaskCode(program=taken, execution=executed, verdict=NoVerdict(reason="infrastructure"))
    verdict = TaskVerdict(
        failure_type=PUBLISHED_R08[left.outcome],
        ast_parses=ran,
        executed=ran,
        passed=left.outcome == "passed",
        strict_complete_pass=left.outcome == "passed" and (left.eos or left.closed),
    )
    if left.outcome == "extract_failed":
        missing = CodeMissing(rule="code-r05")
        return TaskCode(program=missing, execution=NotExecuted(reason="extract_failed"), verdict=verdict)
    return TaskCode(program=taken, execution=executed, verdict=verdict)


def _pairs(protocol: TaskCrnProtocol, left: Mapping[Cell, Left], roles: Mapping[tuple[int, str], str]):
    for domain, index, tape in dict.fromkeys(cell[:3] for cell in left):
        for contrast in protocol.contrasts:
            one, other = (left[domain, index, tape, side].ids for side in (contrast.left, contrast.right))
            compared = compare_ids(one, other)
            before = compared.common_prefix_tokens
            yield TaskPairRow(
                domain=domain,
                index=index,
                source_id=source_id(domain, index),
                replicate=tape,
                role=roles[index, tape],
                contrast=contrast.id,
                left=contrast.left,
                right=contrast.right,
                comparison=compared,
                divergence=NotDiverged() if compared.ids_exact else Diverged(step=before),
                uniforms=SharedUniforms(before=before, steps=min(len(one), len(other)), sha256=sha256_hex(b"z")),
            )


def shuffled(book: TaskLedger, random) -> TaskLedger:
    """The ledger with its rows in another order."""
    rows = {name: list(getattr(book, name)) for name in ("cells", "pairs")}
    for listed in rows.values():
        random.shuffle(listed)
    return msgspec.structs.replace(book, **{name: tuple(listed) for name, listed in rows.items()})
