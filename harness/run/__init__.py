"""The composition root: inputs, prompts, model, decoding and journals put together into runs.

No verdict is made here; checks read what a run leaves.
"""
