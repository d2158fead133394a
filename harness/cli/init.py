"""`init DIR`: an author's own protocol from flags, or from questions where a flag wasn't given."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from harness.authoring.answers import (
    EMBEDDED,
    JUDGES,
    Answers,
    SamplingAnswer,
    SourceAnswer,
    answered,
    claim_of,
    edit_of,
    embedded_sources,
    require_shot,
    sampling_of,
    source_of,
)
from harness.authoring.make import Made, make_study
from harness.cli import show
from harness.cli.errors import errors_to_stderr
from harness.cli.options import Json
from harness.cli.working import working
from harness.errors import ProtocolError
from harness.places import places
from harness.records.verbs import WrittenStudy

Words = list[str] | None
Text = str | None
Number = int | None
Edit = Annotated[
    Words, typer.Option(metavar="NAME=TOKEN", help="Put this token for EOS at the history's end; repeatable.")
]
Source = Annotated[
    Words,
    typer.Option(
        metavar="NAME=FILE,...", help="id=, text=, judge=, gold=, function=, pattern= or content=; repeatable."
    ),
]
Claim = Annotated[
    Words,
    typer.Option(metavar="DOMAIN:CONDITION:N", help="Claim: N cells or more succeed; or COUNT:N. Repeatable."),
]
Tapes = Annotated[Number, typer.Option(metavar="N", help="Draw under N tapes, two or more; 0: greedy decoding.")]
Temperature = Annotated[float | None, typer.Option(metavar="X", help="Of the draws; none: the model's own.")]
TopP = Annotated[float | None, typer.Option(metavar="X", help="Nucleus of the draws; none: the model's own.")]
CLAIMED = "Claim of so many successes, DOMAIN:CONDITION:N, or COUNT:N"
SIZES = {"smoke": 1, "formal": 4, "smoke_tokens": 32, "tokens": 128}


def init(  # noqa: PLR0913, PLR0917 - one parameter an option
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="New folder; its name is the protocol's ID.")],
    title: Annotated[Text, typer.Option(metavar="TEXT", help="What the study asks, in a line.")] = None,
    model: Annotated[Text, typer.Option(metavar="NAME", help="nano, or a checkpoint folder.")] = None,
    source: Source = None,
    system: Annotated[Text, typer.Option(metavar="TEXT", help="System text of a second condition.")] = None,
    question: Annotated[Text, typer.Option(metavar="TEXT", help="One-shot question; empty: no history.")] = None,
    answer: Annotated[Text, typer.Option(metavar="TEXT", help="One-shot answer.")] = None,
    edit: Edit = None,
    smoke: Annotated[Number, typer.Option(metavar="N", help="Sources of each domain in smoke.")] = None,
    formal: Annotated[Number, typer.Option(metavar="N", help="Sources of each domain in formal.")] = None,
    smoke_tokens: Annotated[Number, typer.Option(metavar="N", help="New tokens at most in smoke.")] = None,
    tokens: Annotated[Number, typer.Option(metavar="N", help="New tokens at most in formal.")] = None,
    device: Annotated[str, typer.Option(metavar="KIND", help="cpu or cuda.")] = "cpu",
    dtype: Annotated[str, typer.Option(metavar="KIND", help="float32 or bfloat16.")] = "float32",
    tapes: Tapes = None,
    temperature: Temperature = None,
    top_p: TopP = None,
    claim: Claim = None,
    yes: Annotated[  # noqa: FBT002 - a flag
        bool, typer.Option("--yes", help="Ask nothing: what no flag gives is its default.")
    ] = False,
    json: Json = False,  # noqa: FBT002
) -> None:
    """Write a complete, commented protocol into DIR, after trying it on its sources, prompts and claims.

    Exit 0: written, and it loads; 1: refused, and nothing is written.
    """
    ask = _Asker(quiet=yes)
    with errors_to_stderr():
        named = ask.text(model, "Model: nano, or a checkpoint folder", EMBEDDED)
        title = ask.text(title, "What does the study ask?", f"A study of {folder.resolve().name}")
        sources = _sources(source, ask, embedded=named == EMBEDDED)
        system = ask.text(system, "System text of a second condition (empty: none)", "")
        shot = _shot(question, answer, edit, ask)
        edits = edit or (ask.words("Token in place of EOS at the history's end, NAME=TOKEN") if shot else [])
        answers = Answers(
            id=folder.resolve().name,
            title=title,
            checkpoint=None if named == EMBEDDED else Path(named),
            sources=sources,
            system=system,
            shot=shot,
            edits=dict(map(edit_of, edits)),
            smoke=ask.number(smoke, "Sources of each domain in smoke", SIZES["smoke"]),
            formal=ask.number(formal, "Sources of each domain in formal", SIZES["formal"]),
            smoke_tokens=ask.number(smoke_tokens, "New tokens at most in smoke", _fewer(tokens)),
            tokens=ask.number(tokens, "New tokens at most in formal", SIZES["tokens"]),
            device=device,
            dtype=dtype,
            sampling=_sampling(tapes, temperature, top_p, ask),
            claims=tuple(map(claim_of, claim or ask.words(CLAIMED))),
        )
        with working("init") as note:
            note("profile, sources and prompts")
            made = make_study(answers, folder, places())
    _say(made, answers, json=json)


def _fewer(tokens: int | None) -> int:
    """New tokens in smoke where nobody says: no more than in formal, whose cells it cuts early."""
    return min(SIZES["smoke_tokens"], SIZES["tokens"] if tokens is None else max(1, tokens))


class _Asker:
    """Asks for what no flag gave, unless it's told to be quiet: then it takes the default."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet

    def text(self, given: str | None, words: str, default: str) -> str:
        """One line."""
        if given is not None or self._quiet:
            return default if given is None else given
        return str(self._asked(words, default, str))

    @staticmethod
    def _asked(words: str, default: str | int, kind: type) -> Any:
        """The answer; ProtocolError where the input ends or is interrupted before it."""
        try:
            return typer.prompt(words, default=default, type=kind, show_default=default != "", err=True)
        except typer.Abort as error:
            typer.echo(err=True)
            todo = "Answer, give its flag, or take every default with --yes."
            found = "the end of the input, or an interrupt"
            raise ProtocolError(f"init: {words}", expected="an answer", found=found, todo=todo) from error

    def number(self, given: int | None, words: str, default: int, *, least: int = 1) -> int:
        """A whole number, `least` or more; ProtocolError for another."""
        value = given if given is not None else default
        if given is None and not self._quiet:
            value = int(self._asked(words, default, int))
        if value < least:
            todo = "Give another number."
            raise ProtocolError(f"init: {words}", expected=f"{least} or more", found=str(value), todo=todo)
        return value

    def words(self, words: str) -> list[str]:
        """Lines until an empty one; none where nothing is asked."""
        found: list[str] = []
        while not self._quiet and (line := self.text(None, f"{words} (empty: no more)", "")):
            found.append(line)
        return found


