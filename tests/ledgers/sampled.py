"""Sampled ledgers by hand: a protocol of Round 07's or Round 06's shape over nano's domains, and draws for its cells.

A draw is what one cell left; rows, edges and pairs of seeds follow from it. The gold answer of every source of
mathematics is 12. Nothing here was generated, extracted or executed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import msgspec
from pregate_support.books import PROTOCOLS
from pregate_support.sampling import sampled_contract

from harness.canon import ids_sha256, sha256_hex
from harness.compare import compare_ids
from harness.evaluate.completion import completion_class
from harness.evaluate.numeric.exact import plain
from harness.ledgers.accounts import NO_TERMINAL
from harness.ledgers.reading import NO_NUMBER, NO_PROGRAM
from harness.protocols.grids import is_executed
from harness.protocols.load import read_protocol
from harness.records.completion import (
    AccountedRow,
    CodeAccount,
    CompletionEdgeRow,
    Executed,
    NotExecuted,
    NumericJudged,
    NumericWithoutGold,
    ProgramTaken,
    Terminal,
)
from harness.records.evaluation import CodeMissing, NumericFound, NumericMissing
from harness.records.ledger import Count
from harness.records.protocol import Grid, SamplingProtocol
from harness.records.sampling import CarriedDirection, Contrast, SameProcessRule, SamplingEvaluators
from harness.records.sampling_ledger import SampledLedger, SeedPairRow
from harness.records.sources import Domain

Outcome = Literal["passed", "assertion_failed", "syntax_error", "infrastructure", "extract_failed", "tier"]
Cell = tuple[str, int, str, str]

FOUR = ("s0_eos", "s1_eos", "s0_period", "s1_period")
EIGHT = ("s0_eos", "s1_eos", "s0_bos", "s1_bos", "s0_x", "s1_x", "s0_period", "s1_period")
DOMAINS = ("english", "code", "math")
GOLD = "12"
CONTRASTS = (
    Contrast(id="system_main", plus=("s1_eos", "s1_period"), minus=("s0_eos", "s0_period"), divisor=2),
    Contrast(id="boundary_main", plus=("s0_period", "s1_period"), minus=("s0_eos", "s1_eos"), divisor=2),
    Contrast(id="interaction", plus=("s1_period", "s0_eos"), minus=("s1_eos", "s0_period"), divisor=1),
)
CARRIED = (
    CarriedDirection(
        id="period_shortens", contrast="boundary_main", measure="generated_length", direction="negative"
    ),
    CarriedDirection(
        id="system_raises_eos", contrast="system_main", measure="natural_eos_rate", direction="positive"
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Draw:
    """What one cell left. `answer`: the number taken, None for none; `marker`: by a marker, not by its place.

    `outcome`: the sandbox's word, or why there is none. `closed`: a closed fence. `gold`: whether the run has any.
    """

    ids: tuple[int, ...] = (7, 1)
    eos: bool = True
    answer: str | None = GOLD
    marker: bool = True
    outcome: Outcome = "passed"
    closed: bool = False
    gold: bool = True


def seeds(number: int) -> tuple[str, ...]:
    """The names of so many replicates."""
    return tuple(f"R{index}" for index in range(number))


def sampling_protocol(
    *,
    conditions: tuple[str, ...] = FOUR,
    replicates: int = 4,
    per_domain: int = 2,
    contrasts: tuple[Contrast, ...] = CONTRASTS,
    carried_over: tuple[CarriedDirection, ...] = CARRIED,
) -> SamplingProtocol:
    """Sampling over nano's domains: a smoke grid of two replicates and 16 tokens, the formal one as asked."""
    base = read_protocol(PROTOCOLS / "nano-completion" / "protocol.toml")
    own = {
        "id": "hand-made-sampling",
        "conditions": tuple(one for one in base.conditions if one.id in conditions),
        "edges": tuple(one for one in base.edges if {one.left, one.right} <= set(conditions)),
        "grids": {
            "smoke": Grid(per_domain=per_domain, replicates=seeds(2), max_new_tokens=16),
            "formal": Grid(per_domain=per_domain, replicates=seeds(replicates), max_new_tokens=512),
            "independent": Grid(per_domain=per_domain, replicates=seeds(1), max_new_tokens=512),
        },
        "decode": sampled_contract(len(conditions), replicates),
        "evaluators": SamplingEvaluators(
            numeric="numeric-r05", code="code-r05", terminal="terminal-r07", similarity="levenshtein-max"
        ),
        "same_process_replay": SameProcessRule(grid="smoke", replicate="R0", fields=("generated_ids",)),
        "contrasts": contrasts,
        "carried_over": carried_over,
    }
    inherited = {name: getattr(base, name) for name in SamplingProtocol.__struct_fields__ if name not in own}
    return SamplingProtocol(**inherited, **own)


