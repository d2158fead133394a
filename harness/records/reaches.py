"""What a gate may be judged over, and what one of its rows is."""

from typing import Literal

# In the order in which evidence needs each other: gates are judged in it.
Reach = Literal[
    "registration",
    "smoke_record",
    "run",
    "same_process",
    "loop",
    "graph",
    "placement",
    "replay",
    "determinism",
    "snapshots",
    "tensors",
]
Rows = Literal[
    "whole",
    "identities",
    "prompts",
    "cells",
    "executed_cells",
    "units",
    "executed_units",
    "edges",
    "variant_cells",
    "stage_digests",
    "gate_digests",
]
