"""Options, and what a tier refuses. A formal or replay session is run whole or not at all."""

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
        help="protocol to run (repeatable; default: the nano protocols)",
    )
    group.addoption("--checkpoint", metavar="DIR", help="checkpoint folder of the protocol's model profile")
    group.addoption(
        "--inputs",
        action="append",
        default=[],
        metavar="DIR",
        help="folder with registered inputs, found by digest under any name (default: HARNESS_INPUTS)",
    )
    group.addoption("--gpu-memory", metavar="SIZE", help="GPU budget, e.g. 29GiB: a registered placement, else a port")
    group.addoption("--cpu-memory", metavar="SIZE", help="CPU budget, e.g. 80GiB: a registered placement, else a port")
    group.addoption(
        "--port",
        action="store_true",
        help="run the protocol's shape under other software, weights, placement or fewer domains, and say so",
    )
    group.addoption("--run", metavar="DIR", help="judge, or where the protocol allows it resume, this run folder")


def selected_tier(config: pytest.Config) -> Tier | None:
    """The tier that `-m` names, exactly; None where it names none."""
    expression = config.option.markexpr.strip()
    return cast("Tier", expression) if expression in TIERS else None


def covers_gates(config: pytest.Config, gates: Path) -> bool:
    """Whether the session's arguments lie in the gates folder."""
    paths = [Path(config.invocation_params.dir, argument.split("::")[0]).resolve() for argument in config.args]
    return any(path == gates.resolve() or gates.resolve() in path.parents for path in paths)


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
    if config.option.run and len(config.option.protocol) > 1:
        raise pytest.UsageError("--run names one run folder: expected one --protocol, found several.")
    if tier in WHOLE_TIERS:
        narrowed = _narrowing(config, gates)
        if narrowed:
            raise pytest.UsageError(
                f"a {tier} session judges the whole protocol: expected none of its items left out or altered, found "
                f"{', '.join(narrowed)}. Run `pytest gates/ -m {tier}` as it stands."
            )


def _narrowing(config: pytest.Config, gates: Path) -> list[str]:
    option = config.option
    flags = {
        "-k": "keyword",
        "--lf": "lf",
        "--ff": "failedfirst",
        "--nf": "newfirst",
        "--deselect": "deselect",
        "--ignore": "ignore",
        "--ignore-glob": "ignore_glob",
        "--sw": "stepwise",
        "-x/--maxfail": "maxfail",
        "--snapshot-update": "update_snapshots",
        "--setup-only": "setuponly",
        "--setup-plan": "setupplan",
        "--runxfail": "runxfail",
        "--collect-only": "collectonly",
        "--pyargs": "pyargs",
    }
    found = [flag for flag, name in flags.items() if getattr(option, name, None)]
    if option.collectonly:
        found.remove("--collect-only")
    whole = {str(gates.resolve()), str(gates.resolve().parent)}
    partial = [
        one for one in config.args if "::" in one or str(Path(config.invocation_params.dir, one).resolve()) not in whole
    ]
    return found + [f"the argument {one}" for one in partial]
