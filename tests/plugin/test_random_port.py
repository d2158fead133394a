"""A smoke session on random weights of nano's shape: it passes as a port, and its records name the weights."""

import json

from pregate_support.mini import MINI, copy_tree, run_gates
from pregate_support.random_profiles import NANO_RANDOM, add_random

from harness.claims.view import judged_view
from harness.model.make import make_checkpoint
from harness.places import Places
from harness.report.make import page_of


def test_a_port_on_random_weights(mini_tree, tmp_path):
    """Every smoke row holds; spec.json, run.json and audit.json say which weights, and no name is without them."""
    tree = copy_tree(mini_tree, tmp_path / "tree")
    add_random(tree)
    make_checkpoint(NANO_RANDOM, tmp_path / "made", "cpu", Places(tree))
    named = ("--run", f"reports/{MINI}/smoke-random-port", "--checkpoint", str(tmp_path / "made"))
    result = run_gates(tree, "-m", "smoke", "--port", *named)
    assert result.code == 0, result.output
    assert result.run is not None
    records = [json.loads((result.run / f"{name}.json").read_bytes()) for name in ("spec", "run", "audit")]
    for record in records:
        first = record["deviations"][0]
        assert (first["field"], first["registered"]) == ("checkpoint", "nano")
        assert first["actual"].startswith(f"{NANO_RANDOM}, random weights (cpu, torch ")
    ending = f" (port) on {NANO_RANDOM}, random weights"
    assert all(record["result_name"].endswith(ending) for record in records[1:])
    assert page_of(judged_view(result.run, Places(tree)), Places(tree)).claims.result_name.endswith(ending)
