"""Downloading registered input files from their publishers into a folder, held against the registered digests.

Only a plain http or https address of a file or of a registered archive is fetched; the digest, not the connection, is
what is trusted. A download lands under its registered name only after its digest matched; nothing that was in the
folder is overwritten or removed.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pooch

from harness.errors import InputError
from harness.files import file_sha256, require_writable
from harness.inputs.find import Present, find_files, publisher, require_present
from harness.records.base import Digest, Frozen, Record, Unfrozen
from harness.records.sources import InputFile

TIMEOUT_S = 60


class Fetched(Record, tag_field="state", tag="fetched"):
    """Downloaded just now, digest verified."""

    present: Present


class AlreadyThere(Record, tag_field="state", tag="already_there"):
    """The registered bytes were in the folder (or are embedded); nothing was downloaded."""

    present: Present


class NotFetched(Record, tag_field="state", tag="not_fetched"):
    """Nothing can be fetched automatically: why, and where the publisher has it."""

    name: str
    why: str
    location: str


class Source(Record):
    """One address to fetch from: the file itself or an archive of it, with its registered digest."""

    file_name: str
    url: str
    sha256: str


FetchState = Fetched | AlreadyThere | NotFetched


def fetch_inputs(inputs: Sequence[InputFile], folder: Path) -> list[FetchState]:
    """Fetch what isn't there, input by input; one state for each, in order.

    Raises InputError for a wrong digest (expected and found), a failed download or a file that is in the way,
    StorageError for a folder that can't be written.
    """
    require_writable(folder)
    return [_fetch_input(file, folder) for file in inputs]


def _fetch_input(file: InputFile, folder: Path) -> FetchState:
    state = find_files((file,), (folder,)).states[0]
    if isinstance(state, Present):
        return AlreadyThere(present=state)
    source = _source(file)
    if source is None:
        return NotFetched(name=file.name, why=_why_not(file), location=publisher(file))
    _download(source, folder)
    # Looking again, by bytes, also holds an archive's member against the registered file.
    return Fetched(present=require_present(find_files((file,), (folder,)), file.name))


def _source(file: InputFile) -> Source | None:
    offers: list[tuple[str, str, Digest]] = [(file.file_name, file.location, file.digest)]
    offers += [(archive.file_name, archive.location, archive.digest) for archive in file.archives]
    if isinstance(file.digest, Unfrozen):
        return None
    for name, url, registered in offers:
        if isinstance(registered, Frozen) and _fetchable(url):
            return Source(file_name=name, url=url, sha256=registered.sha256)
    return None


def _fetchable(location: str) -> bool:
    parts = urlsplit(location)
    return parts.scheme in ("http", "https") and bool(parts.netloc) and " " not in location


def _why_not(file: InputFile) -> str:
    if isinstance(file.digest, Unfrozen):
        return f"its digest is unfrozen: {file.digest.reason}"
    return "its location is no address that a file can be fetched from"


def _download(source: Source, folder: Path) -> None:
    target = folder / source.file_name
    if target.exists():
        raise InputError(
            str(target),
            expected=f"SHA-256 {source.sha256}",
            found=file_sha256(target, what="input file"),
            todo="Move this file away, then fetch again; it isn't overwritten.",
        )
    seen: list[str] = []

    def downloader(url: str, output_file: str, manager: Any) -> None:
        pooch.HTTPDownloader(timeout=TIMEOUT_S)(url, output_file, manager)
        seen.append(file_sha256(Path(output_file), what="download"))

    with _quiet_pooch(), _fetch_errors(source, seen):
        pooch.retrieve(
            source.url,
            known_hash=f"sha256:{source.sha256}",
            fname=source.file_name,
            path=folder,
            downloader=downloader,
        )


@contextmanager
def _fetch_errors(source: Source, seen: list[str]) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        # pooch's own word for a digest that doesn't match; anything before the download is another ValueError.
        found = seen[-1] if seen else str(error)
        raise InputError(
            source.url,
            expected=f"SHA-256 {source.sha256}",
            found=found,
            todo="The publisher's file changed or the address gives something else; nothing was kept.",
        ) from error
    except OSError as error:  # requests' exceptions are OSErrors too
        raise InputError(
            source.url,
            expected="a file",
            found=" ".join(str(error).split()),
            todo="Check the connection and try again.",
        ) from error


@contextmanager
def _quiet_pooch() -> Iterator[None]:
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
