"""What a study's judges need before a protocol is frozen: something to compare with, and functions that are there.

Found out here, in a second, and not after a grid was generated.
"""

from pathlib import Path

from harness.evaluate.function import require_function
from harness.gold import check_gold
from harness.inputs.find import FoundInputs
from harness.protocols.modules import check_modules, function_judges, module_file
from harness.records.manifest import Manifest
from harness.records.protocol import Protocol


def check_judges(protocol: Protocol, manifest: Manifest, found: FoundInputs, folder: Path) -> None:
    """Gold of every frozen source is what its judge takes; each function's module, in `folder`, runs and has it.

    InputError or ProtocolError for the first that isn't so. No text is judged.
    """
    check_gold(protocol, found, manifest)
    check_modules(protocol, folder)
    for judge in function_judges(protocol):
        require_function(module_file(folder, judge.module), judge.source_sha256, judge.function)
