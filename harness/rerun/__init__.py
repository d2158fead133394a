"""One step of a cell made again: the tokens before it forced, under a side's conditions or under one change to them.

Each set of conditions that a process has for itself (threads, allocator, kernels, one load of a model) gets a process.
"""
