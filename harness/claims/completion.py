"""Counts of a completion run (R05 4 and 7) that may feed a figure: four accounts, the gain, and the diagnostics."""

from collections.abc import Callable, Mapping

from harness.claims.behavior import NUMBERS, TESTS, domain_planned
from harness.claims.source import STATISTICS, Planned, Source, absent, cells_planned, decided_by_run
from harness.claims.view import RunView
from harness.protocols.load import LoadedProtocol
from harness.records.completion import CodeSummary, CompletionStatistics, CompletionSummary, NumericSummary
from harness.records.completion import VerdictSummary as Verdicts
from harness.records.ledger import Count, NotObserved
from harness.records.protocol import Tier

Pick = Callable[[CompletionSummary], Count | NotObserved]


def _whole_run(pick: Pick) -> Callable[[RunView], Count]:
    """The count over all cells of the run, not of a group."""

    def count(view: RunView) -> Count:
        if not isinstance(view.statistics, CompletionStatistics):
            raise absent(view, "statistics of a completion run")
        groups = [one.cells for one in view.statistics.groups if not one.domain and not one.condition]
        found = pick(groups[0]) if len(groups) == 1 else NotObserved(reason="one group over all cells")
        if isinstance(found, NotObserved):
            raise absent(view, found.reason)
        return Count(count=found.count, of=found.of)

    return count


def _numeric(pick: Callable[[NumericSummary], Count]) -> Pick:
    return lambda cells: pick(cells.numeric) if isinstance(cells.numeric, NumericSummary) else cells.numeric


def _code(pick: Callable[[Verdicts], Count]) -> Pick:
    def count(cells: CompletionSummary) -> Count | NotObserved:
        if not isinstance(cells.code, CodeSummary):
            return cells.code
        return pick(cells.code.verdicts) if isinstance(cells.code.verdicts, Verdicts) else cells.code.verdicts

    return count


def judged_planned(loaded: LoadedProtocol, tier: Tier, domains: tuple[str, ...]) -> Planned:
    """The cells of the domains that have a judge: a gold number or tests."""
    parts = [domain_planned(fields)(loaded, tier, domains).of for fields in (NUMBERS, TESTS)]
    return Planned(sum(parts), exact=True)


def _source(pick: Pick, planned: Callable[[LoadedProtocol, Tier, tuple[str, ...]], Planned]) -> Source:
    return Source((STATISTICS,), planned, _whole_run(pick))


def _diagnostic(pick: Pick) -> Source:
    return Source((STATISTICS,), decided_by_run, _whole_run(pick), diagnostic=True)


SOURCES: Mapping[str, Source] = {
    "statistics.natural_eos": _source(lambda one: one.natural_eos, cells_planned),
    "statistics.budget_truncated": _source(lambda one: one.budget_truncated, cells_planned),
    "statistics.other_stop": _source(lambda one: one.other_stop, cells_planned),
    "statistics.explicit_terminal": _source(lambda one: one.explicit_terminal, judged_planned),
    "statistics.evaluable": _source(lambda one: one.evaluable, judged_planned),
    "statistics.numeric_fixed_budget": _source(_numeric(lambda one: one.fixed_budget_exact), domain_planned(NUMBERS)),
    "statistics.numeric_strict": _source(_numeric(lambda one: one.strict_complete_exact), domain_planned(NUMBERS)),
    "statistics.code_fixed_budget": _source(_code(lambda one: one.fixed_budget_passed), domain_planned(TESTS)),
    "statistics.code_strict": _source(_code(lambda one: one.strict_complete_passed), domain_planned(TESTS)),
    "statistics.baseline_natural_eos": _source(lambda one: one.gain.baseline_natural_eos, cells_planned),
    "statistics.baseline_prefix": _source(lambda one: one.gain.prefix_exact, cells_planned),
    "statistics.newly_ended": _source(lambda one: one.gain.newly_ended, decided_by_run),
    "statistics.conditioned_numeric": _diagnostic(lambda one: one.diagnostics.completion_conditioned_numeric_exact),
    "statistics.conditioned_code": _diagnostic(lambda one: one.diagnostics.completion_conditioned_code_passed),
}
