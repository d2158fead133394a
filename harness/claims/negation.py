"""Whether a sentence that holds a prohibited conclusion denies it: negated where it stands, or listed as prohibited."""

import re

from harness.claims.text import Sentence

_NO = re.compile(
    r"\b(?:not|no|never|cannot|neither|nor|none)\b|n't\b|\bn’t\b|can’t|\bprohibit|\bforbid|\bmust refrain"
    r"|不|没有|无法|未曾|勿|禁止|并非|绝非|≠",
    re.IGNORECASE,
)
# Words that look like a denial and affirm.
_AFFIRMS = re.compile(
    r"not (?:only|just|merely|simply|surprising|wrong|false)|n't (?:only|just|merely)|no (?:doubt|wonder)"
    r"|cannot be (?:denied|ignored|doubted)|不仅|不只|不但|不得不|不可否认|毫不|不错|不断",
    re.IGNORECASE,
)
_BREAK = re.compile(r"[,，;；:：]|—")
_TURN = re.compile(r"\bbut\b|\brather\b|而是|反而", re.IGNORECASE)
_LIMITS = re.compile(r"limit|caveat|does ?n[o']t|cannot|can't|prohibit|局限|限制|边界|不能|不允许|禁止", re.IGNORECASE)
_PROHIBITED = re.compile(
    r"prohibit|forbid|not (?:permitted|allowed|claimed)|(?:does ?n[o'’]t|do not|cannot) (?:claim|say|conclude|show)"
    r"|禁止|不允许|不得|不应",
    re.IGNORECASE,
)


def is_negated(sentence: Sentence, span: tuple[int, int]) -> bool:
    """A denial in the conclusion's own clause, before its end; under a heading of limits, anywhere in the sentence."""
    text = _AFFIRMS.sub(lambda match: " " * len(match[0]), sentence.text)
    if any(map(_LIMITS.search, sentence.headings[-1:])) and _NO.search(text):
        return True
    start = max((match.end() for match in _BREAK.finditer(text, 0, span[0])), default=0)
    denial = _NO.search(text, start, span[1])
    return denial is not None and not _TURN.search(text, denial.end(), span[1])


def is_listed(sentence: Sentence) -> bool:
    """The first sentence of an item under a heading, or after an introduction, that says prohibited."""
    heading = sentence.headings[-1] if sentence.headings else ""
    introduced = sentence.lead.rstrip().endswith((":", "：")) and _PROHIBITED.search(sentence.lead)
    return sentence.item and sentence.first and bool(_PROHIBITED.search(heading) or introduced)
