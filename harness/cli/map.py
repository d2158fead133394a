"""`python -m harness --help`: the verbs as somebody meets them, before, in, after and apart from a run.

A verb that no stage names is listed last.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import typer
from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from harness.cli.show import is_terminal, rendered


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of the map: verbs in order, or commands that aren't verbs, each with its words."""

    title: str
    verbs: tuple[str, ...] = ()
    commands: tuple[tuple[str, str], ...] = ()


STAGES = (
    Stage(
        "Before a run",
        verbs=("init", "inputs", "prompts", "profile", "make-checkpoint", "freeze", "amend", "anchor"),
    ),
    Stage(
        "A run, made and judged by pytest",
        verbs=("run",),
        commands=(
            ("pytest gates/ -m smoke", "Generate the small grid and judge it."),
            ("pytest gates/ -m formal", "The whole protocol, after a passed smoke run."),
            ("pytest gates/ -m replay", "Generate a part again and compare it with the frozen results."),
        ),
    ),
    Stage("After a run", verbs=("claims", "verify", "compare", "explain", "attest", "report", "export", "snapshots")),
    Stage("Apart from a run", verbs=("judge",)),
)
REST = "More"
NO_VERB = 2
ORDER = tuple(verb for stage in STAGES for verb in stage.verbs)
HEAD = "Verification harness for preregistered LLM experiments."
TAIL = (
    "RUN is a folder reports/PROTOCOL/RUN-ID.\n"
    "Options and exit codes: python -m harness VERB --help; of a run: pytest --help.\n"
    "Documentation: docs/README.md; every verb with an example: docs/cli.md."
)

Lines = list[tuple[str, str]]


class Verbs(TyperGroup):
    """A group of verbs. Without a verb it shows its help, and the exit code is 2: a script that lost it isn't green."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The arguments that are left; ends where there are none."""
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help().rstrip("\n"), err=True)
            ctx.exit(NO_VERB)
        return super().parse_args(ctx, args)


class Map(Verbs):
    """The application's group: its verbs in the map's order, its help the map."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of the verbs, in the order of the stages."""
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Panels in a terminal, plain lines elsewhere; the same words."""
        usage, sections = self.get_usage(ctx), list(self._sections(ctx))
        formatter.write(_panels(usage, sections) if is_terminal(sys.stdout) else _plain(usage, sections))

    def _sections(self, ctx: Any) -> Iterator[tuple[str, Lines]]:
        """(title, [(verb, its first line)]) of each stage that has any."""
        words = {
            name: _first(command.help)
            for name in self.list_commands(ctx)
            if (command := self.get_command(ctx, name)) is not None and not command.hidden
        }
        for stage in STAGES:
            yield stage.title, [*((name, words.pop(name)) for name in stage.verbs if name in words), *stage.commands]
        if words:
            yield REST, list(words.items())


def _first(text: str | None) -> str:
    return " ".join((text or "").split("\n\n")[0].split())


def _plain(usage: str, sections: list[tuple[str, Lines]]) -> str:
    width = max(len(name) for _, lines in sections for name, _ in lines)
    parts = [f"{usage}\n\n{HEAD}\n"]
    for title, lines in sections:
        parts.append(f"\n{title}:\n" + "".join(f"  {name:<{width}}  {words}\n" for name, words in lines))
    return "".join([*parts, f"\n{TAIL}\n"])


def _panels(usage: str, sections: list[tuple[str, Lines]]) -> str:
    width = max(len(name) for _, lines in sections for name, _ in lines)
    panels = []
    for title, lines in sections:
        grid = Table.grid(padding=(0, 2))
        grid.add_column(width=width, no_wrap=True, style="bold cyan")
        grid.add_column(overflow="fold")
        for name, words in lines:
            grid.add_row(Text(name), Text(words))
        panels.append(Panel(grid, title=title, title_align="left", border_style="dim"))
    return rendered(Group(Text(f"{usage}\n\n{HEAD}\n"), *panels, Text(f"\n{TAIL}")))
