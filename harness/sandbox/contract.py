"""The contract as settings of a container, and what the engine says of a container as limits in force.

Pure: it maps records to the engine's own words and back. A flag that isn't in force is an error by name (R05 6).
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from harness.errors import SandboxError
from harness.records.sandbox import LimitsInForce, SandboxContract

LABEL = "pregate.sandbox"
HOSTNAME = "sandbox"
TMP = "/tmp"  # noqa: S108 - a path inside the container
ENVIRONMENT = {"PYTHONHASHSEED": "0"}
IPC = "none"  # no /dev/shm, which would be a second place to write; ours, the contract is silent


def host_settings(contract: SandboxContract) -> dict[str, Any]:
    """Arguments of the SDK's host configuration."""
    return {
        "network_mode": contract.network,
        "read_only": contract.read_only,
        "cap_drop": list(contract.cap_drop),
        "security_opt": ["no-new-privileges"] if contract.no_new_privileges else [],
        "privileged": False,
        "mem_limit": contract.memory_bytes,
        "memswap_limit": contract.memory_swap_bytes,
        "pids_limit": contract.pids,
        "nano_cpus": contract.nano_cpus,
        "tmpfs": {TMP: tmpfs_options(contract)},
        "ipc_mode": IPC,
        "init": False,
        "log_config": {"Type": "none"},
    }


def container_settings(contract: SandboxContract, command: list[str], owner: str) -> dict[str, Any]:
    """Arguments of the SDK's container creation, but for image and host configuration.

    `network_disabled` beside network none: the container's own network namespace holds the loopback device alone
    either way; the engine then has no network of its own to set up for it, a third of the time of a start.
    """
    return {
        "command": command,
        "entrypoint": [],
        "user": contract.user,
        "hostname": HOSTNAME,
        "working_dir": "/",
        "environment": ENVIRONMENT,
        "labels": {LABEL: owner},
        "stdin_open": True,
        "network_disabled": contract.network == "none",
        "healthcheck": {"Test": ["NONE"]},
        "use_config_proxy": False,  # a proxy's address may hold a password
    }


def tmpfs_options(contract: SandboxContract) -> str:
    """Size and options of /tmp in the engine's notation."""
    return ",".join((f"size={contract.tmpfs_bytes}", *contract.tmpfs_options))


def limits_in_force(inspected: dict[str, Any]) -> LimitsInForce:
    """What the engine's description of a container says, in the record's words."""
    host, config = inspected["HostConfig"], inspected["Config"]
    return LimitsInForce(
        network=host["NetworkMode"],
        read_only=host["ReadonlyRootfs"],
        user=config["User"],
        cap_drop=tuple(host["CapDrop"] or ()),
        cap_add=tuple(host["CapAdd"] or ()),
        security_options=tuple(host["SecurityOpt"] or ()),
        privileged=host["Privileged"],
        memory_bytes=host["Memory"],
        memory_swap_bytes=host["MemorySwap"],
        pids=host["PidsLimit"] or 0,
        nano_cpus=host["NanoCpus"],
        tmpfs=dict(host.get("Tmpfs") or {}),
        mounts=tuple(sorted(_mounts(inspected))),
        ipc=host["IpcMode"],
    )


def wanted(contract: SandboxContract) -> LimitsInForce:
    """The limits that the contract asks for."""
    return LimitsInForce(
        network=contract.network,
        read_only=contract.read_only,
        user=contract.user,
        cap_drop=contract.cap_drop,
        cap_add=(),
        security_options=("no-new-privileges",) if contract.no_new_privileges else (),
        privileged=False,
        memory_bytes=contract.memory_bytes,
        memory_swap_bytes=contract.memory_swap_bytes,
        pids=contract.pids,
        nano_cpus=contract.nano_cpus,
        tmpfs={TMP: tmpfs_options(contract)},
        mounts=(),
        ipc=IPC,
    )


def require_in_force(contract: SandboxContract, found: LimitsInForce) -> None:
    """A SandboxError that names the first flag of the contract that isn't in force."""
    expected = wanted(contract)
    for name in LimitsInForce.__struct_fields__:
        one, other = getattr(expected, name), getattr(found, name)
        if one != other:
            raise SandboxError(
                f"container flag {name}",
                expected=msgspec.json.encode(one).decode(),
                found=msgspec.json.encode(other).decode(),
                todo="Nothing was executed: use an engine that puts the whole contract in force.",
            )


def _mounts(inspected: dict[str, Any]) -> Iterator[str]:
    """Host paths and volumes; the engine's own files for the name service have no entry here."""
    for one in inspected["Mounts"]:
        yield f"{one.get('Source') or one.get('Name', '')}:{one['Destination']}"
    yield from inspected["HostConfig"]["Binds"] or ()
    yield from (f"device {one['PathOnHost']}" for one in inspected["HostConfig"].get("Devices") or ())
