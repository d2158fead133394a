"""The contract against what an engine says of a container."""

import msgspec
import pytest

from harness.errors import SandboxError
from harness.records.sandbox import LimitsInForce
from harness.sandbox.contract import container_settings, host_settings, limits_in_force, require_in_force, wanted

OTHER = {
    "network": "bridge",
    "read_only": False,
    "user": "",
    "cap_drop": (),
    "cap_add": ("SYS_PTRACE",),
    "security_options": ("seccomp=unconfined",),
    "privileged": True,
    "memory_bytes": 0,
    "memory_swap_bytes": -1,
    "pids": 0,
    "nano_cpus": 0,
    "tmpfs": {"/tmp": "size=16777216"},
    "mounts": ("/:/host",),
    "ipc": "private",
}


def described(limits):
    """An engine's description of a container with these limits."""
    return {
        "HostConfig": {
            "NetworkMode": limits.network,
            "ReadonlyRootfs": limits.read_only,
            "CapDrop": list(limits.cap_drop) or None,
            "CapAdd": list(limits.cap_add) or None,
            "SecurityOpt": list(limits.security_options) or None,
            "Privileged": limits.privileged,
            "Memory": limits.memory_bytes,
            "MemorySwap": limits.memory_swap_bytes,
            "PidsLimit": limits.pids or None,
            "NanoCpus": limits.nano_cpus,
            "Tmpfs": limits.tmpfs,
            "IpcMode": limits.ipc,
            "Binds": list(limits.mounts) or None,
        },
        "Config": {"User": limits.user},
        "Mounts": [],
    }


def test_the_limits_are_read_back(contract):
    """What the engine says becomes the record, whatever was asked for."""
    assert limits_in_force(described(wanted(contract))) == wanted(contract)


@pytest.mark.parametrize("flag", LimitsInForce.__struct_fields__)
def test_a_flag_that_is_not_in_force_is_named(contract, flag):
    """Every field of the record, changed alone."""
    found = limits_in_force(described(msgspec.structs.replace(wanted(contract), **{flag: OTHER[flag]})))
    with pytest.raises(SandboxError, match=rf"^container flag {flag}: .*Nothing was executed"):
        require_in_force(contract, found)


@pytest.mark.parametrize(
    "extra",
    [
        pytest.param({"Mounts": [{"Type": "bind", "Source": "/etc", "Destination": "/x"}]}, id="bind"),
        pytest.param({"Mounts": [{"Type": "volume", "Name": "v", "Destination": "/x"}]}, id="volume of the image"),
    ],
)
def test_a_mount_is_seen(contract, extra):
    """Host paths and volumes, also those that the image brings."""
    with pytest.raises(SandboxError, match="container flag mounts"):
        require_in_force(contract, limits_in_force(described(wanted(contract)) | extra))


def test_the_whole_contract_is_asked_for(contract):
    """Clause 6 in the SDK's words."""
    host, own = host_settings(contract), container_settings(contract, ["x"], "me")
    assert (host["network_mode"], host["read_only"], own["user"]) == ("none", True, "65534:65534")
    assert (host["cap_drop"], host["security_opt"]) == (["ALL"], ["no-new-privileges"])
    assert (host["mem_limit"], host["memswap_limit"]) == (256 << 20, 256 << 20)
    assert (host["pids_limit"], host["nano_cpus"]) == (64, 500_000_000)
    assert host["tmpfs"] == {"/tmp": "size=16777216,noexec,nosuid,nodev"}
    assert own["environment"] == {"PYTHONHASHSEED": "0"}
    assert own["use_config_proxy"] is False
