r"""Numbers in a text: `number-r04`, the last one (R04 5), and the gold number of an answer.

A number is a match of `[-+]?\d[\d,]*(\.\d+)?` with ASCII digits only; matches are taken from left to right without
overlap and the last one counts, so `5-3` ends in -3, `1/2` in 2 and `5e3` in 3. A minus sign other than ASCII `-` is no
sign, a digit other than 0-9 is no digit. Commas are dropped wherever they stand. This module doesn't know which domain
a text comes from, and never calls a match an accuracy.
"""

import re

from harness.canon import escaped
from harness.errors import InputError
from harness.records.ledger import LastNumber, NoNumber, NumberFound

NUMBER_R04 = re.compile(r"[-+]?\d[\d,]*(\.\d+)?", re.ASCII)
GOLD_MARKER = "####"


def last_number_r04(text: str) -> LastNumber:
    """The last number of a text in plain form, with its span in code points (R04 5: the last number)."""
    matches = list(NUMBER_R04.finditer(text))
    if not matches:
        return NoNumber()
    last = matches[-1]
    return NumberFound(value=plain_number(last[0]), start=last.start(), end=last.end())


def plain_number(written: str) -> str:
    """The plain decimal form of one written number: `+1,234.50` is `1234.5`, `31.00` is `31`, `-0` is `0`.

    Two numbers are the same decimal value exactly when their plain forms are equal; no digit is rounded away. Anything
    but one whole number of the pattern is misuse.
    """
    if NUMBER_R04.fullmatch(written) is None:
        raise RuntimeError(f"plain_number takes one number, got {written!r}")
    # Strings, not Decimal.normalize: that rounds to the context's 28 digits.
    whole, _, fraction = written.replace(",", "").lstrip("+-").partition(".")
    whole, fraction = whole.lstrip("0") or "0", fraction.rstrip("0")
    digits = f"{whole}.{fraction}" if fraction else whole
    return f"-{digits}" if written.startswith("-") and digits != "0" else digits


def gold_number(answer: str, *, where: str = "gold answer") -> str:
    """The number after `####` that ends a GSM8K answer, in plain form.

    `where` names the answer in the InputError that an answer without exactly one such number gives.
    """
    _, marker, tail = answer.rpartition(GOLD_MARKER)
    if not marker or NUMBER_R04.fullmatch(tail.strip()) is None:
        raise InputError(
            where,
            expected=f"an answer that ends in `{GOLD_MARKER} N`",
            found=f"an end of `{escaped(answer[-40:])}`",
            todo="Check the input file against its registered digest.",
        )
    return plain_number(tail.strip())
