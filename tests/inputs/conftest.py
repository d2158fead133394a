"""Small registered files and protocols built by hand; the real ones come from HARNESS_INPUTS."""

import gzip
import json
import os
import zipfile
from pathlib import Path

import msgspec
import pytest

from harness.canon import sha256_hex
from harness.protocols.load import read_protocol
from harness.records.base import Frozen, Unfrozen
from harness.records.protocol import BehaviorProtocol
from harness.records.sources import Archive, Domain, InputFile, Selection

PROJECT = Path(__file__).resolve().parents[2]
ROWS = (
    {"id": "a/0", "text": " first text of the pool\n", "answer": "41", "entry_point": "f"},
    {"id": "a/1", "text": "第二 text\u2028with a line separator", "answer": "42", "entry_point": "g"},
    {"id": "a/2", "text": "", "answer": "43", "entry_point": "h"},
)


def json_lines(rows) -> bytes:
    """Rows as JSON lines, one newline after each."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


@pytest.fixture
def pool_bytes() -> bytes:
    """The small pool as JSON lines."""
    return json_lines(ROWS)


@pytest.fixture
def jsonl():
    """The encoder of rows as JSON lines."""
    return json_lines


@pytest.fixture
def registered():
    """A factory of registered input files."""

    def make(data: bytes | None, *, name="pool", file_name="pool.jsonl", form="jsonl", location="nowhere", archives=()):
        digest = Unfrozen(reason="the pool is being made") if data is None else Frozen(sha256=sha256_hex(data))
        return InputFile(
            name=name,
            file_name=file_name,
            format=form,
            digest=digest,
            location=location,
            licence="ours",
            archives=tuple(archives),
        )

    return make


@pytest.fixture
def zipped():
    """A factory of zip files with one member, registered as an archive."""

    def make(path: Path, member: str, data: bytes, *, registered_member: str | None = None, location="nowhere"):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(member, data)
        return Archive(
            file_name=path.name,
            digest=Frozen(sha256=sha256_hex(path.read_bytes())),
            member=registered_member or member,
            location=location,
        )

    return make


@pytest.fixture
def gz():
    """Gzip with a fixed time stamp."""
    return lambda data: gzip.compress(data, mtime=0)


@pytest.fixture
def nano() -> BehaviorProtocol:
    """The nano protocol's record, as the base of small ones."""
    return read_protocol(PROJECT / "fixtures" / "protocols" / "nano-behavior" / "protocol.toml")


@pytest.fixture
def pool_domain() -> Domain:
    """A domain over the small pool with two gold fields."""
    return Domain(
        name="pool",
        input="pool",
        source_id="{id}",
        text_field="text",
        gold=("answer", "entry_point"),
        minimum_tokens=0,
        content="{text}",
    )


@pytest.fixture
def protocol_of(nano):
    """A factory of protocols with the given inputs, domains and salt, otherwise nano."""

    def make(inputs, domains, salt="llm-atlas-deepseek-routing-template-control-v1"):
        return msgspec.structs.replace(
            nano,
            inputs=tuple(inputs),
            domains=tuple(domains),
            selection=Selection(rule="sha256-salt-domain-source", salt=salt),
        )

    return make


@pytest.fixture
def real_folder() -> Path:
    """The folder of real registered files."""
    return Path(os.environ["HARNESS_INPUTS"])


@pytest.fixture
def real_inputs() -> tuple[InputFile, ...]:
    """The three registered files that can be had, by their published digests."""
    listed = (
        (
            "humaneval",
            "HumanEval.jsonl.gz",
            "jsonl.gz",
            "b796127e635a67f93fb35c04f4cb03cf06f38c8072ee7cee8833d7bee06979ef",
        ),
        ("gsm8k", "test.jsonl", "jsonl", "3730d312f6e3440559ace48831e51066acaca737f6eabec99bccb9e4b3c39d14"),
        (
            "wikitext",
            "wikitext-validation.parquet",
            "parquet",
            "204929b7ff9d6184953f867dedb860e40aa69c078fc1e54b3baaa8fb28511c4c",
        ),
    )
    return tuple(
        InputFile(
            name=name,
            file_name=file_name,
            format=form,
            digest=Frozen(sha256=sha256),
            location="nowhere",
            licence="its publisher's",
            archives=(),
        )
        for name, file_name, form, sha256 in listed
    )


@pytest.fixture
def real_protocol(protocol_of, real_inputs) -> BehaviorProtocol:
    """English, code and math over the real files."""
    domains = [
        Domain(
            name="english",
            input="wikitext",
            source_id="wikitext2/raw-validation/{n:04d}",
            text_field="text",
            gold=(),
            minimum_tokens=23,
            content="{text}",
        ),
        Domain(
            name="code",
            input="humaneval",
            source_id="{task_id}",
            text_field="prompt",
            gold=("entry_point", "canonical_solution", "test"),
            minimum_tokens=0,
            content="{text}",
        ),
        Domain(
            name="math",
            input="gsm8k",
            source_id="gsm8k/test/{n:04d}",
            text_field="question",
            gold=("answer",),
            minimum_tokens=0,
            content="{text}",
        ),
    ]
    return protocol_of(real_inputs, domains)
