"""Plain data as TOML that a person edits: a comment before each part, tables in their order, long lists in lines."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

LONG = 100


def document(head: str, content: Mapping[str, Any], comments: Mapping[str, str]) -> str:
    """A TOML document: values, then tables and arrays of tables. `comments`: by top-level name, or `table.field`.

    A name whose value is a table or a list of tables becomes one; inside, everything stands on its own line.
    """
    parts = [_comment(head)]
    tables = {name: value for name, value in content.items() if _is_table(value)}
    for name, value in content.items():
        if name not in tables:
            parts.append(_comment(comments.get(name, "")) + f"{name} = {_value(value)}\n")
    for name, value in tables.items():
        parts.append("\n" + _comment(comments.get(name, "")))
        listed = value if isinstance(value, list | tuple) else [value]
        opening, closing = ("[[", "]]") if isinstance(value, list | tuple) else ("[", "]")
        parts.append("\n".join(_table(f"{opening}{name}{closing}", one, name, comments) for one in listed))
    return "".join(parts)


def _table(head: str, content: Mapping[str, Any], name: str, comments: Mapping[str, str]) -> str:
    lines = "".join(
        _comment(comments.get(f"{name}.{field}", "")) + f"{_key(field)} = {_value(value)}\n"
        for field, value in content.items()
    )
    return f"{head}\n{lines}"


def _is_table(value: object) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list | tuple) and bool(value) and all(isinstance(one, dict) for one in value)
    )


def _comment(text: str) -> str:
    return "".join(f"# {line}".rstrip() + "\n" for line in text.splitlines())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return (
            "{ " + ", ".join(f"{_key(name)} = {_value(one)}" for name, one in value.items()) + " }" if value else "{}"
        )
    if isinstance(value, list | tuple):
        short = "[" + ", ".join(_value(one) for one in value) + "]"
        return short if len(short) <= LONG else "[\n" + "".join(f"  {line},\n" for line in map(_value, value)) + "]"
    return _text(value) if isinstance(value, str) else json.dumps(value)


def _key(name: str) -> str:
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else _text(name)


def _text(value: str) -> str:
    """A basic string: JSON's escapes are TOML's, but for characters that JSON leaves bare."""
    return "".join(_escaped(json.dumps(value, ensure_ascii=False)))


def _escaped(text: str) -> Iterator[str]:
    for letter in text:
        yield f"\\u{ord(letter):04x}" if ord(letter) == 0x7F else letter
