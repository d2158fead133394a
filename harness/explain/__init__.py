"""What the records of two sides that differ say of the place where they part, and the words for it.

Reads sides (`harness.difference`); makes nothing again: `harness.rerun` does. Nothing here calls a difference a cause.
"""
