"""Every way in which a run isn't the published one or the registered one, item by item; nothing is summed up."""

from collections.abc import Iterator

from harness.claims.source import RUN
from harness.claims.view import RunView
from harness.journal.attempts import attempts_of
from harness.journal.folder import read_record
from harness.records.base import Frozen
from harness.records.claims import Difference
from harness.records.protocol import JudgedProtocol, StudyProtocol
from harness.records.sandbox import RecordedImage, SandboxFacts
from harness.snapshots.environments import environment_facts

NOT_PINNED = "recorded, not registered"


def differences(view: RunView) -> tuple[Difference, ...]:
    """All of them, in one order: the protocol's own first, then what was read back from the run."""
    parts = (_ours, _published, _software, _weights, _placement, _image, _environment, _sources, _port)
    return tuple(one for part in parts for one in part(view))


def _ours(view: RunView) -> Iterator[Difference]:
    study = isinstance(view.loaded.protocol, StudyProtocol)  # there is no document apart from it
    registered = "a choice of its author" if study else "silent or ambiguous in the document"
    for number, text in enumerate(view.loaded.protocol.ours, start=1):
        yield Difference(kind="ours", field=f"ours.{number}", registered=registered, found=text)


def _published(view: RunView) -> Iterator[Difference]:
    for one in view.loaded.protocol.published:
        found = "the file can't be had: a reference, never a pin"
        yield Difference(kind="published", field=one.name, registered=one.sha256, found=found)


def _software(view: RunView) -> Iterator[Difference]:
    software, here = view.loaded.protocol.software, view.environment.packages
    for name, version in software.packages.items():
        if here.get(name) != version:
            yield Difference(kind="software", field=name, registered=version, found=here.get(name, "not installed"))
    if software.policy == "recorded":
        for name, version in sorted(here.items()):
            yield Difference(kind="software", field=name, registered=NOT_PINNED, found=version)


def _weights(view: RunView) -> Iterator[Difference]:
    here = view.environment.checkpoint
    for file in view.loaded.profile.files:
        pin = file.digest.sha256 if isinstance(file.digest, Frozen) else f"unfrozen: {file.digest.reason}"
        if here.get(file.name) != pin:
            yield Difference(kind="weights", field=file.name, registered=pin, found=here.get(file.name, "no such file"))


def _placement(view: RunView) -> Iterator[Difference]:
    assembled = view.folder.file(RUN).exists()  # a run that ended before has what it asked for
    registered, found = view.loaded.protocol.placement, view.run.placement.id if assembled else view.spec.placement
    if registered != found:
        yield Difference(kind="placement", field="placement", registered=registered, found=found)
    for one in attempts_of(view.folder):
        text = f"attempt {one.number} ran out of memory under {one.placement}"
        yield Difference(kind="placement", field=f"attempt.{one.number}", registered="no failed attempt", found=text)


def _image(view: RunView) -> Iterator[Difference]:
    protocol, path = view.loaded.protocol, view.folder.file("sandbox.json")
    if not isinstance(protocol, JudgedProtocol) or not path.exists():
        return
    facts, image = read_record(path, SandboxFacts, what="sandbox facts"), protocol.sandbox.image
    if isinstance(image, RecordedImage):
        yield Difference(kind="image", field="sandbox.image", registered=NOT_PINNED, found=facts.image_id)
    elif not facts.registered:
        pin = image.digest.sha256 if isinstance(image.digest, Frozen) else f"unfrozen: {image.digest.reason}"
        registered = f"{image.reference}@{pin}"
        yield Difference(kind="image", field="sandbox.image", registered=registered, found=facts.image_id)


def _environment(view: RunView) -> Iterator[Difference]:
    asked, here = view.loaded.protocol.execution, environment_facts(view.environment)
    names = ("dtype", "attention", "experts", "threads", "deterministic_algorithms", "float32_matmul_precision")
    for name in names:
        registered, found = str(getattr(asked, name)), here[name]
        if registered not in (found, found.removeprefix("torch.")):
            yield Difference(kind="environment", field=name, registered=registered, found=found)
    for name in ("python", "machine", "cpu", "cpu_capability", "gpus", "cuda"):
        yield Difference(kind="environment", field=name, registered=NOT_PINNED, found=here[name])


def _sources(view: RunView) -> Iterator[Difference]:
    for domain in view.loaded.domains:
        if domain not in view.spec.domains:
            yield Difference(kind="sources", field=f"domains.{domain}", registered="runs", found="left out")
    for source in view.loaded.unfrozen:
        registered, found = "text and prompt hashes", f"unfrozen: {source.reason}"
        yield Difference(kind="sources", field=source.source_id, registered=registered, found=found)


def _port(view: RunView) -> Iterator[Difference]:
    for one in view.spec.deviations:
        yield Difference(kind="port", field=one.field, registered=one.registered, found=one.actual)
