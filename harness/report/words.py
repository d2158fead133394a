"""Records as words: a count beside what it is a count of, a sum beside its number of terms, a name for each field."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from harness.records.base import Record
from harness.records.depth_ledger import At, Nowhere
from harness.records.ledger import Count, Mean, NotObserved, Total, Undefined
from harness.records.sampling_ledger import LengthSummary, Majority, NoMajority
from harness.records.task_ledger import Spread
from harness.report.page import Table, Value, table

ABSENT = "-"
FIGURES = (Count, Total, Mean, Undefined, NotObserved, At, Nowhere, Majority, NoMajority, Spread, LengthSummary)


def number(value: float) -> str:
    """A number with six significant digits at most; an integer whole."""
    return str(value) if isinstance(value, int) else f"{value:.6g}"


def word(value: object) -> str:
    """A field's value in a table cell."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, tuple):
        return ", ".join(word(one) for one in value) or ABSENT
    return ABSENT if value is None else _record(value)


def _record(value: object) -> str:  # noqa: C901, PLR0911  one line a kind of figure
    match value:
        case NotObserved() | Undefined():
            return ABSENT
        case Count():
            return f"{value.count}/{value.of}"
        case Total():
            return f"{value.sum} over {value.n}"
        case Mean():
            return f"{number(value.mean)} (n {value.n})"
        case At():
            return value.name
        case Nowhere():
            return "nowhere"
        case Majority():
            return f"{value.value} ({word(value.count)})"
        case Spread():
            return f"{value.sum} over {value.n}: {word(value.values)} (range {value.range})"
        case LengthSummary():
            return f"{value.sum} over {value.n} ({value.minimum} to {value.maximum})"
        case NoMajority():
            return f"none (most {word(value.most)})"
    return str(value)


def named(field: str) -> str:
    """A field's name as a table head."""
    return field.replace("_", " ")


def flat(record: Record, *, without: Sequence[str] = (), prefix: str = "") -> Iterator[tuple[str, str]]:
    """(head, word) of every field of a record, fields of records in it after their own names."""
    for name in record.__struct_fields__:
        if name not in without:
            yield from _field(f"{prefix}{named(name)}", getattr(record, name), without)


def _field(head: str, value: object, without: Sequence[str]) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from _field(f"{head}: {key}", one, without)
    elif isinstance(value, Record) and not isinstance(value, FIGURES):
        yield from flat(value, without=without, prefix=f"{head}: ")
    else:
        yield head, word(value)


def table_of(
    caption: str, heads: Sequence[str], rows: Iterable[tuple[Sequence[Value], Record]], *, without: Sequence[str] = ()
) -> Table:
    """A row a record under its own heads; `-` where a record has no such field, or nothing was observed."""
    made = [(tuple(keys), dict(flat(record, without=without))) for keys, record in rows]
    columns = list(dict.fromkeys(name for _, fields in made for name in fields))
    kept = [name for name in columns if any(fields.get(name, ABSENT) != ABSENT for _, fields in made)]
    rows_made = [[*keys, *(fields.get(name, ABSENT) for name in kept)] for keys, fields in made]
    return table(caption, [*heads, *kept], rows_made, heads=len(heads))
