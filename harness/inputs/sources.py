"""Sources out of verified rows: their texts for prompts, their selection for freezing, their gold for evaluators.

Three doors, kept apart. `source_texts` gives what a prompt builder may see, held against the manifest.
`selected_sources` applies the rank rule from scratch and knows no manifest. `gold_fields` is the only way to gold.
Texts are as stored: a WikiText row keeps its leading space and trailing newline (DECISIONS: cells, order, grids).
"""

import re
from collections.abc import Callable, Sequence
from itertools import islice

from harness.canon import text_sha256
from harness.errors import InputError, ProtocolError
from harness.inputs.find import FoundInputs, require_present
from harness.inputs.readers import Row, placed_rows
from harness.protocols.load import LoadedProtocol
from harness.records.base import Record
from harness.records.manifest import FrozenSource, Manifest
from harness.records.protocol import Protocol, StudyDesign
from harness.records.sources import Domain
from harness.selection import select

_ID = re.compile(r"[A-Za-z0-9._/-]{1,100}")
TODO = "Take the registered file from its publisher, or correct the domain in the protocol before it's frozen."


class SourceText(Record):
    """A source as a prompt may see it: no gold answer, no test, no entry point. `index` is its rank from 0."""

    domain: str
    index: int
    source_id: str
    selection_rank: str
    text: str
    text_sha256: str


def source_texts(
    loaded: LoadedProtocol, found: FoundInputs, *, domains: Sequence[str], per_domain: int
) -> list[SourceText]:
    """The manifest's first `per_domain` sources of each named domain, in the given order, then by index.

    Raises InputError where a file, a source or a text isn't the registered one, ProtocolError where the manifest owes
    the source (R04 3: source IDs, ranks and order are taken over, the text is whole).
    """
    texts: list[SourceText] = []
    for name in domains:
        domain = registered_domain(loaded.protocol, name)
        entries = [_entry(loaded.manifest, name, index) for index in range(per_domain)]
        rows = _rows_by_id(domain, found)
        texts += [_held_against(entry, domain, rows) for entry in entries]
    return texts


def selected_sources(
    protocol: Protocol, found: FoundInputs, domain: str, count_tokens: Callable[[str], int], count: int
) -> list[SourceText]:
    """The first `count` sources of the named domain by rank, raw texts under its minimum of tokens skipped.

    `count_tokens` gives the number of tokens of a raw text, without BOS. Raises InputError for fewer than `count`.
    """
    chosen = registered_domain(protocol, domain)
    rows = _rows_by_id(chosen, found)
    if isinstance(protocol, StudyDesign):
        require_clean_pool(chosen, found)
    texts = {source_id: _string(chosen, source_id, row, chosen.text_field) for source_id, row in rows.items()}
    order = select(
        protocol.selection.salt, domain, texts, minimum_tokens=chosen.minimum_tokens, count_tokens=count_tokens
    )
    ranked = [
        SourceText(
            domain=domain,
            index=index,
            source_id=source_id,
            selection_rank=rank,
            text=texts[source_id],
            text_sha256=text_sha256(texts[source_id]),
        )
        for index, (rank, source_id) in enumerate(islice(order, count))
    ]
    if len(ranked) < count:
        raise InputError(
            f"input {chosen.input}: domain {domain}", expected=f"{count} sources", found=str(len(ranked)), todo=TODO
        )
    return ranked


def gold_fields(
    protocol: Protocol, found: FoundInputs, domain: str, source_ids: Sequence[str]
) -> dict[str, dict[str, str]]:
    """The domain's gold fields of the given sources, by source ID, then by field. For evaluators alone.

    Raises InputError where a source or a field isn't in the registered file (R08 3.2: gold enters after generation).
    """
    chosen = registered_domain(protocol, domain)
    rows = _rows_by_id(chosen, found)
    return {
        source_id: {field: _string(chosen, source_id, _row(chosen, source_id, rows), field) for field in chosen.gold}
        for source_id in source_ids
    }


def registered_domain(protocol: Protocol, name: str) -> Domain:
    """The protocol's domain of this name; an unknown name is misuse."""
    for domain in protocol.domains:
        if domain.name == name:
            return domain
    raise RuntimeError(f"{protocol.id} has no domain {name!r}, only {[domain.name for domain in protocol.domains]}")


