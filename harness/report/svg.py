"""Matplotlib's SVG, as it may stand in a page under a strict policy: no style, no metadata, no address, own IDs.

Text stays text. Style declarations become presentation attributes, since the policy allows no inline style; names of
IDs get the chart's own prefix, since one page has several charts.
"""

import io
import re
import xml.etree.ElementTree as ET
from typing import Any

import matplotlib as mpl
from markupsafe import Markup, escape
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

SALT = "pregate"
SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": SALT,
    "text.parse_math": False,
    "text.usetex": False,
    "axes.formatter.use_locale": False,
    "font.family": ["DejaVu Sans"],  # matplotlib's own file: the same metrics everywhere
    "font.size": 8.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 8.0,
    "hatch.linewidth": 0.6,
}
NO_METADATA = {"Creator": None, "Date": None, "Format": None, "Type": None}
REFERENCE = re.compile(r"url\(#([^)]+)\)")


def settings() -> Any:
    """Every setting of matplotlib: its own defaults and ours, nothing of a user's file."""
    defaults: dict[str, Any] = {name: value for name, value in mpl.rcParamsDefault.items() if name[:7] != "backend"}
    return defaults | SETTINGS


def inline(figure: Figure, *, key: str, title: str, description: str) -> Markup:
    """The figure as an `<svg>` element with `<title>` and `<desc>`; `key` makes its IDs those of no other chart."""
    target = io.StringIO()
    FigureCanvasSVG(figure).print_figure(target, format="svg", metadata=NO_METADATA)
    root = ET.fromstring(target.getvalue())  # noqa: S314  as above
    names = _plain(root, key)
    width, height = (root.get("viewBox") or "0 0 1 1").split()[2:]
    body = "".join(ET.tostring(child, encoding="unicode") for child in root if child.tag in names)
    return Markup(
        '<svg class="chart" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img"'
        ' aria-labelledby="{key}-title {key}-desc">'
        '<title id="{key}-title">{title}</title><desc id="{key}-desc">{desc}</desc>{body}</svg>'
    ).format(width=width, height=height, key=key, title=title, desc=description, body=Markup(body))  # noqa: S704


def _plain(root: ET.Element, key: str) -> set[str]:
    """Strip namespaces, metadata and styles in place; the tags that stay at the top."""
    for parent in list(root.iter()):
        for child in list(parent):
            if _local(child.tag) in ("metadata", "style"):
                parent.remove(child)
    for element in root.iter():
        element.tag = _local(element.tag)
        found = {_local(name): value for name, value in element.attrib.items()}
        found |= dict(_declarations(found.pop("style", "")))
        if "id" in found:
            found["id"] = f"{key}-{found['id']}"
        if found.get("href", "").startswith("#"):
            found["href"] = f"#{key}-{found['href'][1:]}"
        element.attrib.clear()
        element.attrib |= {name: REFERENCE.sub(rf"url(#{key}-\1)", value) for name, value in found.items()}
    return {child.tag for child in root}


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _declarations(style: str) -> list[tuple[str, str]]:
    """CSS declarations as attributes; of a font its size alone, for the page has one family."""
    pairs = [(name.strip(), value.strip()) for name, _, value in (one.partition(":") for one in style.split(";"))]
    found = []
    for name, value in pairs:
        if name == "font":
            size = re.search(r"[\d.]+px", value)
            found += [("font-size", size[0])] if size else []
        elif name and name not in ("font-family", "stroke-linejoin", "font-stretch", "font-variant"):
            found.append((name, value))
    return found


def bar(count: int, of: int) -> Markup:
    """A small bar of `count` of `of`, for the eye alone: the fraction stands beside it as text."""
    width = round(60 * count / of, 2) if of else 0
    return Markup(
        '<svg class="bar" width="60" height="8" viewBox="0 0 60 8" aria-hidden="true"><rect class="all" width="60"'
        ' height="8"/><rect class="some" width="{}" height="8"/></svg>'
    ).format(escape(str(width)))
