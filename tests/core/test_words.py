"""What a person reads of an error is one line that acts on nothing."""

from hypothesis import given
from hypothesis import strategies as st

from harness.errors import HarnessError, words


def test_an_error_is_one_line_that_a_terminal_only_shows():
    """A name or a message may come from anybody: controls, line feeds and bidi marks are escapes."""
    error = HarnessError("a\x1b[31m\n b", expected="\u202e", found="\x07", todo="Look.")
    assert str(error) == r"a\x1b[31m b: expected \u202e, found \x07. Look."


@given(st.text())
def test_any_text_is_printable_ascii(text):
    """Whatever it is."""
    line = words(text)
    assert line.isascii()
    assert line.isprintable()
