"""Frozen results: what a snapshot of a unit holds, its bytes, and the verb that freezes. Pure records and files."""
