"""The full-depth trace (R05 depth 7-9): one prompt-only forward, seen at every stage and gate, kept as records.

Beside `harness.decode` in the layers. torch is in `forward`, `capture` and `host` alone; the rest is numpy on the CPU.
Nothing here knows a condition's name, a text or a tokenizer.
"""
