r"""The value that a stretch of folded text states, for `numeric-v1`.

`sole_value` reads a box: the whole content is one number, with a unit, words or `x =` around it; a list, a tuple or an
expression that isn't worked out is none. `leading_value` reads what follows a marker: the number that stands next, and
of an equation `3 * 4 = 12` the last side that is one number. This module doesn't know which marker led here.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from harness.evaluate.numeric.place import SENTENCE_END, is_label, is_list_item
from harness.evaluate.numeric.tokens import Token, tokens

_HARMLESS = (
    "text|textbf|textit|textrm|mathrm|mathbf|mathit|mathsf|mbox|bf|rm|bm|boldsymbol|left|right|big|Big|displaystyle"
    "|quad|qquad|approx|circ|degree|boxed|fbox|pounds|euro|yen|percent|rightarrow|Rightarrow|therefore|implies"
)
# May stand between a marker and its number.
_LEAD = re.compile(
    rf"""(?:
      [\s:*_"'`$(\[{{≈~=>€£¥₹₩|]
    | \\[$(\[,!;:]
    | \\(?:{_HARMLESS})(?![A-Za-z])
    | (?:USD|US|EUR|GBP|CNY|RMB|INR|HKD|AUD|CAD|RM|Rs\.?)(?=[ ]?[$0-9])
    | (?:about|approximately|roughly|around|only|just|exactly|simply|thus|therefore|equal\ to|a\ total\ of)(?![A-Za-z])
    | [是为约共]|一共|大约
    | [A-Za-z](?=[ ]?=)
    )*+""",
    re.VERBOSE | re.IGNORECASE,
)
_EQUALS = re.compile(r"=|\bis\b")
_OPERATOR = re.compile(r"[-=+×·÷/–]|(?<!\*)\*(?!\*)|(?<![A-Za-z])[xX](?![A-Za-z])|\\times|\\cdot|\\div|\bis\b")
_BREAK = re.compile(r"[,;，；、]|\band\b|\bor\b|[\n。！？]|[.!?](?=[ \t\u00a0]|\Z)")
_HEADING = re.compile(r"\*{0,2}[.):]\*{0,2}[ \t]+[A-Za-z*\u4e00-\u9fff][^\n]*+\n\s*+\S")

_MACRO = re.compile(r"\\([A-Za-z]+)")
_KNOWN_MACROS = frozenset((*_HARMLESS.split("|"), "times", "cdot", "div", "frac", "dfrac", "tfrac", "cfrac"))
_UNIT_POWER = re.compile(r"(?<=[A-Za-z})])\^[ ]?\{?-?[0-9]\}?|\^[ ]?\{?[ ]?(?:\\circ|°)\}?")
_LISTS = re.compile(r"[,;，；、:]|\band\b|\bor\b|\bto\b|\n")
_WORKING = re.compile(r"[+*×·÷^√π!±]|\\(?:times|cdot|div)|(?:^|[\s0-9)}])[-–/](?:[\s(]|$)")
_NO_ANSWER = re.compile(
    r"(?:there[ ]is[ ])?(?:no[ ](?:real[ ])?(?:solutions?|answer)|none|undefined|unknown|not[ ]defined|n/a|dne"
    r"|impossible|does[ ]not[ ]exist|(?:cannot|can't|can[ ]not)[ ]be[ ]determined|not[ ]enough[ ]information)\b"
    r"|无解|不存在|无法确定",
    re.IGNORECASE,
)
_NO_ANSWER_REACH = 60
_SPACED = re.compile(r"[ ]*+(?P<digits>[1-9][0-9]{0,2}(?:[ ][0-9]{3})++)[ ]*+")


def sole_value(text: str, start: int, end: int) -> Token | None:
    """The one number that text[start:end] states, or None. Only here may plain spaces group thousands: `1 234`."""
    if spaced := _SPACED.fullmatch(text, start, end):
        first, stop = spaced.span("digits")
        return Token(first, first, stop, spaced["digits"].replace(" ", ""), plus_minus=False)
    if any(macro[1] not in _KNOWN_MACROS for macro in _MACRO.finditer(text, start, end)):
        return None
    found = [token for token in tokens(text, start, end) if not _is_unit_power(text, token)]
    if not found or any(token.value is None or token.plus_minus for token in found):
        return None
    if any(_LISTS.search(text, one.end, other.start) for one, other in pairwise(found)):
        return None
    alone = {side[0].start for side in _sides(text, found) if len(side) == 1}
    places = [place for place in _between(found, start, end) if place[0].start in alone]
    usable = [token for token, left, right in places if not _is_worked(text, token, left, right)]
    return usable[-1] if usable else None


def leading_value(text: str, start: int, end: int) -> Token | None:
    """The number that follows a marker which ends at `start`, no further than `end`; None where something else does."""
    start, end = stretch(text, start, end)
    lead = _LEAD.match(text, start, end)
    chain = _chain(text, tokens(text, start, end))
    first = next(chain, None)
    if lead is None or first is None or first.start > lead.end() or _is_heading(text, first, start):
        return None
    if is_list_item(text, first) or first.plus_minus or (is_label(text, first) and not _opens_chain(text, first)):
        return None
    alone = [side[0] for side in _sides(text, [first, *chain]) if len(side) == 1 and side[0].value is not None]
    return alone[-1] if alone else None


def sentence_value(text: str, start: int, end: int) -> Token | None:
    """The last number that is no label in the first sentence after a marker, on the marker's own line."""
    stop = SENTENCE_END.search(text, start, end)
    found = tokens(text, start, stop.start() if stop else end)
    results = [token for token in found if token.value is not None and not is_label(text, token)]
    return results[-1] if results else None


def states_no_answer(text: str, start: int, end: int) -> bool:
    """Does a marker or a box begin with "no solution", "undefined", "cannot be determined" or the like?"""
    lead = _LEAD.match(text, start, end)
    begin = lead.end() if lead else start
    return _NO_ANSWER.match(text, begin, min(end, begin + _NO_ANSWER_REACH)) is not None


def stretch(text: str, start: int, end: int) -> tuple[int, int]:
    """The rest of the marker's line, or, where that is blank, the next line with anything on it."""
    blank = re.compile(r"[\s*_]*+").match(text, start, end)
    begin = blank.end() if blank and "\n" in blank[0] else start
    stop = text.find("\n", begin, end)
    return begin, end if stop < 0 else stop


def _chain(text: str, found: Iterator[Token]) -> Iterator[Token]:
    """The first token, and each next one as long as only an operator's text lies between."""
    last = next(found, None)
    while last is not None:
        yield last
        following = next(found, None)
        if following is None or not _linked(text, last.end, following.start, following.bare):
            return
        last = following


def _linked(text: str, start: int, end: int, bare: int) -> bool:
    return bool(_OPERATOR.search(text, start, bare)) and not _BREAK.search(text, start, end)


def _sides(text: str, found: list[Token]) -> list[list[Token]]:
    """Tokens grouped by the equals signs between them."""
    sides = [found[:1]]
    for one, other in pairwise(found):
        if _EQUALS.search(text, one.end, other.start):
            sides.append([other])
        else:
            sides[-1].append(other)
    return sides


def _between(found: list[Token], start: int, end: int) -> Iterator[tuple[Token, int, int]]:
    """Each token with the end of the one before it and the start of the one after it."""
    lefts = [start, *(token.end for token in found[:-1])]
    rights = [*(token.start for token in found[1:]), end]
    return zip(found, lefts, rights, strict=True)


def _is_worked(text: str, token: Token, left: int, right: int) -> bool:
    """Is the token part of an expression (`5 + x`), as far as the neighbouring tokens and equals signs?"""
    before, after = text[left : token.start].rpartition("=")[2], text[token.end : right].partition("=")[0]
    return bool(_WORKING.search(_UNIT_POWER.sub("", f"{before} # {after}".replace("**", ""))))


def _is_unit_power(text: str, token: Token) -> bool:
    before = text[max(0, token.start - 4) : token.start]
    return re.search(r"[A-Za-z})][ ]?\^[ ]?\{?\Z", before) is not None


def _is_heading(text: str, token: Token, start: int) -> bool:
    """`#### 3. Compute the total`, with a body below it."""
    return text[start - 4 : start] == "####" and _HEADING.match(text, token.end) is not None


def _opens_chain(text: str, token: Token) -> bool:
    """A label by a dash alone (`10-4 = 6`) may open an equation; a range has no equals sign after it."""
    return re.compile(r"[ ]?[-–][^=,;\n]{0,40}=").match(text, token.end) is not None
