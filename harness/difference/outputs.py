"""One generated cell on both sides, over the tokens that both budgets allow.

A smaller budget ends the same sequence earlier: the tokens of the larger one are cut to it, and stop as they would have
stopped there. Whatever is read off a whole output (text, accounts, verdicts) is compared under equal budgets alone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from harness.compare import common_prefix, compare_ids
from harness.difference.leaves import same
from harness.difference.side import Plain, SideUnit
from harness.difference.tokens import Decoder, Decoders
from harness.records.completion import Stop
from harness.records.difference import End, NoParting, NoToken, OutputPair, Parting, Token

# Of a frozen cell: its identity, and what is compared under names of its own.
OWN = ("condition", "prompt_sha256", "generated_ids", "generated_sha256", "text_escaped", "text_sha256", "eos")
COUNTED = ("truncated", "length")
DRAWS = {"tape": "label", "tape_sha256": "sha256"}  # in a cell's account, and in its unit's evidence
NO_VERDICT = ("tier", "infrastructure")


@dataclass(frozen=True, slots=True)
class Cut:
    """What a cell generated within a budget."""

    ids: tuple[int, ...]
    stop: Stop


def cut(cell: Plain, budget: int) -> Cut:
    """The cell as the budget would have ended it; unchanged where it is within it."""
    ids = tuple(cell["generated_ids"])
    if len(ids) > budget:
        return Cut(ids[:budget], "budget_truncated")
    if cell["eos"] == cell["truncated"]:
        return Cut(ids, "other_stop")
    return Cut(ids, "natural_eos" if cell["eos"] else "budget_truncated")


def output_pair(a: Cut, b: Cut, decoders: Decoders) -> OutputPair:
    """Both sides' tokens: how far they are the same, and the first step in which they aren't."""
    return OutputPair(
        comparison=compare_ids(a.ids, b.ids),
        parting=_parting(a.ids, b.ids, decoders),
        a=End(stop=a.stop, length=len(a.ids)),
        b=End(stop=b.stop, length=len(b.ids)),
    )


def _parting(a: tuple[int, ...], b: tuple[int, ...], decoders: Decoders) -> Parting | NoParting:
    if a == b:
        return NoParting()
    step = common_prefix(a, b)
    return Parting(step=step, a=_token(a, step, decoders.a), b=_token(b, step, decoders.b))


def _token(ids: tuple[int, ...], step: int, decoder: Decoder) -> Token | NoToken:
    return Token(id=ids[step], text=decoder.text(ids[step])) if step < len(ids) else NoToken()


def output_fields(a: SideUnit, b: SideUnit, condition: str, cuts: tuple[Cut, Cut], *, whole: bool) -> Iterator[str]:
    """The names of everything that differs in a cell, tokens before what follows from them."""
    left, right = a.cells[condition], b.cells[condition]
    pairs = [
        ("source_text", a.plain["source_text_sha256"], b.plain["source_text_sha256"]),
        ("prompt", left["prompt_sha256"], right["prompt_sha256"]),
        ("draws", _draws(a, left), _draws(b, right)),
        ("tokens", cuts[0].ids, cuts[1].ids),
        ("end", cuts[0].stop, cuts[1].stop),
    ]
    if whole:
        pairs += [("text", left["text_sha256"], right["text_sha256"])]
    yield from (name for name, one, other in pairs if one != other)
    if whole and a.accounts and b.accounts:
        yield from _accounts(left, right)
    if whole and has_verdict(a, condition) and has_verdict(b, condition):
        yield from _verdicts(a.verdicts[condition], b.verdicts[condition])


def _draws(unit: SideUnit, cell: Plain) -> tuple[object, ...]:
    """What the randomness of a cell comes from; nothing of a greedy one."""
    consumed = cell.get("consumed", {})
    tape = (consumed.get(name, unit.drawn.get(own)) for name, own in DRAWS.items())
    return (unit.plain.get("run_seed"), *tape)


def _accounts(left: Plain, right: Plain) -> Iterator[str]:
    """What a ledger added to the cell, field by field."""
    names = [name for name in dict.fromkeys((*left, *right)) if name not in (*OWN, *COUNTED)]
    yield from (name for name in names if not same(left.get(name), right.get(name)))


def has_verdict(unit: SideUnit, condition: str) -> bool:
    """Whether something was judged of a program: also that there was none to execute."""
    verdict = unit.verdicts.get(condition, {}).get("verdict")
    return verdict is not None and verdict.get("reason") not in NO_VERDICT


def _verdicts(left: Mapping[str, object], right: Mapping[str, object]) -> Iterator[str]:
    """The verdict, and what follows from it where the rule says so."""
    names = dict.fromkeys((*left, *right))
    yield from (name for name in names if not same(left.get(name), right.get(name)))