def cells_of(protocol: SamplingProtocol, domains: tuple[str, ...], grid: str = "formal") -> list[Cell]:
    """(domain, index, replicate, condition) of every cell of a grid, in the protocol's order."""
    chosen = protocol.grids[grid]
    return [
        (domain, index, replicate, condition.id)
        for domain in domains
        for index in range(chosen.per_domain)
        for replicate in chosen.replicates
        for condition in protocol.conditions
    ]


def sampled_ledger(
    protocol: SamplingProtocol,
    draws: Mapping[Cell, Draw],
    *,
    domains: tuple[str, ...],
    grid: str = "formal",
) -> SampledLedger:
    """The ledger of a grid over the domains; a cell that `draws` doesn't name left `Draw()`."""
    registered = {domain.name: domain for domain in protocol.domains}
    drawn = {cell: draws.get(cell, Draw()) for cell in cells_of(protocol, domains, grid)}
    rows = {cell: row_of(registered[cell[0]], cell, draw) for cell, draw in drawn.items()}
    return SampledLedger(
        schema=1,
        protocol=protocol.id,
        registered_id=protocol.registered_id,
        protocol_digest=sha256_hex(b"protocol"),
        run_sha256=sha256_hex(b"run"),
        baseline_run_sha256=sha256_hex(b"baseline run"),
        result_name=protocol.result_name,
        grid=grid,
        port=False,
        domains=domains,
        evaluators=protocol.evaluators,
        cells=tuple(rows.values()),
        edges=tuple(_edges(protocol, drawn, rows)),
        pairs=tuple(_pairs(protocol, drawn, grid)),
    )


def source_id(domain: str, index: int) -> str:
    """The ID of a hand-made source."""
    return f"{domain}/{index:04d}"


def row_of(domain: Domain, cell: Cell, draw: Draw) -> AccountedRow:
    """A cell's row with its domain's accounts."""
    name, index, replicate, condition = cell
    number, program = "answer" in domain.gold, is_executed(domain)
    explicit = draw.marker and draw.answer is not None if number else draw.closed
    reached = explicit or (program and draw.outcome == "passed")
    return AccountedRow(
        domain=name,
        index=index,
        source_id=source_id(name, index),
        replicate=replicate,
        condition=condition,
        generated_sha256=ids_sha256(draw.ids),
        length=len(draw.ids),
        stop="natural_eos" if draw.eos else "budget_truncated",
        completion=completion_class(
            eos=draw.eos,
            truncated=not draw.eos,
            terminal=reached and (number or program),
            fallback_number=number and draw.answer is not None and not draw.marker,
        ),
        terminal=Terminal(explicit=explicit, reached=reached) if number or program else NO_TERMINAL,
        numeric=_numeric(draw) if number else NO_NUMBER,
        code=_code(draw) if program else NO_PROGRAM,
    )


def _numeric(draw: Draw) -> NumericJudged | NumericWithoutGold:
    extraction = (
        NumericMissing(rule="numeric-r05")
        if draw.answer is None
        else NumericFound(
            rule="numeric-r05",
            method="boxed" if draw.marker else "last",
            value=draw.answer,
            marker=draw.marker,
            start=0,
            end=len(draw.answer),
        )
    )
    if not draw.gold:
        return NumericWithoutGold(extraction=extraction)
    exact = draw.answer is not None and plain(draw.answer) == GOLD
    evaluable = draw.answer is not None and (draw.marker or draw.eos)
    return NumericJudged(
        extraction=extraction,
        gold=GOLD,
        evaluable=evaluable,
        fixed_budget_exact=exact,
        strict_complete_exact=exact and evaluable,
        strict_marker_only_exact=exact and draw.marker,
        fallback_exact=exact and not draw.marker,
    )


