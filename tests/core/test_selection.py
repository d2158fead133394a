"""The source rule: ranks by hash, and a minimum that only skips."""

import hashlib

import pytest

from harness.selection import ranked, select, selection_rank

IDS = [f"pool/{number}" for number in range(40)]


def test_a_rank_is_the_hash_of_the_three_parts():
    """FACTS: hex SHA-256 of `{salt}|{domain}|{source_id}`."""
    assert selection_rank("salt", "code", "HumanEval/0") == hashlib.sha256(b"salt|code|HumanEval/0").hexdigest()


def test_a_rank_is_over_utf8():
    """A Chinese ID has the rank of its UTF-8 bytes."""
    assert selection_rank("s", "d", "\u4e2d") == hashlib.sha256("s|d|\u4e2d".encode()).hexdigest()


@pytest.mark.parametrize("change", [("t", "d", "i"), ("s", "e", "i"), ("s", "d", "j")], ids=["salt", "domain", "id"])
def test_every_part_changes_the_rank(change):
    """No part is ignored."""
    assert selection_rank(*change) != selection_rank("s", "d", "i")


def test_the_order_of_the_pool_is_not_content():
    """The same ranks from the pool backwards."""
    assert ranked("s", "d", reversed(IDS)) == ranked("s", "d", IDS)
    assert [rank for rank, _ in ranked("s", "d", IDS)] == sorted(selection_rank("s", "d", one) for one in IDS)


def test_a_short_source_is_skipped_and_the_next_one_taken():
    """The ranks of the others don't move."""
    texts = {one: "word " * (int(one.split("/")[1]) % 3) for one in IDS}
    taken = list(select("s", "d", texts, minimum_tokens=2, count_tokens=lambda text: len(text.split())))
    assert taken == [pair for pair in ranked("s", "d", IDS) if len(texts[pair[1]].split()) >= 2]


def test_the_minimum_is_inclusive():
    """Exactly the minimum is enough; one token less isn't."""
    texts = {"a": "one two", "b": "one"}
    taken = select("s", "d", texts, minimum_tokens=2, count_tokens=lambda text: len(text.split()))
    assert [source_id for _, source_id in taken] == ["a"]


def test_without_a_minimum_nothing_is_counted():
    """Empty sources are taken too, and no tokenizer is asked."""

    def refuse(text):
        raise AssertionError(text)

    texts = dict.fromkeys(IDS, "")
    assert list(select("s", "d", texts, minimum_tokens=0, count_tokens=refuse)) == ranked("s", "d", IDS)
