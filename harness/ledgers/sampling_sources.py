"""One source under one condition over all its seeds (R07 9.1): counts of draws of one task, never of several tasks.

Mathematics only where the domain registers an answer, programs only where it registers tests; elsewhere a typed
absence. `observed_any_pass` says that one of these draws passed and estimates nothing.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from harness.compare import TODO
from harness.errors import JournalError
from harness.evaluate.numeric.exact import plain
from harness.ledgers.counts import count
from harness.ledgers.reading import NO_NUMBER, NO_PROGRAM
from harness.ledgers.sampling_groups import Groups
from harness.ledgers.sampling_measures import executed, value_of
from harness.ledgers.whole import Source
from harness.protocols.grids import is_executed
from harness.records.completion import AccountedRow, CodeAccount, NumericWithoutGold, ProgramTaken
from harness.records.evaluation import NumericFound
from harness.records.ledger import Count, NotObserved
from harness.records.sampling_ledger import (
    CodeSeeds,
    LengthSummary,
    Majority,
    MathSeeds,
    NoMajority,
    PairSimilarity,
    SourceCondition,
)

Rows = Sequence[AccountedRow]


def source_conditions(groups: Groups) -> Iterator[SourceCondition]:
    """Every source under every condition, in the protocol's order."""
    for source in groups.sources:
        for condition in groups.conditions:
            yield _source_condition(groups, source, condition)


def _source_condition(groups: Groups, source: Source, condition: str) -> SourceCondition:
    rows = groups.seeds(source, condition)
    lengths = [row.length for row in rows]
    return SourceCondition(
        domain=source.domain.name,
        index=source.index,
        source_id=source.source_id,
        condition=condition,
        natural_eos=count(row.stop == "natural_eos" for row in rows),
        truncated=count(row.stop == "budget_truncated" for row in rows),
        other_stop=count(row.stop == "other_stop" for row in rows),
        length=LengthSummary(sum=sum(lengths), n=len(lengths), minimum=min(lengths), maximum=max(lengths)),
        unique_trajectories=Count(count=len({row.generated_sha256 for row in rows}), of=len(rows)),
        similarities=tuple(
            PairSimilarity(left=pair.left, right=pair.right, similarity=pair.comparison.similarity)
            for pair in groups.seed_pairs(source, condition)
        ),
        math=math_seeds(rows) if "answer" in source.domain.gold else NO_NUMBER,
        code=code_seeds(rows) if is_executed(source.domain) else NO_PROGRAM,
    )


def math_seeds(rows: Rows) -> MathSeeds:
    """Mathematics over the seeds. A cell without a number or without gold counts in `of` and as no hit."""
    answers = tuple(extracted_answer(row) for row in rows)
    return MathSeeds(
        answers=answers,
        gold_absent=count(isinstance(row.numeric, NumericWithoutGold) for row in rows),
        fixed_budget_exact=count(bool(value_of("fixed_budget_success", row)) for row in rows),
        strict_complete_exact=count(bool(value_of("strict_complete_success", row)) for row in rows),
        majority=absolute_majority(answers),
    )


def extracted_answer(row: AccountedRow) -> str | None:
    """The number that the protocol's numeric rule took, in plain form, so that 12 and 12.0 are one answer.

    A number found by its place alone is an answer like one found by a marker: 9.1 asks for what was extracted. None
    where the rule found nothing; JournalError where the row's value is no number.
    """
    if isinstance(row.numeric, NotObserved) or not isinstance(row.numeric.extraction, NumericFound):
        return None
    written = row.numeric.extraction.value
    value = plain(written)
    if value is None:
        where = f"ledger: cell {row.source_id}, {row.replicate}, {row.condition}: numeric"
        raise JournalError(where, expected="a number in plain form", found=written, todo=TODO)
    return value


def absolute_majority(answers: Sequence[str | None]) -> Majority | NoMajority:
    """The answer that more than half of all seeds gave, those without an answer among them (3 or more of 4)."""
    given = Counter(answer for answer in answers if answer is not None)
    value, most = given.most_common(1)[0] if given else ("", 0)
    counted = Count(count=most, of=len(answers))
    return Majority(value=value, count=counted) if 2 * most > len(answers) else NoMajority(most=counted)


def code_seeds(rows: Rows) -> CodeSeeds:
    """Programs over the seeds. A cell without a program counts in `of` and as nothing else."""
    verdicts = [executed(row) for row in rows]
    passed = count(one is not None and one.fixed_budget_pass for one in verdicts)
    return CodeSeeds(
        extracted=count(
            isinstance(row.code, CodeAccount) and isinstance(row.code.program, ProgramTaken) for row in rows
        ),
        ast_parses=count(one is not None and one.ast_parses for one in verdicts),
        executed=count(one is not None and one.ran for one in verdicts),
        passed=passed,
        strict_complete_passed=count(one is not None and one.strict_complete_pass for one in verdicts),
        observed_any_pass=passed.count > 0,
    )
