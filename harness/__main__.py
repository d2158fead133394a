"""`python -m harness VERB`. Which verb stands where in the help is `harness.cli.map`'s."""

import sys
from typing import Any

import typer

from harness.cli import inputs
from harness.cli.amend import amend
from harness.cli.anchor import anchor
from harness.cli.attest import attest
from harness.cli.claims import claims
from harness.cli.compare import compare
from harness.cli.explain import explain
from harness.cli.freeze import freeze
from harness.cli.generate import generate
from harness.cli.init import init
from harness.cli.judge import app as judge_app
from harness.cli.make_checkpoint import make_checkpoint
from harness.cli.map import HEAD, Map
from harness.cli.profile import app as profile_app
from harness.cli.prompts import prompts
from harness.cli.report import export, report
from harness.cli.run import run
from harness.cli.show import is_terminal
from harness.cli.snapshots import app as snapshots_app
from harness.cli.trial import trial
from harness.cli.verify import verify

# No completion is offered: a shell completes a program's name, and this one has none of its own.
app = typer.Typer(cls=Map, help=HEAD, add_completion=False, pretty_exceptions_enable=False)
app.add_typer(inputs.app, name="inputs")
app.add_typer(judge_app, name="judge")
app.add_typer(profile_app, name="profile")
app.add_typer(snapshots_app, name="snapshots")
app.command()(init)
app.command()(prompts)
app.command()(make_checkpoint)
app.command()(freeze)
app.command()(amend)
app.command()(anchor)
app.command()(run)
app.command()(report)
app.command()(export)
app.command()(verify)
app.command()(attest)
app.command()(claims)
app.command()(compare)
app.command()(explain)
app.command(hidden=True)(generate)
app.command(hidden=True)(trial)


def main() -> None:
    """Run the verb that the arguments name; without a terminal help and usage errors are plain lines too."""
    command = typer.main.get_command(app)
    if not is_terminal(sys.stdout):
        _plain(command)
    command(prog_name="python -m harness")


def _plain(command: Any) -> None:
    command.rich_markup_mode = None
    for one in getattr(command, "commands", {}).values():
        _plain(one)


if __name__ == "__main__":
    main()
