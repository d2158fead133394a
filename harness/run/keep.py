"""A run of an author's own protocol keeps a copy of its files, so that whoever has the run has what it was judged by.

A protocol of the tree is kept by the tree. The copy has no input, no weights and nothing that was left by chance; of a
checkpoint it has the tokenizer's files, by which an auditor reads what the IDs say.
"""

import shutil
from pathlib import Path

from harness.claims.load import NAME as CLAIM_RULES
from harness.files import write_atomic
from harness.journal.folder import RunFolder
from harness.places import OF_A_RUN, Places
from harness.prompts.tokenizer import tokenizer_files
from harness.protocols.anchor import ANCHOR
from harness.protocols.load import CANONICAL, FILES, PROFILE, PROMPTS, PROTOCOL, LoadedProtocol
from harness.protocols.modules import function_judges, module_file
from harness.protocols.revisions import REVISIONS

CHECKPOINT = "checkpoint"
NAMES = ("protocol.toml", "manifest.json", FILES, CANONICAL, PROMPTS, PROTOCOL, PROFILE, CLAIM_RULES)


def keep_protocol(loaded: LoadedProtocol, folder: RunFolder, checkpoint: Path, tree: Places) -> None:
    """Copy the protocol's files to RUN/protocol/<id>/, once; nothing for a protocol of the tree."""
    target = folder.path / OF_A_RUN / loaded.protocol.id
    if loaded.folder.is_relative_to(tree.protocols) or target.exists():
        return
    modules = [module_file(loaded.folder, one.module) for one in function_judges(loaded.protocol)]
    listed = [loaded.folder / name for name in NAMES] + modules
    for path in (one for one in listed if one.is_file()):
        write_atomic(target / path.relative_to(loaded.folder), path.read_bytes())
    if (loaded.folder / PROFILE).is_file():
        for name, data in tokenizer_files(loaded.profile, checkpoint, tree).items():
            write_atomic(target / CHECKPOINT / name, data)
    for name in (REVISIONS, ANCHOR):
        if (loaded.folder / name).is_dir():
            shutil.copytree(loaded.folder / name, target / name)
