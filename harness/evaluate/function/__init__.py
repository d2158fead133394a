"""An author's own judge: called in a process apart, with plain values and a time limit. No sandbox.

`child` is the program of that process and imports nothing of the harness.
"""

from harness.evaluate.function.call import Call, Given, call_function, require_function

__all__ = ["Call", "Given", "call_function", "require_function"]
