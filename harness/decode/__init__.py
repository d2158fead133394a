"""Decoding contracts over rows of token IDs. Knows no text, no protocol and no file."""
