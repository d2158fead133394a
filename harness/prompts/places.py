"""Where a place of a conversation stands in its prompt, in characters and then in tokens: proven, never guessed.

In characters, the same conversation is rendered with and without what marks the place (a marker at a message's end; the
generation prompt), and the two must differ by that alone. In tokens, the text before the place must be the text of the
prompt's first IDs, tokenised alone and within the prompt alike, with no other number of IDs that would do.
"""

from harness.errors import PromptError
from harness.prompts.render import MARKER, render_messages
from harness.prompts.tokenizer import PromptTokenizer
from harness.records.study import BeforeGeneration, HistoryEnd, MessageEnd, Place, PromptStart

Messages = list[dict[str, str]]
TODO = "Name a place that the template keeps apart, or change the messages, before the protocol is frozen."


def character_of(tokenizer: PromptTokenizer, messages: Messages, text: str, *, place: Place, where: str) -> int:
    """The character of `text`, the rendered prompt, at which a place stands.

    Raises PromptError where there is none, or where the template writes the message elsewhere or otherwise.
    """
    match place:
        case PromptStart():
            return 0
        case BeforeGeneration():
            return _before_generation(tokenizer, messages, text, where)
        case MessageEnd():
            return _message_end(tokenizer, messages, text, place.message, where)
        case HistoryEnd():
            return _message_end(tokenizer, messages, text, _last_assistant(messages, where), where)


def token_of(tokenizer: PromptTokenizer, text: str, ids: tuple[int, ...], *, character: int, where: str) -> int:
    """How many of the prompt's IDs stand before a character of its text.

    Raises PromptError where a token reaches over the character, or where two numbers of IDs have that text.
    """
    head = text[:character]
    alone = tokenizer.encode(head) if head else ()
    count = len(alone)
    if ids[:count] != alone or tokenizer.decode(ids[:count]) != head:
        raise PromptError(
            f"{where}: place in tokens",
            expected=f"a token that ends at character {character}, {text[max(0, character - 12) : character]!r}",
            found=f"one that reaches over it: {text[character : character + 12]!r} is joined to what stands before",
            todo=TODO,
        )
    if ids[count:] and tokenizer.decode(ids[: count + 1]) == head:
        raise PromptError(
            f"{where}: place in tokens",
            expected=f"one number of IDs before character {character}",
            found=f"{count} and {count + 1}: a token without text stands there",
            todo=TODO,
        )
    return count


def is_verbatim(tokenizer: PromptTokenizer, messages: Messages, text: str, *, part: str) -> bool:
    """Whether `part`, put in place of the marker, stands once and unaltered in the prompt.

    `messages` hold the marker where the part goes; `text` is the prompt with the part.
    """
    shell = render_messages(tokenizer, messages)
    before, marker, after = shell.partition(MARKER)
    return bool(marker) and MARKER not in after and before + part + after == text


def _message_end(tokenizer: PromptTokenizer, messages: Messages, text: str, number: int, where: str) -> int:
    marked = [dict(one) for one in messages]
    marked[number]["content"] += MARKER
    before, marker, after = render_messages(tokenizer, marked).partition(MARKER)
    if not marker or MARKER in after:
        found = "no place" if not marker else "several places"
        raise PromptError(f"{where}: end of message {number}", expected="one place", found=found, todo=TODO)
    if before + after != text:
        raise PromptError(
            f"{where}: end of message {number}",
            expected="the rendered prompt, but for the marker",
            found="a template that alters the message around it",
            todo=TODO,
        )
    return len(before)


def _before_generation(tokenizer: PromptTokenizer, messages: Messages, text: str, where: str) -> int:
    head = render_messages(tokenizer, messages, generation_prompt=False)
    if not text.startswith(head) or len(head) == len(text):
        raise PromptError(
            f"{where}: generation prompt",
            expected="a template that adds one after the messages",
            found="none" if head == text else "a template that alters the messages with it",
            todo=TODO,
        )
    return len(head)


def _last_assistant(messages: Messages, where: str) -> int:
    numbers = [number for number, one in enumerate(messages) if one["role"] == "assistant"]
    if not numbers:
        raise PromptError(f"{where}: history", expected="an assistant message", found="none", todo=TODO)
    return numbers[-1]
