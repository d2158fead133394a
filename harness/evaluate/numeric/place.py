"""Where a number stands, for `numeric-v1`: whether its place says that it is a label and not a result.

A label is an identifier (`x2`), an exponent or index, an ordinal, `Step 2`, `第3`, the number of a list item, one end
of a range, a year after `in`. It is read as an answer only where nothing better stands in the text. Every look reaches
a fixed number of characters to either side. This module doesn't know what the numbers are worth.
"""

import re

from harness.evaluate.numeric.tokens import Token

_REACH = 24

SENTENCE_END = re.compile(r"[\n。！？]|[.!?](?=[ \t\u00a0])")

_CURRENCY = re.compile(r"(?:\b(?:USD|US|EUR|GBP|CNY|RMB|INR|HKD|AUD|CAD|RM|Rs\.?)|\\[A-Za-z]+)\Z")
_ROOT = re.compile(r"\\sqrt\Z|\\log\Z")
_IDENTIFIER = re.compile(r"[A-Za-z]\Z|[A-Za-z][_-]\Z")
_INDEX = re.compile(r"(?:\^|[0-9A-Za-z)}]_)\{?\Z")
_LABEL = re.compile(
    r"(?:\b(?:step|part|question|problem|exercise|example|case|chapter|section|figure|table|equation|eq\.|no\.|day|week)"
    r"[ ]?#?|(?<!#)#|第|步骤[ ]?|例[ ]?|题[ ]?)\Z",
    re.IGNORECASE,
)
_ORDINAL = re.compile(r"(?:st|nd|rd|th)\b")
_DASHES = "-–—~～"
_RANGE_BEFORE = re.compile(rf"[0-9%][{_DASHES}]\$?\Z")
_RANGE_AFTER = re.compile(rf"%?[{_DASHES}]\$?[0-9]")
_LIST_BEFORE = re.compile(r"(?:^|\n)[ \t]*(?:[-*>•][ \t]+)?[(\[*]{0,3}\Z")
_LIST_AFTER = re.compile(r"\*{0,2}[.)\]、:]\*{0,2}(?P<rest>[ \t]+\S)?")
_YEAR = re.compile(r"(?:19|20)[0-9]{2}")
_IN = re.compile(r"\b(?:in|since|by|until)[ ]\Z", re.IGNORECASE)
_YEAR_AFTER = re.compile(r"[ ]?(?:[.,;!?)\n]|\Z)")
_ADJUNCT = re.compile(r"\b(?:in|within|over|after|for|every|per|each)[ ]\Z", re.IGNORECASE)
_TIME_UNIT = re.compile(r"[ -]?(?:second|minute|hour|day|night|week|month|year)s?\b", re.IGNORECASE)


def is_label(text: str, token: Token) -> bool:
    """Does the token's place say that it names or ranges, rather than counts?"""
    before = text[max(0, token.bare - _REACH) : token.bare]
    after = text[token.end : token.end + _REACH]
    if token.plus_minus or _ORDINAL.match(after) or _LABEL.search(before) or _INDEX.search(before):
        return True
    if _is_identifier(before) or _RANGE_BEFORE.search(before) or _RANGE_AFTER.match(after):
        return True
    return is_list_item(text, token) or _is_year(text, token, before, after)


def is_list_item(text: str, token: Token) -> bool:
    """A number that begins a line, then `.`, `)` or `:` and more text on the line."""
    before = text[max(0, token.start - _REACH) : token.start]
    after = _LIST_AFTER.match(text, token.end, token.end + _REACH)
    starts = _LIST_BEFORE.search(before) and ("\n" in before or token.start < _REACH)
    return bool(starts and after and after["rest"])


def is_time_adjunct(text: str, token: Token) -> bool:
    """`in 3 days`, `for 2 hours`: a span of time that qualifies another number, if there is one."""
    before = text[max(0, token.start - _REACH) : token.start]
    return bool(_ADJUNCT.search(before) and _TIME_UNIT.match(text, token.end, token.end + _REACH))


def _is_identifier(before: str) -> bool:
    if _ROOT.search(before):
        return True
    return bool(_IDENTIFIER.search(before)) and not _CURRENCY.search(before)


def _is_year(text: str, token: Token, before: str, after: str) -> bool:
    year = _YEAR.fullmatch(text, token.bare, token.end)
    return bool(year and _IN.search(before) and _YEAR_AFTER.match(after))
