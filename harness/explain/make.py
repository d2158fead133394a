"""The explanation as one record: what compare found, where the sides part, what was made again, and the sentence."""

from harness.explain.sentence import sentence
from harness.records.difference import SideComparison
from harness.records.explanation import Divergence, Explanation, NoDivergence, NoRerun, Rerun


def explanation(compared: SideComparison, found: Divergence | NoDivergence, made: Rerun | NoRerun) -> Explanation:
    """All of it together."""
    return Explanation(
        schema=1,
        verdict=compared.verdict,
        a=compared.a,
        b=compared.b,
        equal=compared.equal,
        budget=compared.budget,
        judged_by=compared.judged_by,
        found=found,
        rerun=made,
        sentence=sentence(compared, found, made),
    )
