"""What a page is made of, before any markup: sections of tables, charts and lists. Holds text as it is, unescaped."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup


@dataclass(frozen=True, slots=True)
class Link:
    """A reference within the page: `target` is the ID of an element of it."""

    text: str
    target: str


Value = str | Link


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under a caption; the first `heads` columns name the row. `folded`: shown when it is asked for."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    heads: int = 1
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing, what it shows in words, and the table behind it, which has every number of it."""

    title: str
    description: str
    svg: Markup
    table: Table


@dataclass(frozen=True, slots=True)
class Listing:
    """Items under a caption; `folded` as in Table."""

    caption: str
    items: tuple[str, ...]
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Note:
    """One paragraph."""

    text: str


Block = Table | Chart | Listing | Note


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page with its own heading; `id` is its anchor."""

    id: str
    title: str
    blocks: tuple[Block, ...]


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[Value]], *, heads: int = 1) -> Table:
    """A table that is shown; RuntimeError for a row that isn't as wide as the head."""
    made = tuple(tuple(row) for row in rows)
    if any(len(row) != len(head) for row in made):
        raise RuntimeError(f"table {caption!r}: rows of {sorted({len(row) for row in made})} under {len(head)} heads")
    return Table(caption, tuple(head), made, heads)


def folded(made: Table) -> Table:
    """The same table, shown when it is asked for."""
    return Table(made.caption, made.head, made.rows, made.heads, folded=True)
