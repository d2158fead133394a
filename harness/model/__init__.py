"""The model and its placement: with `harness.decode`, the only code that imports torch.

Submodules import torch at module level; whoever needs them imports them late.
"""
