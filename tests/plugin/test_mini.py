"""The small tree that the other tests stand on is itself a whole protocol that passes."""

from typing import Any


def test_the_formal_session_passes_with_every_row(formal_session: Any) -> None:
    """Exit code 0, every gate's passed count is its registered count, and the books closed."""
    audit = formal_session.audit
    assert (formal_session.code, audit["passed"], audit["books"]) == (0, True, [])
    assert all(gate["passed"] == gate["registered"] for gate in audit["gates"])
