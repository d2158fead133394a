"""The prompt as text: the tokenizer's own chat template around system, one-shot and source (R04 2).

The template is run as its publisher's library runs it (sandboxed jinja2, trimmed blocks). Where the source stands in
the result is found by rendering the same prompt around a marker, so it needs no search through the text. This module
knows no token IDs.
"""

from dataclasses import dataclass
from functools import lru_cache

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from harness.errors import ModelError, PromptError
from harness.prompts.tokenizer import PromptTokenizer
from harness.records.protocol import BoundaryProtocol
from harness.records.sources import Domain

PLACE = "{text}"
# Two noncharacters: no template and no protocol text has a reason to hold them.
MARKER = "\ufdd0source\ufdd1"
MESSAGE_TODO = "Correct the protocol's texts before it is frozen."


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """A rendered prompt; the source text is text[target_start:target_end] (0-based characters)."""

    text: str
    target_start: int
    target_end: int


def render_messages(
    tokenizer: PromptTokenizer, messages: list[dict[str, str]], *, generation_prompt: bool = True
) -> str:
    """The chat template's text for messages ({"role", "content"}), with or without its generation prompt.

    Raises ModelError where the template doesn't render, or asks for what isn't registered (the date).
    """
    texts = tokenizer.special_texts
    try:
        return _compiled(tokenizer.chat_template).render(
            messages=messages,
            add_generation_prompt=generation_prompt,
            bos_token=texts.bos,
            eos_token=texts.eos,
            pad_token=texts.pad,
        )
    except jinja2.TemplateError as error:
        raise ModelError(
            "chat template",
            expected="a template that renders",
            found=str(error),
            todo="Use the official tokenizer_config.json.",
        ) from error


def messages_for(protocol: BoundaryProtocol, *, system: bool, content: str) -> list[dict[str, str]]:
    """The registered conversation: system text or none, the one-shot turn, and the user's content."""
    prompt = protocol.prompt
    head = [{"role": "system", "content": prompt.system_text}] if system else []
    return [
        *head,
        {"role": "user", "content": prompt.one_shot_question},
        {"role": "assistant", "content": prompt.one_shot_answer},
        {"role": "user", "content": content},
    ]


def render_prompt(
    tokenizer: PromptTokenizer, protocol: BoundaryProtocol, *, domain: Domain, text: str, system: bool
) -> RenderedPrompt:
    """The prompt of one source at one system level, with the whole source text in it, verbatim (R04 3).

    Raises PromptError where the source's place isn't single or the template alters what it is given.
    """
    lead, rest = _around_source(domain)
    shell = render_messages(tokenizer, messages_for(protocol, system=system, content=lead + MARKER + rest))
    before, marker, after = shell.partition(MARKER)
    if not marker or MARKER in after:
        raise PromptError(
            f"prompt of domain {domain.name}",
            expected="one place for the source",
            found="none or several",
            todo=MESSAGE_TODO,
        )
    content = domain.content.replace(PLACE, text)
    rendered = render_messages(tokenizer, messages_for(protocol, system=system, content=content))
    if rendered != before + text + after:
        raise PromptError(
            f"prompt of domain {domain.name}",
            expected="the source text verbatim",
            found="a text that the chat template altered",
            todo="Use a template that neither strips nor escapes its messages.",
        )
    return RenderedPrompt(rendered, len(before), len(before) + len(text))


def _around_source(domain: Domain) -> tuple[str, str]:
    parts = domain.content.split(PLACE)
    if len(parts) != 2:
        raise PromptError(
            f"domain {domain.name}: content",
            expected=f"{PLACE} once",
            found=f"{len(parts) - 1} times",
            todo=MESSAGE_TODO,
        )
    return parts[0], parts[1]


@lru_cache(maxsize=8)
def _compiled(template: str) -> jinja2.Template:
    # A prompt isn't HTML: escaping would change its tokens.
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, autoescape=False, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.globals |= {"raise_exception": _refuse, "strftime_now": _no_clock}
    return environment.from_string(template)


def _refuse(message: str) -> None:
    """What published templates call to refuse a conversation, for example one with a system message."""
    raise jinja2.TemplateError(message)


def _no_clock(_: str) -> str:
    raise jinja2.TemplateError("it asks for today's date, and a prompt must be the same tomorrow")
