import re
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.canon import sha256_hex
from harness.errors import ProtocolError
from harness.places import Places
from harness.protocols.load import LoadedProtocol, load_protocol

PROTOCOL, PROFILE = "deepseek-behavior", "deepseek-v2-lite-chat"
Swap = Callable[[Path, str, str], None]
Seal = Callable[[Path], None]

STRICT = {
    "unknown": ("resume = true\n", "resume = true\nsurprise = 1\n", "only known fields", "unknown field `surprise`"),
    "missing": ("resume = true\n", "", "a field `resume`", "no such field"),
    "bool-from-text": ("resume = true\n", 'resume = "true"\n', "bool", "str"),
    "int-from-text": ("threads = 1\n", 'threads = "1"\n', "int", "str"),
    "text-from-int": ('gpu_memory = "29GiB"\n', "gpu_memory = 29\n", "str", "int"),
    "nested-unknown": ("edits = 0\n", "edits = 0\nextra = 0\n", "only known fields", "unknown field `extra`"),
    "nested-missing": ("use_cache = true\n", "", "a field `use_cache`", "no such field"),
}
FIELDS = {"bool-from-text": "$.resume", "int-from-text": "$.execution.threads", "nested-missing": "$.decode"}


def test_the_frozen_protocol_loads(loaded: LoadedProtocol):
    """The DeepSeek protocol agrees with its digests, its manifest and its profile, and owes the Chinese domain."""
    assert loaded.domains == ("english", "chinese", "code", "math")
    assert [source.source_id for source in loaded.unfrozen] == [f"tnews/test/{n}" for n in (4855, 8935, 3448, 1059)]


def test_an_unknown_protocol_is_named_with_the_known_ones(tree: Places):
    """A protocol that isn't there says which are."""
    with pytest.raises(ProtocolError, match="expected one of deepseek-behavior, found no such folder"):
        load_protocol("other", tree)


@pytest.mark.parametrize("case", STRICT)
def test_protocol_toml_is_strict(case: str, tree: Places, folder: Path, swap: Swap, seal: Seal):
    """No unknown field, no missing field, nothing coerced; the message has field, expected and found."""
    old, new, expected, found = STRICT[case]
    swap(folder / "protocol.toml", old, new)
    seal(folder)
    with pytest.raises(ProtocolError) as raised:
        load_protocol(PROTOCOL, tree)
    assert (raised.value.expected, raised.value.found) == (expected, found)
    assert FIELDS.get(case, "$") in raised.value.where


def test_text_that_is_no_toml_is_refused(tree: Places, folder: Path, swap: Swap, seal: Seal):
    """A file that doesn't parse is a ProtocolError, not a crash."""
    swap(folder / "protocol.toml", "resume = true", "resume = = true")
    seal(folder)
    with pytest.raises(ProtocolError, match="expected UTF-8 TOML"):
        load_protocol(PROTOCOL, tree)


@pytest.mark.parametrize("name", ["protocol.toml", "manifest.json"])
def test_other_bytes_are_refused(name: str, tree: Places, folder: Path):
    """FILES.sha256 binds the bytes of both files, a mere blank line included."""
    path = folder / name
    registered = sha256_hex(path.read_bytes())
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(ProtocolError) as raised:
        load_protocol(PROTOCOL, tree)
    assert raised.value.where.endswith(f"{name}: bytes")
    assert (raised.value.expected, raised.value.found) == (registered, sha256_hex(path.read_bytes()))


@pytest.mark.parametrize("name", ["CANONICAL.sha256", "PROMPTS.sha256"])
def test_another_digest_file_is_refused(name: str, tree: Places, folder: Path):
    """The canonical content and the prompt contract have registered digests; the message shows both."""
    path = folder / name
    right = path.read_text("ascii")
    wrong = "0" * 64 + right[64:]
    path.write_text(wrong, "ascii")
    with pytest.raises(ProtocolError) as raised:
        load_protocol(PROTOCOL, tree)
    assert raised.value.where.endswith(name)
    assert (raised.value.expected, raised.value.found) == (wrong.strip(), right.strip())


def test_another_prompt_hash_is_refused_after_resealing_the_bytes(tree: Places, folder: Path, swap: Swap, seal: Seal):
    """A manifest that was edited together with FILES.sha256 still fails on its canonical content."""
    sha = re.search(r'"sha256": "([0-9a-f]{64})"', (folder / "manifest.json").read_text("utf-8"))
    assert sha
    swap(folder / "manifest.json", sha[1], "f" * 64)
    seal(folder)
    with pytest.raises(ProtocolError, match=r"CANONICAL\.sha256"):
        load_protocol(PROTOCOL, tree)


def test_another_profile_is_refused(tree: Places, swap: Swap, loaded: LoadedProtocol):
    """The protocol pins its model profile by canonical content."""
    swap(tree.models / PROFILE / "profile.toml", "85864749", "85864740")
    with pytest.raises(ProtocolError) as raised:
        load_protocol(PROTOCOL, tree)
    assert raised.value.where.endswith("profile.toml: canonical content")
    assert raised.value.expected == loaded.protocol.model.profile_sha256
    assert re.fullmatch("[0-9a-f]{64}", raised.value.found)


@pytest.mark.parametrize("line", ["{zeros}  protocol.toml\n", "{zeros}  claims.toml\n"])
def test_a_line_more_in_a_digest_file_is_refused(tree, folder, line):
    """A second digest of a file, or one of a file that isn't frozen: `sha256sum -c` would say so too."""
    path = folder / "FILES.sha256"
    path.write_text(line.format(zeros="0" * 64) + path.read_text("ascii"), "ascii")
    with pytest.raises(ProtocolError, match=r"FILES\.sha256"):
        load_protocol(PROTOCOL, tree)
