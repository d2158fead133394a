"""The synthetic CDF test of the smoke conditions (R08 5.1): known distributions, u at their edges, the ID each owes.

A case's survivors have its own shares under any temperature and top-p: logits are made for the contract, and where
top-p would filter a survivor, a tail takes as much of the mass as it must. Every CDF is exact in float32 or u stands
far from an edge, so the table holds for any rounding of softmax. Whoever samples fills in what was drawn, and
`synthetic_differences` says what differs, without torch.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from harness.records.tapes import SamplerRule, SyntheticOutcome

Tail = Literal["where_needed", "some", "everywhere"]  # "where_needed": none beside survivors that top-p keeps
VOCABULARY = 102_400  # columns of the registered model's logits
_STEP = 2.0**-24  # between 0.5 and 1, float32 numbers are this far apart
_FAR = -200.0  # logarithm of a weight that float32 holds as 0 beside 1
_TAIL = 0.012  # share of a tail's mass before top-p filters it, where nothing forces another


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticCase:
    """`weights` by ID over `columns` or more, the largest 1; `u` in binary64; the ID owed under either rule.

    Level `logits` goes through the warpers: the weights' shares are those after top-p, the tail's IDs are what it
    filters. Level `probabilities` begins at the cumulative sum: the weights are probabilities, and 0 is filtered.
    """

    name: str
    level: Literal["logits", "probabilities"]
    columns: int
    weights: tuple[tuple[int, float], ...]
    tail: Tail
    u: float
    token_r08: int
    token_v1: int
    gap_r08: bool

    def dense(self, temperature: float, top_p: float) -> list[float]:
        """All columns in ID order: logits under that contract, or the probabilities as they are."""
        if self.level == "probabilities":
            row = [0.0] * self.columns
            for token, weight in self.weights:
                row[token] = weight
            return row
        row = [temperature * _FAR] * self.columns
        places, weight = self._tail(1.0 - top_p)
        if places:
            row += row[:1] * (places[-1] + 1 - self.columns)
            filtered = temperature * math.log(weight)
            for token in places:
                row[token] = filtered
        for token, own in self.weights:
            row[token] = temperature * math.log(own)
        return row

    def _tail(self, filtered: float) -> tuple[list[int], float]:
        """Ascending IDs that top-p filters and their weight: at most `filtered` of the mass, with any survivor more."""
        together = sum(weight for _, weight in self.weights)
        smallest = min(weight for _, weight in self.weights) / together
        if smallest > filtered:
            mass = 0.0 if self.tail == "where_needed" else min(_TAIL, filtered / 2)
        else:
            mass = (filtered - smallest / 2) / (1 - smallest / 2)
        if mass == 0.0:
            return [], 0.0
        share = mass / (1 - mass)  # beside the survivors' together
        taken = {token for token, _ in self.weights}
        if self.tail == "everywhere":
            places = [place for place in range(self.columns) if place not in taken]
        else:  # enough of them that each is smaller than any survivor
            number = max(3, math.ceil(2 * share / smallest))
            places = [place for place in range(number + len(taken)) if place not in taken][:number]
        return places, together * share / len(places)


def _logits(
    name: str,
    weights: dict[int, float],
    u: float,
    token: int,
    tail: Tail = "where_needed",
) -> SyntheticCase:
    return SyntheticCase(
        name=name,
        level="logits",
        columns=40,
        weights=tuple(weights.items()),
        tail=tail,
        u=u,
        token_r08=token,
        token_v1=token,
        gap_r08=False,
    )


def _probabilities(name: str, weights: dict[int, float], u: float, tokens: tuple[int, int]) -> SyntheticCase:
    return SyntheticCase(
        name=name,
        level="probabilities",
        columns=8,
        weights=tuple(weights.items()),
        tail="where_needed",
        u=u,
        token_r08=tokens[0],
        token_v1=tokens[1],
        gap_r08=tokens[0] != tokens[1],
    )


# Sixteen survivors of equal probability: every edge is a multiple of 1/16, exact; filtered IDs between and around them.
_SIXTEEN = {3 + 2 * place: 1.0 for place in range(16)}
_HALVES = {17: 1.0, 99_999: 1.0}
_RISING, _FALLING = {2: 1 / 3, 5: 1.0}, {2: 1.0, 5: 1 / 3}  # a quarter and three
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
    _logits("tail_filtered_low", _SIXTEEN, 0.001, 3, "some"),
    _logits("tail_filtered_edge", _SIXTEEN, 1 / 16, 3, "some"),
    _logits("one_survivor_low", {7: 1.0}, 2.0**-65, 7),
    _logits("one_survivor_high", {7: 1.0}, 1.0, 7),
    _logits("temperature", _RISING, 0.3, 5),
    _logits("id_order_rising", _RISING, 0.2, 2),
    _logits("id_order_falling", _FALLING, 0.2, 2),
    replace(_logits("vocabulary_low", _HALVES, 0.5, 17), columns=VOCABULARY),
    replace(_logits("vocabulary_high", _HALVES, 1.0, 99_999), columns=VOCABULARY),
    replace(_logits("vocabulary_tail", _HALVES, 1.0, 99_999, "everywhere"), columns=VOCABULARY),
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
