"""Registration evidence: every identity that a protocol registers, as found on this disk. Loads no torch.

Raises where the session can't go on at all (shape, special IDs, tokenizer, prompts, a pin that isn't met without
--port); what can be judged as a row is returned as a pair of registered and found.
"""

from pathlib import Path

from harness.canon import canonical_bytes, digest, sha256_hex
from harness.checks.frozen import RegistrationEvidence
from harness.files import read_bytes
from harness.model.identity import (
    check_shape,
    check_special_ids,
    digests_of_a_run,
    registered_digest,
)
from harness.model.made import checkpoint_deviations
from harness.prompts.tokenizer import PromptTokenizer
from harness.protocols.load import CANONICAL, FILES, PROMPTS, LoadedProtocol, prompt_contract_sha256, read_digests
from harness.run.prepare import prepare
from harness.run.request import Request


def registration_evidence(loaded: LoadedProtocol, request: Request) -> RegistrationEvidence:
    """Check what must hold before any model code runs, and list every identity (R04 6.1-6.2)."""
    checkpoint = Path(request.checkpoint)
    found = digests_of_a_run(loaded.profile, checkpoint)
    deviations = checkpoint_deviations(loaded.profile, checkpoint, found, port=request.port)
    check_shape(loaded.profile, checkpoint)
    check_special_ids(loaded.profile, checkpoint)
    tokenizer, _ = prepare(loaded, request)
    identities = protocol_identities(loaded) | {"special_ids": special_ids(loaded, tokenizer)}
    for file in loaded.profile.files:
        identities[file.name] = (registered_digest(file), found[file.name])
    return RegistrationEvidence(identities, deviations)


def protocol_identities(loaded: LoadedProtocol) -> dict[str, tuple[str, str]]:
    """Registered and found digests of the protocol's own files, read again from disk."""
    files, canonical = read_digests(loaded.folder / FILES), read_digests(loaded.folder / CANONICAL)
    prompts = read_digests(loaded.folder / PROMPTS)
    identities = {
        name: (files.get(name, "none"), sha256_hex(read_bytes(loaded.folder / name, what=name)))
        for name in ("protocol.toml", "manifest.json")
    }
    if canonical.get("protocol") != sha256_hex(canonical_bytes(loaded.protocol)):
        identities["protocol.toml"] = (canonical.get("protocol", "none"), sha256_hex(canonical_bytes(loaded.protocol)))
    identities["prompt_contract"] = (prompts.get("prompts", "none"), prompt_contract_sha256(loaded.manifest))
    identities["model_profile"] = (loaded.protocol.model.profile_sha256, digest(loaded.profile))
    return identities


def special_ids(loaded: LoadedProtocol, tokenizer: PromptTokenizer) -> tuple[str, str]:
    """The boundary tokens' registered IDs, and what the tokenizer gives for their texts."""
    registered = {boundary.name: (boundary.id,) for boundary in loaded.protocol.boundaries}
    found = {boundary.name: tokenizer.encode(boundary.token) for boundary in loaded.protocol.boundaries}
    return str(registered), str(found)
