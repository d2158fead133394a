"""Judging outputs that exist already, of any harness: JSON lines in, one JSON line out for each, in order.

It composes the evaluators, the registered tasks and the sandbox. It generates nothing, writes no run folder and knows
no protocol's grid: what it says of a line is no gate's verdict.
"""
