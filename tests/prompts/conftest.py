"""A byte-level tokenizer small enough to make in a test, a protocol on it, and a source."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from harness.canon import sha256_hex, text_sha256
from harness.inputs.sources import SourceText
from harness.places import places
from harness.prompts.build import build_batch
from harness.prompts.records import PromptBatch
from harness.prompts.tokenizer import PromptTokenizer, make_tokenizer
from harness.protocols.load import read_profile, read_protocol
from harness.records.base import Frozen
from harness.records.profile import Profile, SpecialIds
from harness.records.protocol import Protocol

BOS, EOS, OTHER = "<|bos|>", "<|eos|>", "<|tool|>"
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'user' %}"
    "{{ 'User: ' + message['content'] + '\n\n' }}{% elif message['role'] == 'assistant' %}"
    "{{ 'Assistant: ' + message['content'] + eos_token }}{% else %}{{ message['content'] + '\n\n' }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}"
)
Files = tuple[bytes, bytes]


@pytest.fixture(scope="session")
def make_files() -> Callable[..., Files]:
    """tokenizer.json and tokenizer_config.json as bytes; keywords replace fields of the config."""

    def make(**config: Any) -> Files:
        alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
        backend = Tokenizer(models.BPE(vocab={letter: at for at, letter in enumerate(alphabet)}, merges=[]))
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        backend.decoder = decoders.ByteLevel()
        backend.add_special_tokens([BOS, EOS])
        backend.add_tokens([AddedToken(OTHER, special=False)])
        fields = {"bos_token": BOS, "eos_token": {"content": EOS}, "pad_token": EOS, "chat_template": TEMPLATE}
        return backend.to_str().encode(), json.dumps({**fields, **config}).encode()

    return make


@pytest.fixture(scope="session")
def files(make_files: Callable[..., Files]) -> Files:
    """The two files, undamaged."""
    return make_files()


@pytest.fixture(scope="session")
def profile_for() -> Callable[[Files], Profile]:
    """A profile that registers the digests of the given two files."""
    registered = read_profile(places().models / "deepseek-v2-lite-chat" / "profile.toml")

    def make(files: Files) -> Profile:
        shas = dict(zip(("tokenizer.json", "tokenizer_config.json"), map(sha256_hex, files), strict=True))
        listed = tuple(
            msgspec.structs.replace(file, digest=Frozen(sha256=shas[file.name])) if file.name in shas else file
            for file in registered.files
        )
        return msgspec.structs.replace(
            registered, id="tiny", files=listed, special_ids=SpecialIds(bos=256, eos=257, pad=257)
        )

    return make


@pytest.fixture(scope="session")
def profile(files: Files, profile_for: Callable[[Files], Profile]) -> Profile:
    """The profile of the undamaged files."""
    return profile_for(files)


@pytest.fixture(scope="session")
def tokenizer(files: Files, profile: Profile) -> PromptTokenizer:
    """The tiny tokenizer."""
    return make_tokenizer(*files, profile=profile, where="a test")


@pytest.fixture(scope="session")
def protocol(tokenizer: PromptTokenizer) -> Protocol:
    """The registered design with the tiny tokenizer's boundary tokens."""
    registered = read_protocol(places().protocols / "deepseek-behavior" / "protocol.toml")
    texts = {"eos": EOS, "bos": BOS, "x": "x", "period": "."}
    boundaries = tuple(
        msgspec.structs.replace(one, token=texts[one.name], id=tokenizer.encode(texts[one.name])[0])
        for one in registered.boundaries
    )
    return msgspec.structs.replace(registered, boundaries=boundaries)


@pytest.fixture(scope="session")
def source() -> SourceText:
    """A source with a brace, a backslash, Chinese, a leading space and a trailing newline."""
    text = " {text} \\boxed{7} 今天\tx.\n"
    return SourceText(
        domain="math",
        index=0,
        source_id="gsm8k/test/1069",
        selection_rank="0" * 64,
        text=text,
        text_sha256=text_sha256(text),
    )


@pytest.fixture(scope="session")
def batch(protocol: Protocol, tokenizer: PromptTokenizer, source: SourceText) -> PromptBatch:
    """That source's batch."""
    return build_batch(protocol, tokenizer, source)


@pytest.fixture
def place(tmp_path: Path) -> Callable[[Files], Path]:
    """Writes the two files into a folder, as a checkpoint has them."""

    def do(files: Files) -> Path:
        for name, data in zip(("tokenizer.json", "tokenizer_config.json"), files, strict=True):
            (tmp_path / name).write_bytes(data)
        return tmp_path

    return do