def _entry(manifest: Manifest, domain: str, index: int) -> FrozenSource:
    for source in manifest.sources:
        if (source.domain, source.index) == (domain, index):
            if isinstance(source, FrozenSource):
                return source
            raise _owed(manifest, domain, index, f"unfrozen ({source.reason})")
    raise _owed(manifest, domain, index, "no such source")


def _owed(manifest: Manifest, domain: str, index: int, found: str) -> ProtocolError:
    return ProtocolError(
        f"manifest of {manifest.protocol}: {domain} {index}",
        expected="a frozen source",
        found=found,
        todo="Run without this domain as a port, or freeze it once its registered input is available.",
    )


def _held_against(entry: FrozenSource, domain: Domain, rows: dict[str, Row]) -> SourceText:
    text = _string(domain, entry.source_id, _row(domain, entry.source_id, rows), domain.text_field)
    found = text_sha256(text)
    if found != entry.text_sha256:
        raise InputError(
            f"input {domain.input}: text of {entry.source_id}",
            expected=f"SHA-256 {entry.text_sha256}",
            found=found,
            todo="The manifest was frozen from another file or field; take both from version control.",
        )
    return SourceText(
        domain=domain.name,
        index=entry.index,
        source_id=entry.source_id,
        selection_rank=entry.selection_rank,
        text=text,
        text_sha256=found,
    )


def _rows_by_id(domain: Domain, found: FoundInputs) -> dict[str, Row]:
    rows: dict[str, Row] = {}
    for n, (at, row) in enumerate(placed_rows(require_present(found, domain.input))):
        source_id = _source_id(domain, n, row)
        if source_id in rows:
            where = f"input {domain.input}: row {n}"
            raise InputError(where, expected="each source once", found=f"{source_id} again, {at}", todo=TODO)
        rows[source_id] = row
    return rows


def require_clean_pool(domain: Domain, found: FoundInputs) -> None:
    """Every row of an author's own file can be a source: an ID that can be a file's name, a text, gold fields of text.

    InputError names the first line that can't. Which rows a study takes is decided by rank, so none may be left out.
    """
    for n, (at, row) in enumerate(placed_rows(require_present(found, domain.input))):
        source_id, where = _source_id(domain, n, row), f"input {domain.input}: {at}"
        if _ID.fullmatch(source_id) is None:
            expected = f"an ID for {domain.source_id} of 1 to 100 letters, digits and . _ / -"
            raise InputError(where, expected=expected, found=repr(source_id), todo=TODO)
        for field in (domain.text_field, *domain.gold):
            value = row.get(field)
            if not isinstance(value, str) or (field == domain.text_field and not value.strip()):
                found_word = type(value).__name__ if field in row else "no such field"
                empty = "an empty text" if isinstance(value, str) else found_word
                raise InputError(f"{where}: field {field}", expected="a text", found=empty, todo=TODO)


def _source_id(domain: Domain, n: int, row: Row) -> str:
    try:
        # `n` is always the row's number, also in a file that has a field of that name.
        return domain.source_id.format_map({**row, "n": n})
    except (KeyError, IndexError, AttributeError, ValueError, TypeError) as error:
        raise InputError(
            f"input {domain.input}: row {n}",
            expected=f"fields for the source ID {domain.source_id}",
            found=f"{type(error).__name__} {error}",
            todo=TODO,
        ) from error


def _row(domain: Domain, source_id: str, rows: dict[str, Row]) -> Row:
    if source_id not in rows:
        raise InputError(
            f"input {domain.input}", expected=f"source {source_id}", found=f"{len(rows)} others", todo=TODO
        )
    return rows[source_id]


def _string(domain: Domain, source_id: str, row: Row, field: str) -> str:
    value = row.get(field)
    if not isinstance(value, str):
        # The value itself isn't shown: it may be gold.
        found = type(value).__name__ if field in row else "no such field"
        where = f"input {domain.input}: {source_id}, field {field}"
        raise InputError(where, expected="a string", found=found, todo=TODO)
    return value
