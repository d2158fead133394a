"""Tiny chat models, files of sources, and studies over them that are written by what `init` calls."""

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.authoring.answers import Answers, ClaimAnswer, SamplingAnswer, source_of
from harness.authoring.make import make_study
from harness.cli.freeze import freeze_protocol
from harness.places import places
from harness.protocols.load import LoadedProtocol

from ..support.tiny_models import KINDS, make_checkpoint  # noqa: TID252 - the tests are no package of that name

TAPES = SamplingAnswer(tapes=3, temperature=0.9, top_p=0.9)
MODULE = '''"""A judge: long enough, but for one source."""

print("a module may print")


def score(text, gold):
    """Whether a text has more than three characters."""
    print("so may a function")
    if gold["want"] == "3":
        raise ValueError("not this one")
    return len(text) > 3
'''


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A checkpoint folder of each kind. Read only."""
    base = tmp_path_factory.mktemp("checkpoints")
    return {kind: make_checkpoint(base / kind, kind) for kind in KINDS}


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A CSV of questions with a label, and JSON lines of texts. Read only."""
    base = tmp_path_factory.mktemp("sources")
    with (base / "qa.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["key", "question", "label"])
        writer.writerows(
            [f"q{i}", f'Is {i} even?\nSay "yes", or "no".', "yes" if i % 2 == 0 else "no"] for i in range(8)
        )
    lines = [{"id": f"t/{i}", "text": f"Tell me about {i}.", "want": str(i)} for i in range(8)]
    (base / "t.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
    return {"qa": base / "qa.csv", "t": base / "t.jsonl"}


@pytest.fixture(scope="session")
def answers_for(checkpoints: dict[str, Path], files: dict[str, Path]) -> Callable[..., Answers]:
    """`answers_for(kind, **changes)`: a small study of a tiny model with an exact judge and a function."""

    def make(kind: str, **changes: Any) -> Answers:
        own = Answers(
            id=f"{kind}-study",
            title="A study of a tiny model",
            checkpoint=checkpoints[kind],
            sources=(
                source_of(f"qa={files['qa']},id=key,text=question,judge=exact,gold=label"),
                source_of(f"t={files['t']},judge=function,gold=want,function=score:score"),
            ),
            system="" if kind == "mixtral" else "Be brief.",
            shot=("What?", "That."),
            edits={"x": "x"},
            smoke=1,
            formal=2,
            smoke_tokens=5,
            tokens=9,
            device="cpu",
            dtype="float32",
            sampling=None,
            claims=(ClaimAnswer("t", "plain", 1),),
        )
        return replace(own, **changes)

    return make


def write_study(folder: Path, answers: Answers) -> Path:
    """A study's folder with its module, not yet frozen."""
    folder = folder / answers.id
    folder.mkdir(parents=True)
    (folder / "score.py").write_text(MODULE, encoding="utf-8")
    make_study(answers, folder, places())
    return folder


def freeze_study(folder: Path) -> LoadedProtocol:
    """The study of a folder, frozen and loaded."""
    return freeze_protocol(folder.name, [], checkpoint=None, tree=places().with_studies((folder,)))


@pytest.fixture(scope="session")
def frozen(answers_for: Callable[..., Answers], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """`frozen(kind)`: the folder of a frozen study, made once. Read only."""
    made: dict[str, Path] = {}

    def make(kind: str) -> Path:
        if kind not in made:
            made[kind] = write_study(tmp_path_factory.mktemp("studies"), answers_for(kind))
            freeze_study(made[kind])
        return made[kind]

    return make


@pytest.fixture(scope="session")
def drawn(answers_for: Callable[..., Answers], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """`drawn(kind)`: the folder of a frozen study under three tapes, made once. Read only."""
    made: dict[str, Path] = {}

    def make(kind: str) -> Path:
        if kind not in made:
            answers = answers_for(kind, id=f"{kind}-drawn", sampling=TAPES)
            made[kind] = write_study(tmp_path_factory.mktemp("drawn"), answers)
            freeze_study(made[kind])
        return made[kind]

    return make
