"""Where the source of an author's function lies, beside protocol.toml by its dotted name, and which bytes it has."""

from pathlib import Path

from harness.errors import ProtocolError
from harness.files import file_sha256
from harness.records.protocol import StudyProtocol
from harness.records.study import FunctionJudge


def module_file(folder: Path, module: str) -> Path:
    """`folder/a/b.py` for the module `a.b`."""
    return folder.joinpath(*module.split(".")).with_suffix(".py")


def function_judges(protocol: object) -> tuple[FunctionJudge, ...]:
    """The judges of a study that are functions; none of another kind."""
    judges = protocol.evaluators.judges if isinstance(protocol, StudyProtocol) else ()
    return tuple(judge for judge in judges if isinstance(judge, FunctionJudge))


def check_modules(protocol: object, folder: Path) -> None:
    """ProtocolError where the module of a judge isn't there, or hasn't the digest that protocol.toml registers."""
    for judge in function_judges(protocol):
        path, expected = module_file(folder, judge.module), judge.source_sha256
        found = file_sha256(path, what="module of a judge") if path.is_file() else "no such file"
        if found != expected:
            todo = "Take the module back from version control; before the protocol is frozen, correct source_sha256."
            raise ProtocolError(f"{path}: bytes", expected=expected, found=found, todo=todo)
