"""Sources: held against the manifest, gold kept apart, each once."""

from pathlib import Path

import msgspec
import pytest

from harness.canon import text_sha256
from harness.errors import InputError, ProtocolError
from harness.inputs.find import find_inputs
from harness.inputs.sources import SourceText, gold_fields, selected_sources, source_texts
from harness.protocols.load import LoadedProtocol
from harness.records.manifest import FrozenSource, Manifest, UnfrozenSource
from harness.selection import selection_rank


def no_tokens(text: str) -> int:
    """A counter for domains without a minimum: never asked."""
    raise RuntimeError(text)


@pytest.fixture
def world(tmp_path, registered, protocol_of, pool_domain):
    """A factory: protocol and found inputs over a pool of the given bytes."""

    def make(data: bytes, **changes):
        (tmp_path / "pool.jsonl").write_bytes(data)
        domain = msgspec.structs.replace(pool_domain, **changes)
        protocol = protocol_of([registered(data)], [domain], salt="salt")
        return protocol, find_inputs(protocol, [tmp_path])

    return make


@pytest.fixture
def loaded():
    """A factory: a loaded protocol whose manifest freezes the given sources."""

    def make(protocol, sources, owed=()):
        frozen = tuple(
            FrozenSource(
                domain=one.domain,
                index=one.index,
                source_id=one.source_id,
                selection_rank=one.selection_rank,
                text_sha256=one.text_sha256,
                prompts={},
            )
            for one in sources
        )
        manifest = Manifest(
            schema=1, protocol=protocol.id, tokenizer_sha256="0" * 64, sources=(*frozen, *owed), denominators={}
        )
        return LoadedProtocol(protocol, manifest, None, "0" * 64, Path())

    return make


def test_frozen_sources_come_back(world, loaded, pool_bytes):
    """What selection froze is what a run reads: rank order, text as stored, hash of that text."""
    protocol, found = world(pool_bytes)
    chosen = selected_sources(protocol, found, "pool", no_tokens, 3)
    ranks = [selection_rank("salt", "pool", f"a/{n}") for n in range(3)]
    assert [one.selection_rank for one in chosen] == sorted(ranks)
    assert {one.source_id: one.text for one in chosen}["a/0"] == " first text of the pool\n"
    assert all(one.text_sha256 == text_sha256(one.text) for one in chosen)
    assert source_texts(loaded(protocol, chosen), found, domains=("pool",), per_domain=2) == chosen[:2]


def test_gold_is_not_in_a_source(world, pool_bytes):
    """A source text has six fields, and no gold value of its row is in any of them."""
    protocol, found = world(pool_bytes)
    assert SourceText.__struct_fields__ == ("domain", "index", "source_id", "selection_rank", "text", "text_sha256")
    chosen = selected_sources(protocol, found, "pool", no_tokens, 3)
    shown = {one.source_id: msgspec.structs.asdict(one) for one in chosen}
    gold = gold_fields(protocol, found, "pool", list(shown))
    assert gold["a/1"] == {"answer": "42", "entry_point": "g"}
    leaked = [value for name, fields in gold.items() for value in fields.values() if value in shown[name].values()]
    assert leaked == []


@pytest.mark.parametrize("wrong", ["missing", "number"])
def test_gold_must_be_there_as_text(world, jsonl, wrong):
    """A gold field that is missing or no string is an error that doesn't show the value."""
    row = {"id": "a/0", "text": "t", "entry_point": "f"} | ({"answer": 7310} if wrong == "number" else {})
    protocol, found = world(jsonl([row]))
    expected = {"missing": "no such field", "number": "int"}[wrong]
    with pytest.raises(InputError, match=f"a/0, field answer: expected a string, found {expected}") as caught:
        gold_fields(protocol, found, "pool", ["a/0"])
    assert "7310" not in str(caught.value)


def test_gold_of_an_unknown_source(world, pool_bytes):
    """Gold is given by identity: a source that isn't in the file is an error."""
    protocol, found = world(pool_bytes)
    with pytest.raises(InputError, match=r"expected source a/9, found 3 others"):
        gold_fields(protocol, found, "pool", ["a/9"])


def test_altered_text_against_the_manifest(world, loaded, pool_bytes):
    """A text that isn't the frozen one is an error with both hashes, also when the file's own digest is right."""
    protocol, found = world(pool_bytes)
    chosen = selected_sources(protocol, found, "pool", no_tokens, 1)
    frozen = msgspec.structs.replace(chosen[0], text_sha256=text_sha256(chosen[0].text + " "))
    with pytest.raises(InputError, match=f"expected SHA-256 {frozen.text_sha256}, found {chosen[0].text_sha256}"):
        source_texts(loaded(protocol, [frozen]), found, domains=("pool",), per_domain=1)


