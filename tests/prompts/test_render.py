from collections.abc import Callable

import msgspec
import pytest

from harness.errors import ModelError, PromptError
from harness.inputs.sources import SourceText
from harness.prompts.build import render_source
from harness.prompts.render import render_prompt
from harness.prompts.tokenizer import PromptTokenizer, make_tokenizer
from harness.records.profile import Profile
from harness.records.protocol import Protocol
from harness.records.sources import Domain

Files = tuple[bytes, bytes]


def math(protocol: Protocol) -> Domain:
    """The mathematics domain."""
    return protocol.domains[3]


def with_template(
    template: str, make_files: Callable[..., Files], profile_for: Callable[[Files], Profile]
) -> PromptTokenizer:
    """The tiny tokenizer with another chat template."""
    files = make_files(chat_template=template)
    return make_tokenizer(*files, profile=profile_for(files), where="a test")


@pytest.mark.parametrize("system", [False, True])
def test_the_prompt_is_the_templates_conversation(system: bool, protocol: Protocol, tokenizer: PromptTokenizer):
    """BOS, optional system text, one-shot turn ended by EOS, the content, the generation prompt."""
    prompt = protocol.prompt
    rendered = render_prompt(tokenizer, protocol, domain=math(protocol), text="1+1?", system=system)
    head = f"{prompt.system_text}\n\n" if system else ""
    asked = f"User: {prompt.one_shot_question}\n\nAssistant: {prompt.one_shot_answer}<|eos|>"
    content = math(protocol).content.replace("{text}", "1+1?")
    assert rendered.text == f"<|bos|>{head}{asked}User: {content}\n\nAssistant:"


@pytest.mark.parametrize("system", [False, True])
def test_the_span_is_the_source_text(system: bool, protocol: Protocol, tokenizer: PromptTokenizer, source: SourceText):
    """The span gives the text verbatim, its braces, spaces and newline included."""
    rendered = render_source(protocol, tokenizer, source, system=system)
    assert rendered.text[rendered.target_start : rendered.target_end] == source.text


def test_the_span_is_found_where_the_text_occurs_twice(protocol: Protocol, tokenizer: PromptTokenizer):
    """A source that equals the one-shot question is still found at its own place."""
    text = protocol.prompt.one_shot_question
    rendered = render_prompt(tokenizer, protocol, domain=math(protocol), text=text, system=False)
    assert rendered.target_start > rendered.text.index("<|eos|>")
    assert rendered.text[rendered.target_start : rendered.target_end] == text


@pytest.mark.parametrize("content", ["no place", "{text} and {text}"])
def test_a_content_without_one_place_is_refused(content: str, protocol: Protocol, tokenizer: PromptTokenizer):
    """The source stands in its prompt once."""
    domain = msgspec.structs.replace(math(protocol), content=content)
    with pytest.raises(PromptError, match="once"):
        render_prompt(tokenizer, protocol, domain=domain, text="a", system=False)


TEMPLATES = {
    "strips": ("{{ bos_token }}{% for m in messages %}{{ m['content'].strip() }}{% endfor %}", "altered"),
    "repeats": ("{% for m in messages %}{{ m['content'] + m['content'] }}{% endfor %}", "none or several"),
    "drops": ("{{ bos_token }}Assistant:", "none or several"),
}


@pytest.mark.parametrize("fault", TEMPLATES)
def test_a_template_that_alters_the_source_is_refused(fault, protocol, make_files, profile_for):
    """The whole source text enters the prompt, once and verbatim (R04 3)."""
    template, message = TEMPLATES[fault]
    domain = msgspec.structs.replace(math(protocol), content="{text}")
    with pytest.raises(PromptError, match=message):
        render_prompt(
            with_template(template, make_files, profile_for), protocol, domain=domain, text=" a ", system=False
        )


@pytest.mark.parametrize("template", ["{% for %}", "{{ messages.append(1) }}", "{{ missing.field }}"])
def test_a_template_that_does_not_render_is_a_model_error(template, protocol, make_files, profile_for):
    """A broken template, and one that the sandbox stops, are the checkpoint's fault and say so."""
    with pytest.raises(ModelError, match="chat template: expected a template that renders"):
        render_prompt(
            with_template(template, make_files, profile_for), protocol, domain=math(protocol), text="a", system=False
        )
