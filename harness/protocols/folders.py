"""Where protocols lie: those of a tree, an author's own, what superseded ones and an author's own have beside them."""

from pathlib import Path

from harness.errors import ProtocolError
from harness.places import OF_A_RUN, STUDIES, Places, places
from harness.protocols.revisions import REVISIONS


def protocol_ids(tree: Places | None = None) -> tuple[str, ...]:
    """The IDs of all protocols in the tree, and of an author's own that were named.

    ProtocolError where two folders of one ID are named, or one of an ID that the tree has: neither is guessed. The copy
    that a run keeps is no folder of its own.
    """
    tree = tree or places()
    own = [folder for folder in tree.studies if (folder / "protocol.toml").is_file()]
    listed = {path.parent.name: path.parent for path in tree.protocols.glob("*/protocol.toml")}
    for folder in own:
        first = listed.setdefault(folder.name, folder)
        if first != folder and OF_A_RUN not in (folder.parent.name, first.parent.name):
            todo = f"Name one of them ({STUDIES}), or give one another ID, and its folder the same name."
            raise ProtocolError(str(folder), expected="one folder of a protocol's ID", found=f"{first} too", todo=todo)
    return tuple(sorted(listed))


def named_protocol(word: str, tree: Places) -> tuple[str, Places]:
    """The protocol that a word names, an ID or a folder, and the tree that has it.

    A folder within another tree (ROOT/fixtures/protocols/ID) is that tree's; one anywhere else is an author's own.
    ProtocolError for one whose protocol the tree has another of.
    """
    folder = Path(word)
    if word in protocol_ids(tree) or not (folder / "protocol.toml").is_file():
        return word, tree
    folder = folder.resolve()
    within = Places(folder.parents[2], tree.studies) if len(folder.parents) > 2 else tree
    if within.protocols == folder.parent and within.models.is_dir():
        return folder.name, within
    taken = tree.protocol(folder.name)
    if taken != folder and (taken / "protocol.toml").is_file():
        raise ProtocolError(
            str(folder),
            expected="a folder with a name that no other protocol has",
            found=str(taken),
            todo="Give the protocol another ID, and its folder the same name.",
        )
    return folder.name, tree.with_studies((folder,))


def beside(folder: Path, name: str) -> tuple[Path, ...]:
    """The folder of that name in the folder of an author's own protocol: `inputs` or `checkpoint`; none: ().

    A superseded protocol has them where the one in force has them.
    """
    there = home_of(folder) / name
    return (there,) if there.is_dir() else ()


def home_of(folder: Path) -> Path:
    """The protocol's folder that a folder of its files is or, of superseded ones, lies in."""
    return folder.parents[1] if folder.parent.name == REVISIONS else folder
