"""`code-r05`: the published order to the letter (R05 6). Nothing is dedented, trimmed or tried; nothing is executed.

1. `fence_with_entry_point`: the first closed fence tagged python or py that contains `def <entry_point>`;
2. `fence`: the first other closed fence with such a tag;
3. `definition`: from the first line that starts the definition (decorators right above it included) to the text's end;
4. `suffix`: the prompt, then the text.

1 to 3 replace the prompt, and its imports and helpers are kept before them. A text of white space alone holds no code.
"""

from harness.evaluate.code.fences import closed_fences
from harness.evaluate.code.task import check_entry_point, definitions, kept_of_prompt, mentions, with_decorators
from harness.records.evaluation import CodeExtraction, CodeFound, CodeMissing


def code_r05(text: str, prompt: str, entry_point: str) -> CodeExtraction:
    """The candidate of a text by R05 6; never raises for a text or a prompt, InputError for a name that is none."""
    check_entry_point(entry_point)
    if not text.strip():
        return CodeMissing(rule="code-r05")
    method, start, end = _part(text, entry_point)
    before = prompt if method == "suffix" else kept_of_prompt(prompt, entry_point)
    return CodeFound(rule="code-r05", method=method, program=before + text[start:end], start=start, end=end)


def _part(text: str, entry_point: str) -> tuple[str, int, int]:
    python = [fence for fence in closed_fences(text) if fence.is_python]
    named = mentions(entry_point)
    for fence in python:
        if named.search(text, fence.start, fence.end):
            return "fence_with_entry_point", fence.start, fence.end
    if python:
        return "fence", python[0].start, python[0].end
    if found := definitions(entry_point).search(text):
        above = with_decorators(text, found.start())
        return "definition", (found.start("head") if above == found.start() else above), len(text)
    return "suffix", 0, len(text)
