"""Reading Python without running it: a bounded parser, and what a tree binds, needs and would refuse to compile.

What an extractor decides must be a function of the text, so three bounds stand far below what any parser's own limits
are: the length of one source, the nesting of its tree (that of `ast-r04`), and the characters that one `Parser` reads
in all. What exceeds a bound is simply not parsed. The grammar is that of the running Python. This module doesn't know
where a source was found.
"""

import ast
import re
import warnings
from collections.abc import Iterator
from typing import NamedTuple

from harness.evaluate.syntax import MAX_DEPTH

MAX_SOURCE = 200_000  # code points of one source
BUDGET = 1_000_000  # code points that one Parser reads in all
ATTEMPT = 256  # what an attempt costs beside the length of its source, so that many tiny ones end too

UNREADABLE = re.compile("[\0\ud800-\udfff]")
LINE_END = re.compile(r"\r\n|\n|\r")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

# How a name is bound: not really (a stub, or an assignment that needs the name itself), by an import, or by code.
WEAK, IMPORTED, WRITTEN = 0, 1, 2


class NoTree(NamedTuple):
    """A source that wasn't parsed. `line` (from 1): no whole lines up to and including it parse; None: not known."""

    line: int | None


class Parser:
    """`ast.parse` within the bounds, for one text."""

    def __init__(self) -> None:
        self._left = BUDGET

    def affords(self, length: int) -> bool:
        """Whether a source of this length would still be parsed: asked before one is cut out of a text."""
        return length <= MAX_SOURCE and length + ATTEMPT <= self._left

    def parse(self, source: str) -> ast.Module | NoTree:
        """The tree of a source; never raises."""
        if not self.affords(len(source)):
            return NoTree(line=None)
        self._left -= len(source) + ATTEMPT
        return parse(source)


def parse(source: str) -> ast.Module | NoTree:
    """The tree of one source within the bounds of length and depth; never raises or warns, executes nothing."""
    if len(source) > MAX_SOURCE:
        return NoTree(line=None)
    # Said here, because Pythons differ in what they raise for these two.
    if unreadable := UNREADABLE.search(source):
        return NoTree(line=line_number(source, unreadable.start()))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except SyntaxError as error:
        return NoTree(line=error.lineno)
    except (ValueError, RecursionError, MemoryError):
        return NoTree(line=None)
    return NoTree(line=None) if _too_deep(tree) else tree


def line_number(source: str, position: int) -> int:
    """The line (from 1) of a position, by Python's line ends: CRLF, LF and CR."""
    return 1 + sum(1 for _ in LINE_END.finditer(source, 0, position))


def dedented(block: str) -> str:
    """A block without the white space that all its lines begin with, blank ones aside: one cut, nothing added."""
    lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", block)
    written = [line for line in lines if line.strip()]
    margin = _indentation(written[0]) if written else ""
    for line in written:
        while not line.startswith(margin):
            margin = margin[:-1]
    return "".join(line.removeprefix(margin) for line in lines)


def statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements that run when the module does, blocks of `if`, `for`, `with`, `try` and `match` opened."""
    waiting: list[ast.AST] = list(reversed(tree.body))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.expr)):
            waiting.extend(reversed(list(ast.iter_child_nodes(node))))


def bindings(tree: ast.Module) -> dict[str, int]:
    """How each name of the module is bound: the strongest of WEAK, IMPORTED and WRITTEN."""
    bound: dict[str, int] = {}
    for statement in statements(tree):
        for name, strength in _bound_by(statement):
            bound[name] = max(strength, bound.get(name, WEAK))
    return bound


def needs(tree: ast.Module) -> set[str]:
    """Names that a module reads and nothing in it stores, defines, imports or takes as an argument."""
    read: set[str] = set()
    stored: set[str] = set(bindings(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else stored).add(node.id)
        elif isinstance(node, ast.arg):
            stored.add(node.arg)
    return read - stored


def is_program(tree: ast.Module) -> bool:
    """Whether no `return`, `yield` or `await` stands outside a function: `ast` takes such a body, `compile` doesn't."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Return | ast.Yield | ast.YieldFrom | ast.Await):
            return False
        if not isinstance(node, (*FUNCTIONS, ast.Lambda)):
            waiting.extend(ast.iter_child_nodes(node))
    return True


def definition(tree: ast.Module, name: str) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | None:
    """The last definition of a name at the top level of a module."""
    kinds = (*FUNCTIONS, ast.ClassDef)
    return next((node for node in reversed(tree.body) if isinstance(node, kinds) and node.name == name), None)


def first_line(statement: ast.stmt) -> int:
    """The line (from 1) on which a statement starts, its decorators included."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(one.lineno for one in decorators)])


def line_starts(source: str) -> list[int]:
    """Offsets of the lines of a source: line n starts at `[n - 1]`."""
    return [0, *(end.end() for end in LINE_END.finditer(source))]


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _too_deep(tree: ast.AST) -> bool:
    level: list[ast.AST] = [tree]
    for _ in range(MAX_DEPTH + 1):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return False
    return True


def _bound_by(statement: ast.stmt) -> Iterator[tuple[str, int]]:
    if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
        yield statement.name, WEAK if _is_stub(statement) else WRITTEN
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        for alias in statement.names:
            yield alias.asname or alias.name.split(".")[0], IMPORTED
    elif isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign) and statement.value is not None:
        read = {node.id for node in ast.walk(statement.value) if isinstance(node, ast.Name)}
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for node in (one for target in targets for one in ast.walk(target)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id, WEAK if node.id in read else WRITTEN


def _is_stub(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    return all(_does_nothing(one) for one in node.body) and not isinstance(node, ast.ClassDef)


def _does_nothing(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Raise):
        return "NotImplementedError" in ast.dump(statement)
    constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return constant or isinstance(statement, ast.Pass)
