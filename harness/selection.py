"""The source rule: rank of a source = hex SHA-256 of `{salt}|{domain}|{source_id}`, ascending."""

from collections.abc import Callable, Iterable, Iterator

from harness.canon import sha256_hex


def selection_rank(salt: str, domain: str, source_id: str) -> str:
    """64 lower-case hex digits; sources are taken in ascending order of it."""
    return sha256_hex(f"{salt}|{domain}|{source_id}".encode())


def ranked(salt: str, domain: str, source_ids: Iterable[str]) -> list[tuple[str, str]]:
    """(rank, source ID) pairs, ascending."""
    return sorted((selection_rank(salt, domain, source_id), source_id) for source_id in source_ids)


def select(
    salt: str, domain: str, texts: dict[str, str], *, minimum_tokens: int, count_tokens: Callable[[str], int]
) -> Iterator[tuple[str, str]]:
    """(rank, source ID) in rank order, skipping a source whose raw text has fewer than `minimum_tokens` tokens."""
    for rank, source_id in ranked(salt, domain, texts):
        if minimum_tokens == 0 or count_tokens(texts[source_id]) >= minimum_tokens:
            yield rank, source_id
