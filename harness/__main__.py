"""`python -m harness VERB`."""

import typer

from harness.cli import inputs
from harness.cli.claims import claims
from harness.cli.compare import compare
from harness.cli.freeze import freeze
from harness.cli.generate import generate
from harness.cli.judge import app as judge_app
from harness.cli.profile import app as profile_app
from harness.cli.prompts import prompts
from harness.cli.report import export, report
from harness.cli.snapshots import app as snapshots_app
from harness.cli.verify import verify

app = typer.Typer(
    help="Verification harness for preregistered LLM experiments.", no_args_is_help=True, pretty_exceptions_enable=False
)
app.add_typer(inputs.app, name="inputs")
app.add_typer(judge_app, name="judge")
app.add_typer(profile_app, name="profile")
app.add_typer(snapshots_app, name="snapshots")
app.command()(prompts)
app.command()(freeze)
app.command()(report)
app.command()(export)
app.command()(verify)
app.command()(claims)
app.command()(compare)
app.command(hidden=True)(generate)


if __name__ == "__main__":
    app(prog_name="python -m harness")
