import os
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner, Result

from harness.cli.freeze import freeze_protocol
from harness.cli.freezing import require_input_digests
from harness.errors import InputError, ProtocolError
from harness.places import Places
from harness.protocols.freeze import (
    check_published,
    manifest_bytes,
    owed_sources,
    published_sources,
    require_unused,
    write_frozen,
)
from harness.protocols.load import LoadedProtocol
from harness.records.base import Unfrozen

PROTOCOL = "deepseek-behavior"
WRITTEN = ("manifest.json", "FILES.sha256", "CANONICAL.sha256", "PROMPTS.sha256")


def test_the_manifest_has_one_spelling(loaded: LoadedProtocol):
    """manifest.json is exactly what freezing its own content writes."""
    assert manifest_bytes(loaded.manifest) == (loaded.folder / "manifest.json").read_bytes()


def test_writing_the_same_manifest_gives_the_same_files(loaded: LoadedProtocol, folder: Path):
    """The four written files are functions of protocol, manifest and profile."""
    before = {name: (folder / name).read_bytes() for name in WRITTEN}
    for name in WRITTEN:
        (folder / name).unlink()
    write_frozen(folder, loaded.protocol, loaded.manifest, profile=loaded.profile)
    assert {name: (folder / name).read_bytes() for name in WRITTEN} == before


def test_nothing_is_written_where_the_records_disagree(loaded: LoadedProtocol, folder: Path):
    """A manifest of another protocol is refused before a file changes."""
    before = (folder / "manifest.json").read_bytes()
    other = msgspec.structs.replace(loaded.manifest, protocol="other")
    with pytest.raises(ProtocolError, match="found other"):
        write_frozen(folder, loaded.protocol, other, profile=loaded.profile)
    assert (folder / "manifest.json").read_bytes() == before


@pytest.mark.parametrize("where", ["snapshots", "reports"])
def test_a_protocol_in_use_is_not_frozen_anew(where: str, tree: Places):
    """One snapshot or one run is enough: a changed protocol is another protocol."""
    used = tree.root / where / PROTOCOL / "smoke"
    used.mkdir(parents=True)
    with pytest.raises(ProtocolError, match="expected no snapshot and no run before freezing"):
        freeze_protocol(PROTOCOL, [], checkpoint=None, tree=tree)


def test_an_empty_folder_is_no_use(tree: Places):
    """An empty reports folder holds no run."""
    (tree.reports / PROTOCOL).mkdir(parents=True)
    require_unused(tree.protocols / PROTOCOL, tree)


def test_published_ids_that_the_rule_does_not_give_are_refused(loaded: LoadedProtocol):
    """Selection from scratch must reproduce the document's sources."""
    published = published_sources(loaded.folder)["math"]
    with pytest.raises(ProtocolError, match=r"published_sources\.json: math: expected gsm8k/test/1069, .*, found"):
        check_published("math", published, published[::-1])


def test_a_domain_without_input_and_without_published_ids_is_refused(loaded: LoadedProtocol):
    """No source is invented for an input that isn't here."""
    with pytest.raises(ProtocolError, match="expected 4 published source IDs, since its input isn't here, found 0"):
        owed_sources(loaded.protocol, "chinese", [])


def test_an_unfrozen_input_digest_is_shown_with_what_is_there(loaded: LoadedProtocol, tmp_path: Path):
    """The author gets the digest of the file under the registered name, to write into protocol.toml."""
    (tmp_path / "test.json").write_bytes(b"{}\n")
    tnews = msgspec.structs.replace(loaded.protocol.inputs[3], digest=Unfrozen(reason="being made"))
    protocol = msgspec.structs.replace(loaded.protocol, inputs=(*loaded.protocol.inputs[:3], tnews))
    with pytest.raises(ProtocolError) as raised:
        require_input_digests(protocol, [tmp_path])
    assert raised.value.where == "protocol deepseek-behavior: inputs.tnews.digest"
    assert "ca3d163bab055381827226140568f3bef7eaac187cebd76878e0b63e9e442356" in raised.value.found


