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
    r"prohibit|forbid|not (?:permitted|allowed|claimed|concluded)"
    r"|(?:can|may|must) ?n[o'’]t be (?:concluded|claimed|said)"
    r"|(?:does ?n[o'’]t|do not|cannot) (?:claim|say|conclude|show)|禁止|不允许|不得|不应",
    re.IGNORECASE,
)
# A title in plain text above a list: one short line that ends no sentence.
_TITLE = re.compile(r"[^.。!?！？]{0,40}")
_THAT = re.compile(r"\s{0,3}(?:or |nor |and )?that\b", re.IGNORECASE)
_UNWRITTEN = re.compile(
    r"(?:不能|不得|不可|不应|不许)(?:写|说|称|读|报)"
    r"|(?:can(?:no|'|’)t|(?:can|may|must|should) not|never) be"
    r" (?:written|read|called|reported|quoted|printed|claimed|said)"
    r"|(?:can(?:no|'|’)t|does ?n[o'’]t|never) (?:print|say|claim|report|quote)s?\b",
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


def is_listed(sentence: Sentence, span: tuple[int, int]) -> bool:
    """Listed as prohibited, by the heading above or by what introduces the list: the first sentence of an item, or
    under such a heading a clause that begins with "that".
    """
    heading = bool(_PROHIBITED.search(sentence.headings[-1])) if sentence.headings else False
    lead = sentence.lead.strip()
    introduced = bool(_PROHIBITED.search(lead)) and (lead.endswith((":", "：")) or _TITLE.fullmatch(lead) is not None)
    if sentence.item and sentence.first and (heading or introduced):
        return True
    start = max((match.end() for match in _BREAK.finditer(sentence.text, 0, span[0])), default=0)
    return heading and _THAT.match(sentence.text, start) is not None


def is_unwritten(clause: str, at: int) -> bool:
    """Whether a figure stands in a clause that says, before it, that it can't be written, read or said."""
    return _UNWRITTEN.search(clause, 0, at) is not None