def _sampling(tapes: int | None, temperature: float | None, top_p: float | None, ask: _Asker) -> SamplingAnswer | None:
    count = ask.number(tapes, "Tapes to draw under, two or more (0: greedy decoding)", 0, least=0)
    return sampling_of(count, temperature, top_p)


def _shot(question: str | None, answer: str | None, edits: Words, ask: _Asker) -> tuple[str, str] | None:
    first = ask.text(question, "One-shot question (empty: no history)", "")
    second = ask.text(answer, "One-shot answer", "") if first else (answer or "")
    if bool(first) != bool(second):
        todo = "Give --question and --answer, or neither."
        raise ProtocolError("init: one-shot turn", expected="question and answer", found="one of them", todo=todo)
    require_shot(edits or (), first)
    return (first, second) if first else None


def _sources(given: Words, ask: _Asker, *, embedded: bool) -> tuple[SourceAnswer, ...]:
    if given:
        return tuple(source_of(words) for words in given)
    found: list[SourceAnswer] = []
    default = "the embedded pools" if embedded else "no more"
    while name := ask.text(None, f"Name of a domain (empty: {default if not found else 'no more'})", ""):
        found.append(_source(name, lambda words, default="": ask.text(None, words, default)))
    if not found and not embedded:
        todo = "Give --source NAME=FILE,id=FIELD,text=FIELD."
        raise ProtocolError("init: sources", expected="one or more", found="none", todo=todo)
    return tuple(found) or embedded_sources()


def _source(name: str, ask: Callable[..., str]) -> SourceAnswer:
    words = {"name": name, "file": ask("File (.jsonl, .csv, .parquet)")}
    words |= {"id": ask("Field with the ID", "id"), "text": ask("Field with the text", "text")}
    words |= {"content": ask("What a prompt says around {text}", "{text}")}
    words["judge"] = ask(f"Judge ({', '.join(JUDGES)})", "none")
    if words["judge"] in ("number", "exact", "regex", "function"):
        words["gold"] = ask("Field with the expected answer (empty: none)")
    if words["judge"] == "regex":
        words["pattern"] = ask("Pattern")
    if words["judge"] == "function":
        words["function"] = ask("Function, MODULE:NAME beside protocol.toml")
    return answered(words, name)


def _say(made: Made, answers: Answers, *, json: bool) -> None:
    if json:
        show.document(
            WrittenStudy(
                schema=1,
                protocol=answers.id,
                files=made.files,
                sources=made.sources,
                prompts=made.prompts,
                edited=made.edited,
                joined=made.joined,
            )
        )
        return
    show.line(f"{answers.id}: {made.sources} sources, {made.prompts} prompts, {made.edited} of them edited; it loads")
    for name in made.files:
        show.line(f"wrote {made.folder / name}")
    for condition in made.joined:
        show.line(f"{condition}: the tokenizer would join a put token with a neighbour: no text gives these IDs")
    show.line(f"Next: python -m harness freeze {made.folder}")
    show.line(f"Then: python -m pytest gates/ -m smoke --protocol {made.folder}")
