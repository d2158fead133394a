"""Programs in texts: which part of a text is executed, by rule. Pure functions of a text, a prompt and a name.

`code-r05` is the published order to the letter, `code-v1` the best reading for new protocols. A rule never changes; a
better one gets a new name; which one a run uses is its protocol's choice. This package executes nothing, and knows no
tests, no gold answers and no protocol.
"""

from collections.abc import Callable

from harness.evaluate.code.r05 import code_r05
from harness.evaluate.code.v1 import code_v1
from harness.records.evaluation import CodeExtraction, CodeRule

__all__ = ["CODE_RULES", "code_r05", "code_v1"]

CODE_RULES: dict[CodeRule, Callable[[str, str, str], CodeExtraction]] = {"code-r05": code_r05, "code-v1": code_v1}
