"""Text judges: an output against an expected text, as a whole or by the last match of a pattern. Pure functions."""

from typing import Literal

from harness.protocols.pattern import compiled

Compare = Literal["verbatim", "stripped", "stripped_casefold"]


def compared(text: str, how: Compare) -> str:
    """A text as it is compared: as it stands, without white space around it, or casefolded besides."""
    match how:
        case "verbatim":
            return text
        case "stripped":
            return text.strip()
        case "stripped_casefold":
            return text.strip().casefold()


def exact(text: str, expected: str, how: Compare) -> bool:
    """Whether the whole text is the expected one."""
    return compared(text, how) == compared(expected, how)


def last_match(text: str, pattern: str) -> str | None:
    """The last match of a pattern: its first group, where it has one that took part, else all of it; or None.

    In time that grows with the text at most as its square. ProtocolError where RE2 doesn't have the pattern.
    """
    wanted, found = compiled(pattern), None
    for found in wanted.finditer(text):  # noqa: B007 - the last one is wanted
        pass
    if found is None:
        return None
    return found[1] if wanted.groups and found[1] is not None else found[0]