def test_frozen_source_absent_from_the_file(world, loaded, pool_bytes):
    """A frozen source that the registered file doesn't have is an error."""
    protocol, found = world(pool_bytes)
    (chosen,) = selected_sources(protocol, found, "pool", no_tokens, 1)
    other = msgspec.structs.replace(chosen, source_id="a/9")
    with pytest.raises(InputError, match=r"expected source a/9, found 3 others"):
        source_texts(loaded(protocol, [other]), found, domains=("pool",), per_domain=1)


def test_owed_and_unlisted_sources(world, loaded, pool_bytes):
    """A source that the manifest owes, or doesn't list, isn't replaced by another."""
    protocol, found = world(pool_bytes)
    owed = UnfrozenSource(domain="pool", index=0, source_id="a/0", selection_rank="0", reason="no file")
    with pytest.raises(ProtocolError, match=r"pool 0: expected a frozen source, found unfrozen \(no file\)"):
        source_texts(loaded(protocol, [], [owed]), found, domains=("pool",), per_domain=1)
    one = selected_sources(protocol, found, "pool", no_tokens, 1)
    with pytest.raises(ProtocolError, match=r"pool 1: expected a frozen source, found no such source"):
        source_texts(loaded(protocol, one), found, domains=("pool",), per_domain=2)


def test_duplicate_source(world, jsonl):
    """A source ID that occurs twice in a file is an error at every door."""
    protocol, found = world(jsonl([{"id": "a/0", "text": "one"}, {"id": "a/0", "text": "two"}]))
    with pytest.raises(InputError, match=r"row 1: expected each source once, found a/0 again"):
        selected_sources(protocol, found, "pool", no_tokens, 1)
    with pytest.raises(InputError, match=r"a/0 again"):
        gold_fields(protocol, found, "pool", ["a/0"])


@pytest.mark.parametrize("source_id", ["{nothing}", "{id:04d}", "{}", "{id"])
def test_source_id_that_cannot_be_formed(world, pool_bytes, source_id):
    """An ID format that the row doesn't fill is an error naming the row."""
    protocol, found = world(pool_bytes, source_id=source_id)
    with pytest.raises(InputError, match=r"input pool: row 0: expected fields for the source ID"):
        selected_sources(protocol, found, "pool", no_tokens, 1)


def test_row_number_is_n(world, jsonl):
    """`n` is the row's number from 0, also where a row has a field n."""
    protocol, found = world(jsonl([{"text": "t", "n": 7}]), source_id="pool/{n:04d}")
    assert selected_sources(protocol, found, "pool", no_tokens, 1)[0].source_id == "pool/0000"


def test_text_must_be_a_string(world, jsonl):
    """A text field that isn't a string is an error, not coerced."""
    protocol, found = world(jsonl([{"id": "a/0", "text": None}]))
    with pytest.raises(InputError, match=r"a/0, field text: expected a string, found NoneType"):
        selected_sources(protocol, found, "pool", no_tokens, 1)


@pytest.mark.parametrize(("minimum", "kept"), [(24, ["a/0", "a/1"]), (25, ["a/1"])])
def test_minimum_tokens_skip_on_the_raw_text(world, pool_bytes, minimum, kept):
    """The minimum holds for the stored text with its outer blanks (24 here), and a skip leaves no gap in the index."""
    protocol, found = world(pool_bytes, minimum_tokens=minimum)
    chosen = selected_sources(protocol, found, "pool", len, len(kept))
    assert sorted(one.source_id for one in chosen) == kept
    assert [one.index for one in chosen] == list(range(len(kept)))


def test_too_few_sources(world, pool_bytes):
    """A pool that can't give the count is an error."""
    protocol, found = world(pool_bytes)
    with pytest.raises(InputError, match=r"domain pool: expected 4 sources, found 3"):
        selected_sources(protocol, found, "pool", no_tokens, 4)


def test_unknown_domain_is_misuse(world, pool_bytes):
    """A domain that the protocol doesn't have is a programmer's error."""
    protocol, found = world(pool_bytes)
    with pytest.raises(RuntimeError, match="no domain 'other'"):
        gold_fields(protocol, found, "other", [])
