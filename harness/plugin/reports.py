"""What leaves a test: reports are ASCII-safe, and a skip is no verdict.

A lone surrogate in a report kills an xdist worker and can leave exit code 0, so none survives.
"""

from typing import Any

import pytest

from harness.plugin.options import WHOLE_TIERS


def clean(text: str) -> str:
    """A text that any encoding and any XML can hold: ASCII, control characters escaped."""
    ascii_text = text.encode("ascii", "backslashreplace").decode("ascii")
    return "".join(one if one in "\n\t" or one.isprintable() else f"\\x{ord(one):02x}" for one in ascii_text)


def scrub(report: pytest.TestReport) -> None:
    """Rewrite the report's texts in place as clean ASCII; the verdict isn't touched."""
    if report.longrepr is not None:
        report.longrepr = _clean_longrepr(report)
    report.sections = [(clean(name), clean(text)) for name, text in report.sections]
    report.user_properties = [(clean(str(name)), _clean_value(value)) for name, value in report.user_properties]


def refuse_skip(report: pytest.TestReport, tier: str | None) -> None:
    """In a formal or replay session a skip (or an expected failure) is a failure."""
    if tier in WHOLE_TIERS and (report.skipped or hasattr(report, "wasxfail")):
        report.outcome = "failed"
        report.longrepr = f"a {tier} session has no skips: {report.nodeid} was skipped"


def _clean_longrepr(report: pytest.TestReport) -> Any:
    if isinstance(report.longrepr, tuple):
        path, line, reason = report.longrepr
        return (clean(str(path)), line, clean(str(reason)))
    return clean(str(report.longrepr))


def _clean_value(value: object) -> object:
    return clean(value) if isinstance(value, str) else value
