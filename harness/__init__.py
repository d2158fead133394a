"""Verification harness for preregistered LLM experiments.

A protocol is frozen data, a run turns it into journals, gates judge journals, snapshots freeze what was judged.
Importing this package loads neither torch nor transformers; only `harness.model` and `harness.decode` do.
"""

__version__ = "0.1.0"
