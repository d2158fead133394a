"""What docs/authoring.md says is written by hand: its edge, conclusions and claims.toml, in a study that loads."""

import re
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.__main__ import app
from harness.claims.load import load_claims
from harness.errors import ProtocolError

from .conftest import freeze_study

PAGE = Path(__file__).parents[2] / "docs/authoring.md"
BLOCKS = re.findall(r"^```toml\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
TABLES = re.compile(r"\[\[(?:permitted|prohibited)\]\]\n(?:[^\[\n#].*\n)+\n?")


def block(word: str) -> str:
    """The page's one example that has a word."""
    (one,) = [block for block in BLOCKS if word in block]
    return one


@pytest.fixture
def study(tmp_path) -> Path:
    """A study of the embedded model with the page's conditions: plain, and x at the end of the example."""
    words = "--yes --smoke 1 --formal 2 --question What? --answer That. --edit x=x"
    done = CliRunner().invoke(app, ["init", str(tmp_path / "mine"), *words.split()])
    assert done.exit_code == 0, done.output
    return tmp_path / "mine"


def test_the_edge_is_one(study):
    """As `init` writes it."""
    written = tomllib.loads((study / "protocol.toml").read_text(encoding="utf-8"))["edges"]
    assert written == tomllib.loads(block("[[edges]]"))["edges"]


def test_an_edge_by_hand_has_its_rows_counted(study):
    """The error has the count that the gate must have, and with it the study freezes."""
    path = study / "protocol.toml"
    text = path.read_text(encoding="utf-8")
    other = block("[[edges]]").replace("x_plain", "back").replace('"plain"', '"?"').replace('"plain_x"', '"plain"')
    text = text.replace("[[inputs]]", f"{other.replace('?', 'plain_x')}\n[[inputs]]", 1)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ProtocolError, match=r"gates\.paired_comparison\.tiers\.smoke\.count: expected 4, found 2"):
        freeze_study(study)
    head, gate, rest = text.partition('id = "paired_comparison"')
    rest = rest.replace("count = 4", "count = 8", 1).replace("count = 2", "count = 4", 1)
    path.write_text(head + gate + rest, encoding="utf-8")
    assert [one.id for one in freeze_study(study).protocol.edges] == ["x_plain", "back"]


def test_claims_by_hand_are_loaded_and_can_fail(study):
    """The page's conclusions and its claims.toml; with another conclusion than the protocol's they don't load."""
    path = study / "protocol.toml"
    text = TABLES.sub("", path.read_text(encoding="utf-8"))
    conclusions = block('text = "x at the end')
    path.write_text(text.replace("[[gates]]", f"{conclusions}\n[[gates]]", 1), encoding="utf-8")
    claims = block("schema = 1")
    (study / "claims.toml").write_text(claims, encoding="utf-8")
    rules = load_claims(freeze_study(study)).rules
    assert [one.id for one in (*rules.permitted, *rules.prohibited)] == ["same-tokens", "ability"]
    for right, wrong in (('id = "ability"', 'id = "other"'), ("can add.", "adds."), ('"whole"', '"at_least", n = 5')):
        (study / "claims.toml").write_text(claims.replace(right, wrong, 1), encoding="utf-8")
        with pytest.raises(ProtocolError, match=r"claims\.toml"):
            load_claims(freeze_study(study))
