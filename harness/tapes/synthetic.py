"""The synthetic CDF test of the smoke conditions (R08 5.1): known distributions, u at their edges, the ID each owes.

Every case's CDF is exact in float32 or its u stands far from an edge, so the table holds for any rounding of softmax.
Registered for temperature 0.3 and top-p 0.95. The cases are data: whoever samples fills in what was drawn, and
`synthetic_differences` says what differs, without torch.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from harness.records.tapes import SamplerRule, SyntheticOutcome

TEMPERATURE, TOP_P = 0.3, 0.95
VOCABULARY = 102_400  # columns of the registered model's logits
_STEP = 2.0**-24  # between 0.5 and 1, float32 numbers are this far apart
_FAR = -60.0  # a logit that top-p always filters beside others near 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticCase:
    """`values` by ID over `columns`, `background` elsewhere; `u` in binary64; the ID owed under either rule.

    Level `logits` goes through the warpers; level `probabilities` begins at the cumulative sum, its zeros filtered.
    """

    name: str
    level: Literal["logits", "probabilities"]
    columns: int
    background: float
    values: tuple[tuple[int, float], ...]
    u: float
    token_r08: int
    token_v1: int
    gap_r08: bool

    def dense(self) -> list[float]:
        """All columns in ID order."""
        row = [self.background] * self.columns
        for token, value in self.values:
            row[token] = value
        return row


def _logits(name: str, values: dict[int, float], u: float, token: int) -> SyntheticCase:
    return SyntheticCase(
        name=name,
        level="logits",
        columns=40,
        background=_FAR,
        values=tuple(values.items()),
        u=u,
        token_r08=token,
        token_v1=token,
        gap_r08=False,
    )


def _probabilities(name: str, values: dict[int, float], u: float, tokens: tuple[int, int]) -> SyntheticCase:
    return SyntheticCase(
        name=name,
        level="probabilities",
        columns=8,
        background=0.0,
        values=tuple(values.items()),
        u=u,
        token_r08=tokens[0],
        token_v1=tokens[1],
        gap_r08=tokens[0] != tokens[1],
    )


# Sixteen survivors of equal probability: every edge is a multiple of 1/16, exact; filtered IDs between and around them.
_SIXTEEN = {3 + 2 * place: 0.0 for place in range(16)}
_TAIL = {place: 0.3 * math.log(0.064) for place in range(3)}  # together 1.2 % of the mass: within what top-p removes
_TWO = {17: 0.0, 99_999: 0.0}  # halves
_QUARTERS = (0.0, 0.3 * math.log(3.0))  # 1/4 and 3/4 at the registered temperature
_SHORT = {1: 0.25, 3: 0.5}  # survivors that sum to 0.75: a gap as wide as a quarter
_ULP = {1: 0.5, 3: 0.5 - _STEP}  # survivors that sum to the largest u there is

CASES: tuple[SyntheticCase, ...] = (
    _logits("first_edge", _SIXTEEN, 1 / 16, 3),
    _logits("first_edge_above", _SIXTEEN, 1 / 16 + 2.0**-27, 5),
    _logits("middle_edge", _SIXTEEN, 8 / 16, 17),
    _logits("middle_edge_above", _SIXTEEN, 8 / 16 + _STEP, 19),
    _logits("last_edge", _SIXTEEN, 15 / 16, 31),
    _logits("last_edge_above", _SIXTEEN, 15 / 16 + _STEP, 33),
    _logits("u_zero", _SIXTEEN, 0.0, 3),
    _logits("u_smallest", _SIXTEEN, 2.0**-65, 3),
    _logits("u_largest_float32", _SIXTEEN, 1 - _STEP, 33),
    _logits("u_rounds_to_one", _SIXTEEN, 1 - _STEP / 2, 33),
    _logits("u_one", _SIXTEEN, 1.0, 33),
    _logits("tail_filtered_low", _SIXTEEN | _TAIL, 0.001, 3),
    _logits("tail_filtered_edge", _SIXTEEN | _TAIL, 1 / 16, 3),
    _logits("one_survivor_low", {7: 0.0}, 2.0**-65, 7),
    _logits("one_survivor_high", {7: 0.0}, 1.0, 7),
    _logits("temperature", {2: _QUARTERS[0], 5: _QUARTERS[1]}, 0.3, 5),
    _logits("id_order_rising", {2: _QUARTERS[0], 5: _QUARTERS[1]}, 0.2, 2),
    _logits("id_order_falling", {2: _QUARTERS[1], 5: _QUARTERS[0]}, 0.2, 2),
    replace(_logits("vocabulary_low", _TWO, 0.5, 17), columns=VOCABULARY),
    replace(_logits("vocabulary_high", _TWO, 1.0, 99_999), columns=VOCABULARY),
    replace(_logits("vocabulary_tail", _TWO, 1.0, 99_999), columns=VOCABULARY, background=-5.4),
    _probabilities("gap_edge", _SHORT, 0.75, (3, 3)),
    _probabilities("gap_inside", _SHORT, 0.75 + _STEP, (7, 3)),
    _probabilities("gap_top", _SHORT, 1.0, (7, 3)),
    _probabilities("clamped_into_survivors", _ULP, 1.0, (3, 3)),
)


def synthetic_differences(rule: SamplerRule, outcomes: Iterable[SyntheticOutcome]) -> tuple[str, ...]:
    """What isn't as the table says, by case: drawn once, the ID, the gap flag. Empty where all cases hold."""
    found = list(outcomes)
    counts = Counter(one.case for one in found)
    differences = [
        f"{case.name}: expected one outcome, found {counts[case.name]}" for case in CASES if counts[case.name] != 1
    ]
    cases = {case.name: case for case in CASES}
    for one in found:
        if one.case not in cases:
            differences.append(f"{one.case}: expected a case of the table, found none")
            continue
        owed = _owed(cases[one.case], rule)
        if (one.token, one.gap) != owed:
            differences.append(f"{one.case}: expected (ID, gap) {owed}, found {(one.token, one.gap)}")
    return tuple(differences)


def _owed(case: SyntheticCase, rule: SamplerRule) -> tuple[int, bool]:
    return (case.token_r08, case.gap_r08) if rule == "icdf-r08" else (case.token_v1, False)
