"""From a page to markup. Every value that a template prints passes `finalize`: shown exactly, acting as nothing."""

import base64
import hashlib
from collections.abc import Callable
from importlib.resources import files
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from harness.report import head
from harness.report.cells import kind
from harness.report.page import Chart, Link, Listing, Note, Table
from harness.report.svg import bar
from harness.report.visible import spelled, visible

if TYPE_CHECKING:
    from harness.report.make import Page

TEMPLATES = "templates"


def render(page: "Page") -> str:
    """The whole document."""
    environment = Environment(
        loader=PackageLoader("harness.report", TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"attribute": attribute, "kind": kind}
    environment.tests |= {
        name: _is(kind_of)
        for name, kind_of in (("table", Table), ("chart", Chart), ("listing", Listing), ("note", Note), ("link", Link))
    }
    style, script = (_asset(name) for name in ("report.css", "report.js"))
    return environment.get_template("report.html.j2").render(
        page=page,
        claims=page.claims,
        audit=page.view.audit,
        head=head,
        bar=bar,
        style=Markup(style),  # noqa: S704  a file of this package
        script=Markup(script),  # noqa: S704  the same
        style_hash=Markup(_hash(style)),  # noqa: S704  base64
        script_hash=Markup(_hash(script)),  # noqa: S704  base64
    )


def shown(value: object) -> Markup:
    """What stands in the page for a value: itself where it is markup of this package, else its visible text."""
    return value if isinstance(value, Markup) else visible(str(value))


def attribute(value: str) -> Markup:
    """A value inside a quoted attribute, where no span can stand: escapes are in the value itself."""
    return escape(spelled(value))


def _is(kind_of: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, kind_of)


def _asset(name: str) -> str:
    return (files("harness.report") / TEMPLATES / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """The source expression of an inline element under Content-Security-Policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