def test_a_wrong_profile_digest_is_shown_with_the_right_one(loaded: LoadedProtocol, tree: Places, folder: Path):
    """protocol.toml isn't rewritten: the message has the digest to paste."""
    right = loaded.protocol.model.profile_sha256
    path = folder / "protocol.toml"
    path.write_text(path.read_text("utf-8").replace(right, "0" * 64), "utf-8")
    with pytest.raises(ProtocolError, match=f"expected {'0' * 64}, found {right}"):
        freeze_protocol(PROTOCOL, [], checkpoint=None, tree=tree)


def run(command: str, *arguments: str) -> Result:
    """One of the two commands, as `python -m harness` would run it."""
    import typer

    from harness.cli.freeze import freeze
    from harness.cli.prompts import prompts

    app = typer.Typer()
    app.command()(freeze)
    app.command()(prompts)
    return CliRunner().invoke(app, [command, *arguments])


@pytest.mark.inputs
def test_freezing_again_from_the_registered_files_gives_the_committed_bytes(
    tree: Places, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    """Selection, prompts and hashes are reproduced from the registered inputs and tokenizer, byte for byte."""
    before = {name: (folder / name).read_bytes() for name in WRITTEN}
    monkeypatch.setenv("HARNESS_ROOT", str(tree.root))
    result = run("freeze", PROTOCOL, "--inputs", os.environ["HARNESS_INPUTS"])
    assert result.exit_code == 0, result.output
    assert "12 sources frozen, 4 unfrozen" in result.output
    assert {name: (folder / name).read_bytes() for name in WRITTEN} == before


@pytest.mark.inputs
def test_an_altered_input_freezes_nothing(tree: Places, folder: Path, tmp_path_factory: pytest.TempPathFactory):
    """A file under a registered name with other bytes isn't taken for a missing one."""
    other = tmp_path_factory.mktemp("inputs")
    (other / "test.json").write_text('{"sentence": "x"}\n', "utf-8")
    before = (folder / "manifest.json").read_bytes()
    with pytest.raises(InputError, match="input tnews"):
        freeze_protocol(PROTOCOL, [Path(os.environ["HARNESS_INPUTS"]), other], checkpoint=None, tree=tree)
    assert (folder / "manifest.json").read_bytes() == before


@pytest.mark.inputs
def test_prompts_lists_every_cell_as_registered():
    """96 frozen cells agree, four sources are named as unfrozen, and the whole-text note is said once."""
    result = run("prompts", PROTOCOL, "--inputs", os.environ["HARNESS_INPUTS"])
    assert result.exit_code == 0, result.output
    assert result.output.count("as registered") == 96
    assert result.output.count("unfrozen: ") == 4
    assert result.output.count("whole source text") == 1


@pytest.mark.inputs
def test_prompts_without_inputs_fails_and_says_what_is_missing(monkeypatch: pytest.MonkeyPatch):
    """A domain that can't be checked isn't a domain that agrees."""
    monkeypatch.delenv("HARNESS_INPUTS", raising=False)
    result = run("prompts", PROTOCOL)
    assert result.exit_code == 1
    assert result.stderr.count("expected the registered file") == 3


@pytest.mark.inputs
def test_prompts_fails_on_a_registered_hash_that_the_prompt_does_not_have(
    tree: Places, folder: Path, loaded: LoadedProtocol, monkeypatch: pytest.MonkeyPatch
):
    """One differing hash is named with expected and found, and the exit code is 1."""
    source = loaded.manifest.sources[0]
    entry = msgspec.structs.replace(source.prompts["s0_x"], sha256="f" * 64)
    wrong = msgspec.structs.replace(source, prompts={**source.prompts, "s0_x": entry})
    manifest = msgspec.structs.replace(loaded.manifest, sources=(wrong, *loaded.manifest.sources[1:]))
    write_frozen(folder, loaded.protocol, manifest, profile=loaded.profile)
    monkeypatch.setenv("HARNESS_ROOT", str(tree.root))
    result = run("prompts", PROTOCOL, "--inputs", os.environ["HARNESS_INPUTS"])
    assert result.exit_code == 1
    assert result.output.count("differs: ") == 1
    assert f"differs: sha256 expected {'f' * 64}, found {source.prompts['s0_x'].sha256}" in result.output
