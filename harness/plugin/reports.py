"""What leaves a test: reports are ASCII-safe, and a skip is no verdict.

A lone surrogate in a report kills an xdist worker and can leave exit code 0, so none survives.
"""

import warnings
from typing import Any

import pytest

from harness.plugin.options import WHOLE_TIERS

Report = pytest.TestReport | pytest.CollectReport


def clean(text: str) -> str:
    """A text that any encoding and any XML can hold: ASCII, control characters escaped."""
    ascii_text = text.encode("ascii", "backslashreplace").decode("ascii")
    return "".join(one if one in "\n\t" or one.isprintable() else f"\\x{ord(one):02x}" for one in ascii_text)


def scrub(report: Report) -> None:
    """Rewrite the report's texts in place as clean ASCII; the verdict isn't touched."""
    if report.longrepr is not None:
        report.longrepr = _clean_longrepr(report.longrepr)
    report.sections = [(clean(name), clean(text)) for name, text in report.sections]
    if isinstance(report, pytest.TestReport):
        report.user_properties = [(clean(str(name)), _clean_value(value)) for name, value in report.user_properties]
        report.keywords = {clean(str(name)): value for name, value in report.keywords.items()}


def scrub_warning(recorded: warnings.WarningMessage) -> None:
    """Replace a warning that UTF-8 can't hold by one of the same category with its escapes."""
    text = str(recorded.message)
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        recorded.message = UserWarning(clean(text))


def refuse_skip(report: Report, tier: str | None) -> None:
    """In a formal or replay session a skip, an expected failure or a skipped file is a failure."""
    expected_failure = hasattr(report, "wasxfail")
    if tier in WHOLE_TIERS and (report.skipped or expected_failure):
        report.outcome = "failed"
        report.longrepr = f"a {tier} session has no skips: {report.nodeid} was skipped or expected to fail"
        if expected_failure:
            del report.wasxfail  # JUnit would still call the case skipped


def _clean_longrepr(longrepr: Any) -> Any:
    if isinstance(longrepr, tuple):
        path, line, reason = longrepr
        return (clean(str(path)), line, clean(str(reason)))
    text = str(longrepr)
    message = str(getattr(getattr(longrepr, "reprcrash", None), "message", ""))
    # A clean traceback stays an object: the summary line and JUnit take the message from it.
    return longrepr if clean(text) == text and clean(message) == message else clean(text)


def _clean_value(value: object) -> object:
    return clean(value) if isinstance(value, str) else value