def _code(draw: Draw) -> CodeAccount:
    if draw.outcome == "extract_failed":
        return CodeAccount(program=CodeMissing(rule="code-r05"), verdict=NotExecuted(reason="extract_failed"))
    taken = ProgramTaken(rule="code-r05", method="fence", program_sha256=sha256_hex(b"program"), start=0, end=1)
    if draw.outcome == "tier":
        return CodeAccount(program=taken, verdict=NotExecuted(reason="tier"))
    words = {"syntax_error": "ast_error", "infrastructure": "sandbox_error"}
    verdict = Executed(
        outcome=draw.outcome,
        published=words.get(draw.outcome, draw.outcome),
        execution_sha256=sha256_hex(b"execution"),
        ast_parses=draw.outcome not in words,
        ran=draw.outcome not in words,
        fixed_budget_pass=draw.outcome == "passed",
        strict_complete_pass=draw.outcome == "passed" and (draw.eos or draw.closed),
    )
    return CodeAccount(program=taken, verdict=verdict)


def _edges(protocol: SamplingProtocol, drawn: Mapping[Cell, Draw], rows: Mapping[Cell, AccountedRow]):
    for domain, index, replicate in dict.fromkeys(cell[:3] for cell in drawn):
        for edge in protocol.edges:
            left, right = ((domain, index, replicate, side) for side in (edge.left, edge.right))
            yield CompletionEdgeRow(
                domain=domain,
                index=index,
                source_id=source_id(domain, index),
                replicate=replicate,
                edge=edge.id,
                kind=edge.kind,
                left=edge.left,
                right=edge.right,
                left_completion=rows[left].completion,
                right_completion=rows[right].completion,
                comparison=compare_ids(drawn[left].ids, drawn[right].ids),
            )


def _pairs(protocol: SamplingProtocol, drawn: Mapping[Cell, Draw], grid: str):
    for domain, index in dict.fromkeys(cell[:2] for cell in drawn):
        for condition in protocol.conditions:
            for left, right in combinations(protocol.grids[grid].replicates, 2):
                ids = [drawn[domain, index, seed, condition.id].ids for seed in (left, right)]
                yield SeedPairRow(
                    domain=domain,
                    index=index,
                    source_id=source_id(domain, index),
                    condition=condition.id,
                    left=left,
                    right=right,
                    comparison=compare_ids(*ids),
                )


def shuffled(ledger: SampledLedger, random) -> SampledLedger:
    """The ledger with its rows in another order."""
    rows = {name: list(getattr(ledger, name)) for name in ("cells", "edges", "pairs")}
    for listed in rows.values():
        random.shuffle(listed)
    return msgspec.structs.replace(ledger, **{name: tuple(listed) for name, listed in rows.items()})


def of(found, total=4):
    """A count."""
    return Count(count=found, of=total)


def said(*ids, **what):
    """A draw of these tokens, ended if the last one is EOS (1)."""
    return Draw(ids=ids, eos=ids[-1] == 1, **what)


def draws_of(domain, index, condition, draws):
    """Draws of one source and condition, by cell, a seed each."""
    return {(domain, index, seed, condition): draw for seed, draw in zip(seeds(len(draws)), draws, strict=True)}


# One source of mathematics and one of code that vary; every other cell is `Draw()`: (7, 1), ended and right.
HAND = {
    **draws_of("math", 0, "s0_eos", [
        said(7, 8, 1),
        said(7, 8, 1, answer="12.0"),
        said(7, 9, 9, 9, 5, marker=False),
        said(4, answer=None),
    ]),
    **draws_of("math", 0, "s0_period", [
        said(5, answer="13"),
        said(5, answer="13"),
        said(5, answer=None),
        said(5, 1, marker=False),
    ]),
    **draws_of("code", 0, "s0_eos", [
        said(7, 1),
        said(5),
        said(6, 1, outcome="syntax_error"),
        said(8, 1, outcome="extract_failed"),
    ]),
    **draws_of("code", 0, "s1_eos", [
        said(7, 1, outcome="assertion_failed"),
        said(7, 1, outcome="infrastructure"),
        said(7, 1, outcome="extract_failed"),
        said(7, 1, outcome="syntax_error"),
    ]),
}  # fmt: skip


def one(rows, **fields):
    """The one row that has these fields."""
    (row,) = [row for row in rows if all(getattr(row, name) == value for name, value in fields.items())]
    return row
