"""Options, and what a tier refuses. A formal or replay session is run whole or not at all."""

import os
import sys
from pathlib import Path
from typing import cast

import pytest

from harness.records.protocol import Tier

TIERS: tuple[Tier, ...] = ("smoke", "formal", "replay")
WHOLE_TIERS: tuple[Tier, ...] = ("formal", "replay")


def add(parser: pytest.Parser) -> None:
    """--protocol and its companions."""
    group = parser.getgroup("pregate", "preregistered protocols")
    group.addoption(
        "--protocol",
        action="append",
        default=[],
        metavar="ID",
        help="protocol to run, by its ID or an author's own folder (repeatable; default: the nano protocols)",
    )
    group.addoption("--checkpoint", metavar="DIR", help="checkpoint folder of the protocol's model profile")
    group.addoption(
        "--inputs",
        action="append",
        default=[],
        metavar="DIR",
        help="folder with registered inputs, found by digest under any name (default: HARNESS_INPUTS)",
    )
    group.addoption(
        "--gpu-memory",
        metavar="SIZE",
        help="GPU budget, e.g. 29GiB: a registered placement, else a port; 20GiB,20GiB splits a port over two GPUs",
    )
    group.addoption("--cpu-memory", metavar="SIZE", help="CPU budget, e.g. 80GiB: a registered placement, else a port")
    group.addoption(
        "--gpus",
        metavar="GPUS",
        help="one GPU for each process, e.g. 0,1 with -n 2: a worker sees its own and no other",
    )
    group.addoption(
        "--port",
        action="store_true",
        help="run the protocol's shape under other software, weights, placement or fewer domains, and say so",
    )
    group.addoption(
        "--baseline",
        metavar="RUN",
        help="a port's own baseline: run folder of a passed formal port",
    )
    group.addoption(
        "--sandbox-image",
        metavar="IMAGE",
        help="image that executes programs, by name or ID (default: HARNESS_SANDBOX_IMAGE, else the registered one)",
    )
    group.addoption("--run", metavar="DIR", help="judge, or where the protocol allows it resume, this run folder")


def selected_tier(config: pytest.Config) -> Tier | None:
    """The tier that `-m` names, exactly; None where it names none."""
    expression = config.option.markexpr.strip()
    return cast("Tier", expression) if expression in TIERS else None


def sandbox_image(named: str | None) -> str | None:
    """--sandbox-image, or HARNESS_SANDBOX_IMAGE."""
    return named or os.environ.get("HARNESS_SANDBOX_IMAGE") or None


def input_folders(named: list[str]) -> tuple[Path, ...]:
    """--inputs, or HARNESS_INPUTS."""
    chosen = named or [one for one in os.environ.get("HARNESS_INPUTS", "").split(os.pathsep) if one]
    return tuple(Path(one) for one in chosen)


def covers_gates(config: pytest.Config, gates: Path) -> bool:
    """Whether the session's arguments reach into the gates folder."""
    gates = gates.resolve()
    paths = _argument_paths(config)
    if any(path == gates or gates in path.parents for path in paths):
        return True
    looks_only = config.option.collectonly and not config.option.markexpr
    return not looks_only and any(path in gates.parents for path in paths)


def refuse(config: pytest.Config, gates: Path) -> None:
    """UsageError for a session over gates that isn't one whole tier (smoke may be narrowed)."""
    tier = selected_tier(config)
    if config.option.collectonly and not config.option.markexpr:
        return
    if tier is None:
        mentioned = [name for name in TIERS if name in config.option.markexpr]
        raise pytest.UsageError(
            f"gates run one tier at a time: expected -m smoke, formal or replay, found -m {config.option.markexpr!r}"
            + (f". A compound -m would judge part of {mentioned[0]}." if mentioned else ".")
        )
    if not config.pluginmanager.hasplugin("junitxml"):
        raise pytest.UsageError(
            "a gate session leaves a JUnit file: expected pytest's junitxml plugin, found it disabled."
        )
    if sys.flags.optimize or config.option.assertmode != "rewrite":
        raise pytest.UsageError(
            "gates assert: expected an interpreter that keeps assertions and pytest's rewriting of them, found "
            f"optimisation level {sys.flags.optimize} and --assert={config.option.assertmode}."
        )
    found = _mixing(config, gates) + _given(config, SHOWING) + _given(config, UPDATING)
    if tier in WHOLE_TIERS:
        found += _narrowing(config, gates)
    if found:
        raise pytest.UsageError(
            f"a {tier} session judges gates as they stand: expected nothing left out, added or altered, found "
            f"{', '.join(found)}. Run `pytest gates/ -m {tier}` as it stands."
        )


NARROWING = {
    "-k": "keyword",
    "--lf": "lf",
    "--ff": "failedfirst",
    "--nf": "newfirst",
    "--deselect": "deselect",
    "--ignore": "ignore",
    "--ignore-glob": "ignore_glob",
    "--sw": "stepwise",
    "--sw-skip": "stepwise_skip",
    "--sw-reset": "stepwise_reset",
    "-x/--maxfail": "maxfail",
    "--setup-only": "setuponly",
    "--setup-plan": "setupplan",
    "--runxfail": "runxfail",
    "--pyargs": "pyargs",
}
# They exit 0 and run nothing.
SHOWING = {
    "--fixtures": "showfixtures",
    "--fixtures-per-test": "show_fixtures_per_test",
    "--markers": "markers",
    "--cache-show": "cacheshow",
}
UPDATING = {"--snapshot-update": "update_snapshots", "--snapshot-update-new-only": "update_new_snapshots_only"}


def _narrowing(config: pytest.Config, gates: Path) -> list[str]:
    partial = [
        one
        for one, path in zip(config.args, _argument_paths(config), strict=True)
        if "::" in one or gates.resolve() in path.parents
    ]
    return _given(config, NARROWING) + [f"the argument {one}" for one in partial]


def _mixing(config: pytest.Config, gates: Path) -> list[str]:
    gates = gates.resolve()
    paths = zip(config.args, _argument_paths(config), strict=True)
    return [f"the argument {one}" for one, path in paths if path != gates and gates not in path.parents]


def _given(config: pytest.Config, flags: dict[str, str]) -> list[str]:
    return [flag for flag, name in flags.items() if getattr(config.option, name, None)]


def _argument_paths(config: pytest.Config) -> list[Path]:
    return [Path(config.invocation_params.dir, argument.split("::")[0]).resolve() for argument in config.args]
