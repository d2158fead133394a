"""The size budget and the habits that a reader relies on, module by module."""

import ast
import re

import pytest

MODULE_LINES, FUNCTION_LINES = 400, 60
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
REASON = re.compile(r"except (Exception|BaseException)\b.*:\s+#\s\S+")


def functions(tree):
    """Every function and method of a module."""
    return [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]


def public(tree):
    """The module, its public classes and functions, and the public methods of public classes."""
    nodes = [tree]
    for node in tree.body:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and not node.name.startswith("_"):
            nodes.append(node)
            if isinstance(node, ast.ClassDef):
                nodes += [one for one in node.body if isinstance(one, FUNCTIONS) and not one.name.startswith("_")]
    return nodes


def test_a_module_is_short(module):
    """Over budget means a missing record type, not a missing helper."""
    assert len(module.read_text(encoding="utf-8").splitlines()) <= MODULE_LINES


def test_a_function_is_short(module, parse):
    """With its docstring."""
    long = {one.name: one.end_lineno - one.lineno + 1 for one in functions(parse(module))}
    assert {name: lines for name, lines in long.items() if lines > FUNCTION_LINES} == {}


def test_no_assert_in_the_harness(module, parse):
    """It vanishes under -O: bad data is raised."""
    assert [node.lineno for node in ast.walk(parse(module)) if isinstance(node, ast.Assert)] == []


def test_a_broad_except_has_its_reason_on_the_line(module):
    """What is caught whole says why."""
    lines = module.read_text(encoding="utf-8").splitlines()
    broad = [line.strip() for line in lines if re.match(r"\s*except( \(?.*\b(Exception|BaseException)\b.*)?:", line)]
    assert [line for line in broad if not REASON.match(line)] == []


def test_everything_public_has_a_docstring(module, parse):
    """Module, class, function, method: a place that needs no words is private."""
    assert [getattr(node, "name", module.name) for node in public(parse(module)) if not ast.get_docstring(node)] == []


def test_nothing_is_printed(module, parse):
    """Output is a verb's, through typer; a library that prints breaks a session's screen."""
    calls = [node for node in ast.walk(parse(module)) if isinstance(node, ast.Call)]
    assert [node.lineno for node in calls if isinstance(node.func, ast.Name) and node.func.id == "print"] == []


def test_a_gate_compares_with_no_number_of_its_own(gate_file, parse):
    """Thresholds and denominators are the protocol's: in an assert only 0 and 1 may stand as literals."""
    asserts = [node for node in ast.walk(parse(gate_file)) if isinstance(node, ast.Assert)]
    constants = [one for node in asserts for one in ast.walk(node) if isinstance(one, ast.Constant)]
    numbers = [one.value for one in constants if isinstance(one.value, int | float | complex)]
    assert [value for value in numbers if value not in (0, 1)] == []


def test_a_gate_asserts(gate_file, parse):
    """Every test of gates/ has an assert, so none can pass by returning."""
    tests = [one for one in functions(parse(gate_file)) if one.name.startswith("test_")]
    assert tests
    assert [one.name for one in tests if not any(isinstance(node, ast.Assert) for node in ast.walk(one))] == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        pytest.param("try:\n    pass\nexcept Exception:\n    pass\n", False, id="bare"),
        pytest.param("except Exception as error:  # a reason\n", True, id="reason"),
        pytest.param("except Exception:  #\n", False, id="empty"),
    ],
)
def test_the_reason_is_looked_for(source, found):
    """The control of the check above."""
    assert any(REASON.match(line) for line in source.splitlines()) is found
