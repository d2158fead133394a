"""Before anything is executed: the image that was asked for, and a probe that proves it under the whole contract.

Nothing is ever pulled. The probe is a container like every other; the checker in it describes itself and ends.
"""

import re
from dataclasses import dataclass
from typing import Any, NoReturn

from docker.errors import APIError

from harness.errors import SandboxError
from harness.records.base import Frozen
from harness.records.sandbox import LimitsInForce, RecordedImage, RegisteredImage, SandboxContract
from harness.sandbox.bundle import harness_sha256, program
from harness.sandbox.client import Client, LostError, engine_answers, first_line
from harness.sandbox.container import Container, Order, remove

PROBE_S = 60.0
HEARD = re.compile(r"fit (?P<python>\S+ \S+)\n(?P<program>(?:[0-9a-f]{2})+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A proved image: what an engine object is made of. `program`: the checker as the image's Python compiled it."""

    image_id: str
    registered: bool
    python: str
    limits: LimitsInForce
    harness_sha256: str
    program: bytes


def find_image(client: Client, contract: SandboxContract, image: str | None) -> tuple[str, bool]:
    """ID of the image, and whether the contract registers it (under a RecordedImage: any)."""
    policy = contract.image
    name = image if image is not None else _registered_name(policy)
    try:
        with engine_answers():
            found: dict[str, Any] = client.api.inspect_image(name)  # type: ignore[no-untyped-call]
    except (LostError, APIError) as error:
        raise _no_image(name, error) from error
    return found["Id"], isinstance(policy, RecordedImage) or _is_registered(policy, found["RepoDigests"] or [])


def probe(client: Client, contract: SandboxContract, image: tuple[str, bool]) -> Opened:
    """Run the checker's modules in a container under the contract: they say which Python runs and compiles them."""
    image_id, registered = image
    order = Order(image_id=image_id, contract=contract, owner="probe")
    said, limits = _say(client, order)
    found = HEARD.fullmatch(said)
    if found is None:
        _unfit(image_id, (said.splitlines() or ["a container that said nothing"])[0][:200])
    return Opened(
        image_id=image_id,
        registered=registered,
        python=found["python"],
        limits=limits,
        harness_sha256=harness_sha256(),
        program=bytes.fromhex(found["program"]),
    )


def lost_error(client: Client, image_id: str) -> SandboxError | None:
    """The error for all that follows, where the engine or its image is gone."""
    try:
        with engine_answers():
            client.api.inspect_image(image_id)  # type: ignore[no-untyped-call]
    except (LostError, APIError) as error:
        return SandboxError(
            f"container engine, image {image_id}",
            expected="the engine that the run began with",
            found=first_line(error.__cause__ or error),
            todo="What was finished stays valid. Start the engine again and run what is missing.",
        )
    return None


def _say(client: Client, order: Order) -> tuple[str, LimitsInForce]:
    container: Container | None = None
    try:
        container = Container.create(client, order)
        container.start(program("describe"))
        said = container.converse(b"", PROBE_S).said
    except (LostError, APIError) as error:
        _unfit(order.image_id, first_line(error.__cause__ or error))
    finally:
        if container is not None:
            container.hang_up()
            gone = remove(client, container.id)
    if not gone:
        raise SandboxError(
            f"probe container {container.id[:12]}",
            expected="removed",
            found="an engine that doesn't end it",
            todo="Remove it by hand: docker rm --force.",
        )
    return said.decode("ascii", "backslashreplace").strip(), container.limits


def _registered_name(policy: RegisteredImage | RecordedImage) -> str:
    if isinstance(policy, RecordedImage):
        raise SandboxError(
            "sandbox image",
            expected="an image's name or ID",
            found="none, and the protocol registers none",
            todo="Name one with --sandbox-image or HARNESS_SANDBOX_IMAGE.",
        )
    if not isinstance(policy.digest, Frozen):
        raise SandboxError(
            f"sandbox image {policy.reference}",
            expected="a registered digest",
            found=f"none yet: {policy.digest.reason}",
            todo="Register the digest, or name another image as a port.",
        )
    return f"{_repository(policy.reference)}@sha256:{policy.digest.sha256}"


def _repository(reference: str) -> str:
    head, _, last = reference.rpartition("/")
    return f"{head}/{last.split(':')[0]}" if head else last.split(":")[0]


def _is_registered(policy: RegisteredImage, digests: list[str]) -> bool:
    return isinstance(policy.digest, Frozen) and any(one.endswith(f"@sha256:{policy.digest.sha256}") for one in digests)


def _no_image(name: str, error: Exception) -> SandboxError:
    return SandboxError(
        f"sandbox image {name}",
        expected="an image that the engine has",
        found=first_line(error.__cause__ or error),
        todo="Build or load it and name it with --sandbox-image or HARNESS_SANDBOX_IMAGE; nothing is ever pulled.",
    )


def _unfit(image_id: str, found: str) -> NoReturn:
    raise SandboxError(
        f"sandbox image {image_id}",
        expected="a python3 (3.8 or newer, with ctypes) that runs under the contract",
        found=found,
        todo="Use an image with a whole python3.",
    )
