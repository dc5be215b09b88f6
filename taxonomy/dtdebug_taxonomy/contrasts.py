"""What the user has found to make the difference: "with X it works", "without X it does not hang".

Such a pair says more than any resemblance. What observations hold already (one host, one process, another back end)
is theirs; the rest is what this reads.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from dtdebug_taxonomy.finding import plain
from dtdebug_taxonomy.matching import clip_lines

_WORKS = (
    r"(?:works?|worked|pass"
    r"|runs? (?:fine|through|well|normally|without (?:error|problem)s?|\d[\d,]* (?:steps|epochs|iterations|hours))"
    r"|(?:trains?|runs?) (?:ok(?:ay)?|perfectly|properly|correctly|smoothly)"
    r"|trains? (?:fine|well|normally|as expected|without (?:error|problem)s?)|is fine|are fine|was fine|goes well"
    r"|(?:exits?|ends?|finish(?:es)?|completes?|starts?) (?:cleanly|normally|fine|well|without (?:error|problem)s?)"
    r"|converges"
    r"|(?:does|did) ?(?:n.t|not) (?:happen|hang|fail|crash|occur|appear)|(?:do|did) ?(?:n.t|not) (?:hang|fail|crash)"
    r"|never (?:happens|happened|hangs|hung|fails|failed|crashes|crashed|appears|appeared)"
    r"|passes|succeeds|completes|disappears|goes away|is gone|is right|are right|is correct|are correct|is stable"
    r"|has no (?:problem|issue)s?)\b"
)
_OUTCOME = re.compile(rf"(?i)\b(?:{_WORKS}|(?:helps?|helped|solve[sd]?|fixe[sd]|resolve[sd]?)\b)")
_CONDITION = re.compile(r"(?i)\b(?:with|without|if|when|after|using|by|disabl|enabl|set|remov|add|chang)|=")
_THING = r"(?P<thing>[^\n,.;:!?()]{3,60}?)"
_IT = (
    r"(?:it|this|that|they(?: all)?|these|both|everything|all|the same(?: \w{2,12})?|training"
    r"|(?:the |this )?(?:problem|error|issue|hang|run|job|training|crash|model|loss|result|script|server|program|code))"
)
_DONE = "after (?:disabling|removing|setting|enabling|adding|replacing)"
_SENTENCE = re.compile(
    r"[.!?;](?=\s|$)|\n|, (?:but|and|while|whereas|without|with) (?=\w)|(?<!,) (?:but|whereas) (?=\w)(?!only\b|not\b)"
)
_OBSERVED = re.compile(
    r"(?i)(?<![=_-])\b(?:one|single|1|two|2|fewer|other|another|different"
    r"|small\w{0,3}|large\w{0,1}|older|newer|some|any|all)\b"
    r"(?![-=])|\bgloo\b|\bv?\d{1,2}\.\d|\bcpu\b"
    r"|^(?:it|this|that|them|my|the (?:same|code|model|data))\b|\bproblem|\berror"
)
"""Things that observations or other indicators hold, and words that name nothing."""
_SMALLER = re.compile(
    r"(?i)\b(?:1|one|single|only one)[- ](?:[\w-]{2,12} ){0,4}(?:node|machine|host|server|gpu|card|process|rank)\b"
)
"""Where one host or device is named beside it, that is what makes the difference."""
_DEEDS = ("use", "remove", "disable", "set", "enable", "switch off", "turn off", "leave out", "add", "replace")
_MOST = 8
"""Words of a thing."""


class Contrast(NamedTuple):
    """One thing with which it works."""

    words: str
    """`without activation checkpointing`."""
    line: int


@cache
def _pairs() -> tuple[re.Pattern[str], ...]:
    """How users tell such a pair; compiled where there are words."""
    return (
        re.compile(rf"(?i)(?:\b(?P<how>with|without|{_DONE})|(?:^|, )using) {_THING},? {_IT} (?:\w{{2,10}} )?{_WORKS}"),
        re.compile(rf"(?i)\b{_IT} {_WORKS} (?:\w{{2,10}} )?(?P<how>with|without|when using|{_DONE}) {_THING}$"),
        re.compile(
            r"(?i)\bif i (?P<how>use|remove|disable|set|enable|switch off|turn off|leave out|add|replace)"
            rf" {_THING},? {_IT} {_WORKS}"
        ),
        re.compile(rf"(?i)\b(?P<how>with|without) {_THING} (?:the same )?{_WORKS}$"),
        re.compile(
            rf"(?i)^(?:but )?(?P<thing>torchrun|mpirun|srun|accelerate launch|deepspeed|python -m \S{{3,40}}) {_WORKS}$"
        ),
    )


def contrast(situation: str) -> Contrast | None:
    """The first thing that the user names as making the difference."""
    text = clip_lines(situation)
    if not text.strip():
        return None
    begin = 0
    for end in (*(m.start() for m in _SENTENCE.finditer(text)), len(text)):
        start, begin = begin, end + 1
        found = next((m for p in _pairs() if (m := p.search(text[start:end].strip()))), None)
        if found is None or _SMALLER.search(text[start:end]) or _belongs_to_before(found):
            continue
        thing = " ".join(plain(found["thing"]).split())
        if thing and len(thing.split()) <= _MOST and not _OBSERVED.search(thing):
            how = (found.groupdict().get("how") or "with").lower()
            return Contrast(
                f"if you {how} {thing}" if how in _DEEDS else f"{how} {thing}", text.count("\n", 0, end) + 1
            )
    return None


def tells_outcome(words: str) -> bool:
    """They say under which condition it works."""
    return _OUTCOME.search(words) is not None and _CONDITION.search(words) is not None


def _belongs_to_before(found: re.Match[str]) -> bool:
    """`I train with my data, it works` says nothing of the data; `but with my data, it works` does."""
    words, before = found[0].lower(), found.string[: found.start()].rstrip().lower()
    begins = not before or before.endswith((",", ":", "but", "and", "however", "then", "only", "so"))
    return "," in words and words.startswith("with") and not begins
