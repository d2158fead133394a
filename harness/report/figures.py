"""The charts of the page, drawn with matplotlib: 4.6 inches wide, so that their text can be read on a phone.

Series differ by hatch, marker or dash as well as by colour. No chart has a number that its table hasn't.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from harness.report.page import Chart, Table
from harness.report.svg import inline, settings

WIDTH = 4.6  # inches
INK = "#1b1f24"
FILLS = ("#1f5aa6", "#79aee0", "#e0a030", "#f3dcb0", "#8a8f98")
HATCHES = ("", "///", "", "...", "xxx")
LINES = ("#1f5aa6", "#b3490b", "#17694a", "#7a3b9a", "#8a6d00", "#5b6470")
DASHES: tuple[str | tuple[int, tuple[int, ...]], ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


def ascii_text(text: str) -> str:
    """What a chart may write: matplotlib has no glyph for everything."""
    return text.encode("ascii", "backslashreplace").decode("ascii")


@dataclass(frozen=True, slots=True)
class Drawing:
    """How a figure is filled, and its height in inches."""

    draw: Callable[[Figure], None]
    height: float


def chart(key: str, title: str, description: str, drawing: Drawing, behind: Table) -> Chart:
    """A chart with its table, `key` its name in the page. No matplotlib settings of a user reach it."""
    with mpl.rc_context(rc=settings()):
        figure = Figure(figsize=(WIDTH, drawing.height), layout="constrained")
        drawing.draw(figure)
        svg = inline(figure, key=key, title=title, description=description)
    return Chart(title, description, svg, behind)


@dataclass(frozen=True, slots=True)
class Bars:
    """A panel of stacked bars: a bar a label, `parts` by series name, a count for each bar."""

    name: str
    labels: tuple[str, ...]
    parts: Mapping[str, tuple[int, ...]]


def stacked(panels: Sequence[Bars], *, unit: str) -> Drawing:
    """How to draw the panels below one another, and how high that is."""
    rows = [len(panel.labels) for panel in panels]

    def draw(figure: Figure) -> None:
        grid = figure.subplots(len(panels), 1, squeeze=False, height_ratios=[count + 1.6 for count in rows])
        for axes, panel in zip(grid[:, 0], panels, strict=True):
            _stack(axes, panel)
        grid[-1, 0].set_xlabel(unit)
        handles, labels = grid[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=1, frameon=False, fontsize=7)

    return Drawing(draw, 0.19 * sum(rows) + 0.42 * len(panels) + 0.3 + 0.16 * max(len(panel.parts) for panel in panels))


def _stack(axes: Axes, panel: Bars) -> None:
    left = [0] * len(panel.labels)
    for at, (name, counts) in enumerate(panel.parts.items()):
        fill, hatch = FILLS[at % len(FILLS)], HATCHES[at % len(HATCHES)]
        axes.barh(
            range(len(left)), counts, left=left, color=fill, hatch=hatch, edgecolor=INK, linewidth=0.4, label=name
        )
        left = [done + count for done, count in zip(left, counts, strict=True)]
    axes.set_yticks(range(len(left)), [ascii_text(label) for label in panel.labels], fontsize=7)
    axes.invert_yaxis()
    axes.set_title(ascii_text(panel.name), loc="left")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def curves(places: Sequence[str], series: Mapping[str, Sequence[float]], *, measure: str) -> Drawing:
    """Lines over the depth: `places` in order, one line a series, marked by dash and marker."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for at, (name, values) in enumerate(series.items()):
            axes.plot(
                range(len(places)), list(values), color=LINES[at % len(LINES)], linestyle=DASHES[at % len(DASHES)],
                marker=MARKERS[at % len(MARKERS)], markersize=3, linewidth=1.1, label=ascii_text(name),
            )  # fmt: skip
        axes.set_xticks(range(len(places)), [ascii_text(place) for place in places], rotation=90, fontsize=6.5)
        axes.set_ylabel(measure)
        axes.grid(axis="y", color="#d0d4da", linewidth=0.5)
        figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=7)

    return Drawing(draw, 3.7)


@dataclass(frozen=True, slots=True)
class Dots:
    """A row of dots: a value each, the middle that is marked, and a band [low, high] where there is one."""

    name: str
    values: tuple[float, ...]
    middle: float
    band: tuple[float, float] | None = None


def dotted(rows: Sequence[Dots], *, measure: str) -> Drawing:
    """How to draw the rows below one another, and how high that is."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.axvline(0, color="#5b6470", linewidth=0.8)
        for at, row in enumerate(rows):
            if row.band is not None:
                axes.plot(row.band, (at, at), color=LINES[0], linewidth=6, alpha=0.35, solid_capstyle="butt")
            axes.plot([row.middle] * 2, [at - 0.36, at + 0.36], color=LINES[1], linewidth=2.2, solid_capstyle="butt")
            spread = _spread(row.values)
            axes.scatter(
                row.values,
                [at + one for one in spread],
                s=13,
                color=LINES[0],
                edgecolors="white",
                linewidths=0.5,
                zorder=3,
            )
        axes.set_yticks(range(len(rows)), [ascii_text(row.name) for row in rows], fontsize=7)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlabel(measure)

    return Drawing(draw, 0.33 * len(rows) + 0.75)


def _spread(values: Sequence[float]) -> list[float]:
    """Offsets that keep equal values apart, by their order alone."""
    seen: dict[float, int] = {}
    offsets = []
    for value in values:
        seen[value] = seen.get(value, 0) + 1
        offsets.append(((seen[value] // 2) * (1 if seen[value] % 2 else -1)) * min(0.15, 0.5 / len(values)))
    return offsets
