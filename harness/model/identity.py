"""The checkpoint's identity, checked before any of it is loaded: names, digests, shape, special IDs. No torch here.

R04 6.1: four shards, tokenizer and model code are fixed by digest. A file whose digest is owed stops a formal run;
under a port the digests found are recorded as deviations.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from harness.errors import ModelError
from harness.files import file_sha256
from harness.model.json_file import json_object
from harness.model.shape import check_fields
from harness.records.base import Frozen
from harness.records.profile import Profile, ProfileFile
from harness.records.run import Deviation

TOKENIZER_ROLES = ("tokenizer", "tokenizer_config")
INERT = (".", "README", "LICENSE")  # no library loads a model from these
FETCH = "Fetch the file again."
AT_A_TIME = 4  # files hashed at once; hashing leaves the interpreter to the others
ABSENT = "no such file"
MADE_RECORD = "checkpoint.json"  # what `harness.model.made` reads; no library does


def checkpoint_digests(
    profile: Profile, checkpoint: Path, note: Callable[[str], None] = lambda _: None
) -> dict[str, str]:
    """SHA-256 of every file that the profile names, several read at a time; StorageError for a missing one."""

    def sha256(name: str) -> str:
        note(name)
        return file_sha256(checkpoint / name, what=f"checkpoint file of {profile.id}")

    names = [file.name for file in profile.files]
    with ThreadPoolExecutor(AT_A_TIME) as readers:
        return dict(zip(names, readers.map(sha256, names), strict=True))


def digests_of_a_run(profile: Profile, checkpoint: Path) -> dict[str, str]:
    """The same, with the word ABSENT for a code file that isn't there: a port doesn't execute it either."""
    gone = [file.name for file in profile.files if file.role == "code" and not (checkpoint / file.name).exists()]
    there = tuple(file for file in profile.files if file.name not in gone)
    found = checkpoint_digests(msgspec.structs.replace(profile, files=there), checkpoint)
    return {file.name: found.get(file.name, ABSENT) for file in profile.files}


def file_deviations(profile: Profile, found: dict[str, str]) -> tuple[Deviation, ...]:
    """Files whose digest isn't the registered one, or is owed."""
    return tuple(
        Deviation(field=f"checkpoint.{file.name}", registered=registered_digest(file), actual=found[file.name])
        for file in profile.files
        if registered_digest(file) != found[file.name]
    )


def registered_digest(file: ProfileFile) -> str:
    """The pin of a file, or the word unfrozen with its reason."""
    return file.digest.sha256 if isinstance(file.digest, Frozen) else f"unfrozen ({file.digest.reason})"


def require_registered(profile: Profile, found: dict[str, str], *, port: bool) -> tuple[Deviation, ...]:
    """Deviations of a port; for anything else a ModelError, and even in a port for a tokenizer and for code that has a
    pin: what is pinned is executed.
    """
    deviations = file_deviations(profile, found)
    named = {file.name: file for file in profile.files}
    for deviation in deviations:
        file = named[deviation.field.removeprefix("checkpoint.")]
        pinned_code = file.role == "code" and isinstance(file.digest, Frozen) and deviation.actual != ABSENT
        if not port or file.role in TOKENIZER_ROLES or pinned_code:
            raise ModelError(
                f"checkpoint file {file.name} of {profile.id}",
                expected=deviation.registered,
                found=deviation.actual,
                todo="Use the registered checkpoint. Other weights run under --port; another tokenizer or code can't.",
            )
    return deviations


def check_shape(profile: Profile, checkpoint: Path) -> None:
    """The config's counts are the profile's; safetensors weights only; no quantisation."""
    config = json_object(checkpoint / "config.json", todo=FETCH)
    check_fields(config, profile.shape, str(checkpoint / "config.json"))
    if "quantization_config" in config and not profile.quantised:
        raise ModelError(
            f"{checkpoint / 'config.json'}: quantization_config",
            expected="no quantisation",
            found="a quantised model",
            todo="A quantised model is another profile under another name.",
        )
    _require_no_strangers(profile, checkpoint)


def _require_no_strangers(profile: Profile, checkpoint: Path) -> None:
    """Libraries load more than the named files (an adapter, a stray weight file before an index): none is here."""
    named = {MADE_RECORD, *(file.name for file in profile.files)}
    strangers = sorted(
        path.name for path in checkpoint.iterdir() if path.name not in named and not path.name.startswith(INERT)
    )
    if strangers:
        raise ModelError(
            str(checkpoint),
            expected=f"the {len(profile.files)} files of profile {profile.id} and nothing that a library could load",
            found=", ".join(strangers),
            todo="Give a folder with the profile's files alone.",
        )


def check_special_ids(profile: Profile, checkpoint: Path) -> None:
    """generation_config.json, where the profile has one, and config.json name the profile's BOS and EOS.

    The registered file may name several EOS, the profile's among them: the contract's one is passed explicitly. Where
    the tokenizer has no BOS, theirs is never used.
    """
    ids, listed = profile.special_ids, {file.name: file for file in profile.files}
    for name in (one for one in ("generation_config.json", "config.json") if one in listed):
        content = json_object(checkpoint / name, todo=FETCH)
        pinned = registered_digest(listed[name]) == file_sha256(checkpoint / name, what="checkpoint file")
        for field, value in (("bos_token_id", ids.bos_id), ("eos_token_id", ids.eos)):
            if value is None:
                continue
            found = content.get(field)
            if found != value and not (pinned and isinstance(found, list) and value in found):
                raise ModelError(
                    f"{checkpoint / name}: {field}",
                    expected=str(value),
                    found=str(content.get(field, "no such field")),
                    todo="This isn't the registered model.",
                )
