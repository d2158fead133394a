"""A registered placement whose budgets give another map: refused, and under a port listed and held to what it lists."""

from types import SimpleNamespace

import msgspec
import pytest

from harness.checks.whole import _listed_map
from harness.protocols.load import load_protocol
from harness.protocols.maps import map_difference
from harness.records.run import Deviation, PlacementFacts
from harness.run.engine import _other_map

PROTOCOL = load_protocol("deepseek-behavior").protocol
GPU28 = next(one for one in PROTOCOL.placements if one.id == "gpu28")
REGISTERED = dict.fromkeys(GPU28.resident, "cuda:0") | dict.fromkeys(GPU28.offloaded, "cpu")
NEWER = REGISTERED | {"model.rotary_emb": "cpu"}


def facts(device_map):
    """Placement facts with this map."""
    away = tuple(name for name, device in device_map.items() if device == "cpu")
    return PlacementFacts(
        id="gpu28", dispatched=True, device_map=device_map, parameter_bytes={}, offloaded=away, offloaded_moe_layers=()
    )


def of_a_port(device_map):
    """What an engine under `--port` lists."""
    loaded, request = SimpleNamespace(protocol=PROTOCOL), SimpleNamespace(placement=GPU28)
    return _other_map(loaded, request, facts(device_map))


def test_the_registered_map_is_no_deviation():
    """Nothing is said where nothing differs."""
    assert map_difference(GPU28, REGISTERED) is None
    assert of_a_port(REGISTERED) == ()


def test_a_module_that_the_registered_class_has_not():
    """Listed with both maps whole."""
    (deviation,) = of_a_port(NEWER)
    assert deviation.field == "placement.gpu28"
    assert "model.rotary_emb" not in deviation.registered
    assert "'model.rotary_emb'" in deviation.actual


def test_a_ports_own_placement_has_no_map_to_meet():
    """Only a registered placement does."""
    own = msgspec.structs.replace(GPU28, id="port")
    request = SimpleNamespace(placement=own)
    assert _other_map(SimpleNamespace(protocol=PROTOCOL), request, facts(NEWER)) == ()


@pytest.mark.parametrize(
    ("port", "listed", "found", "allowed"),
    [
        (True, NEWER, NEWER, True),
        (False, NEWER, NEWER, False),
        (True, REGISTERED, NEWER, False),
        (True, NEWER, NEWER | {"model.layers.3": "cpu"}, False),
    ],
)
def test_a_listed_map_is_the_one_that_was_read_back(port, listed, found, allowed):
    """Not another one, and not without --port."""
    spec = SimpleNamespace(
        port=port, deviations=(Deviation(field="software.torch", registered="1", actual="2"), *of_a_port(listed))
    )
    assert _listed_map(spec, facts(found), GPU28) is allowed
