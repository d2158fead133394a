"""Two runs, or a run and frozen results, beside each other: which cells are equal, and what else differs.

Reads records alone: no model, no engine, no network. Says what differs and never which side is right.
"""
