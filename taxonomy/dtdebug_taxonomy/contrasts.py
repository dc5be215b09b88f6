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
    r"|passes|succeeds|completes|disappears?|vanish(?:es)?|goes? away|(?:is|are) gone|fits"
    r"|stays (?:(?:at|around|near|above) \w{1,12}|good|flat|the same|fast)"
    r"|gets (?:properly|correctly) \w{4,14}"
    r"|is right|are right|is correct|are correct|is stable"
    r"|has no (?:problem|issue)s?|(?:is|was) (?:a success|successful))\b"
)
_OUTCOME = re.compile(rf"(?i)\b(?:{_WORKS}|(?:helps?|helped|solve[sd]?|fixe[sd]|resolve[sd]?)\b)")
_CONDITION = re.compile(r"(?i)\b(?:with|without|if|when|after|using|by|disabl|enabl|set|remov|add|chang)|=")
_THING = r"(?P<thing>(?:[^\n,.;:!?()]|\.(?=\w)|\(\)){3,60}?)"
_IT = (
    r"(?:it|this|that|they(?: all)?|these|both|everything|all|the same(?: \w{2,12})?|training"
    r"|(?:the |this )?(?:problem|error|issue|hang|run|job|training|crash|model|loss|result|script|server|program|code))"
)
_DONE = "after (?:disabling|removing|setting|enabling|adding|replacing)"
_SENTENCE = re.compile(
    r"[.!?;](?=\s|$)|\n|, (?:but|and|while|whereas) (?=\w)|, (?=(?:with|without) \w)"
    r"|(?<!,) (?:but|whereas) (?=\w)(?!only\b|not\b)"
)
_OBSERVED = re.compile(
    r"(?i)(?<![=_-])\b(?:one(?! at a time)|single(?! precision)|1|two|2|fewer|other|another|different"
    r"|small\w{0,3}|large\w{0,1}|older|newer|some|any|all)\b"
    r"(?![-=])|\bgloo\b|\bv?\d{1,2}\.\d|\bcpu\b"
    r"|(?:tensor[_-]parallel(?:[_-]size)?|tp(?:[_-]size)?|world_size|num_gpus|nproc\w{0,12}|num_processes) ?[=: ] ?1$"
    r"|^(?:it|(?:this|that)(?! line)|them|my|the (?:same|code|model|data)|nvlink)\b|\bproblem|\berror"
)
"""Things that observations or other indicators hold, and words that name nothing."""
_OPTION = re.compile(
    r"(?i)(?<![\w-])(?P<option>--?[a-z][\w-]{2,40}|[a-z]{2,20}(?:_[a-z]{1,20}){1,5}|[tpcedsv]p)"
    r"(?:[ =]|: )(?P<bad>\d{1,6}|true|false)\b"
)
_OTHER_VALUE = re.compile(
    r"(?i)\b(?:with (?:it )?(?:set to |at )?|(?=[tpcedsv]p ?[=:]))(?:[tpcedsv]p ?[=:] ?)?"
    rf"(?P<good>\d{{1,6}}|true|false),? (?:{_IT} )?{_WORKS}"
)
"""`--data-parallel-size 2 ..., with 1 it works`."""
_FAILS = r"(?:fails?|hangs?|crash(?:es)?|freezes|is stuck|gets stuck|errors?|times? out)\b"
_DEVICE = r"(?P<device>(?:gpu|card|device) ?#?\d{1,2})\b"
_ONE_DEVICE = (
    re.compile(
        r"(?i)\b(?:pairs?|combinations?|subsets?) (?:\w{2,10} )?(?:with|includ\w{2,4}|contain\w{0,3}|involv\w{2,4})"
        rf" (?:the )?{_DEVICE}[^\n.;]{{0,24}}?\b{_FAILS}"
    ),
    re.compile(
        rf"(?i)\b{_FAILS}[^\n.;]{{0,24}}?\b(?:whenever|only (?:when|if|with)|as soon as|every time) (?:the )?{_DEVICE}"
    ),
    re.compile(
        rf"(?i)\b(?:whenever|only (?:when|if)|as soon as|every time) (?:the )?{_DEVICE} (?:is|takes?|joins?)\b"
        rf"[^\n.;]{{0,30}}?\b{_FAILS}"
    ),
    re.compile(
        r"(?i)\b(?:without|except(?: for)?|all but|leaving out|excluding) (?:the )?"
        rf"{_DEVICE}[^\n.;]{{0,30}}?\b{_WORKS}"
    ),
)
"""One device of several, found by leaving each out or by trying pairs."""
_SMALLER = re.compile(
    r"(?i)\b(?:1|one|single|only one)[- ](?:[\w-]{2,12} ){0,4}(?:node|machine|host|server|gpu|card|process|rank)\b"
)
"""Where one host or device is named beside it, that is what makes the difference."""
_DEEDS = (
    "use",
    "remove",
    "disable",
    "set",
    "enable",
    "switch off",
    "turn off",
    "leave out",
    "add",
    "replace",
    "cast",
    "switch",
    "change",
    "move",
    "reduce",
)
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
        re.compile(rf"(?i)\b(?:if|when) (?:i|we) (?P<how>{'|'.join(_DEEDS)}) {_THING},? (?:then )?{_IT} {_WORKS}"),
        re.compile(rf"(?i)(?:^|, )(?P<how>for) (?:a |an |the )?{_THING},? {_IT} {_WORKS}$"),
        re.compile(rf"(?i)\b(?P<how>with|without) {_THING} (?:the same )?{_WORKS}(?: fine| well| properly)?(?=$|,)"),
        re.compile(
            rf"(?i)^(?:but )?(?:started |launched |run )?(?P<how>)(?P<thing>one at a time|one after"
            rf" (?:the other|another)|sequentially|serially|from scratch),?(?: {_IT})? {_WORKS}"
        ),
        re.compile(rf"(?i)^(?:but )?training (?P<how>)(?P<thing>from scratch) (?:[\w-]{{2,12}} ){{0,5}}?{_WORKS}"),
        re.compile(
            rf"(?i)^(?:but )?(?P<thing>torchrun|mpirun|srun|accelerate launch|deepspeed|python -m \S{{3,40}}) {_WORKS}$"
        ),
    )


def contrast(situation: str) -> Contrast | None:
    """The first thing that the user names as making the difference."""
    text = clip_lines(situation)
    if not text.strip():
        return None
    option, other = _OPTION.search(text), _OTHER_VALUE.search(text)
    if option and other and option.start() < other.start() and option["bad"].lower() != other["good"].lower():
        return Contrast(f"with {option['option']} {other['good']}", text.count("\n", 0, other.start()) + 1)
    begin = 0
    for end in (*(m.start() for m in _SENTENCE.finditer(text)), len(text)):
        start, begin = begin, end + 1
        found = next((m for p in _pairs() if (m := p.search(text[start:end].strip(" \t:")))), None)
        if found is None or _SMALLER.search(text[start:end]) or _belongs_to_before(found):
            continue
        thing = " ".join(plain(found["thing"]).split())
        if thing and len(thing.split()) <= _MOST and not _OBSERVED.search(thing):
            how = found.groupdict().get("how")
            how = "with" if how is None else how.lower()
            return Contrast(
                f"if you {how} {thing}" if how in _DEEDS else f"{how} {thing}".strip(), text.count("\n", 0, end) + 1
            )
    return None


def one_device(situation: str) -> Contrast | None:
    """The device without which it works, where the user has tried that."""
    text = clip_lines(situation)
    found = next((m for p in _ONE_DEVICE if (m := p.search(text))), None)
    return None if found is None else Contrast(plain(found["device"]), text.count("\n", 0, found.start()) + 1)


def tells_outcome(words: str) -> bool:
    """They say under which condition it works."""
    return _OUTCOME.search(words) is not None and _CONDITION.search(words) is not None


def _belongs_to_before(found: re.Match[str]) -> bool:
    """`I train with my data, it works` says nothing of the data; `but with my data, it works` does."""
    words, before = found[0].lower(), found.string[: found.start()].rstrip().lower()
    begins = not before or before.endswith((",", ":", "but", "and", "however", "then", "only", "so"))
    return "," in words and words.startswith("with") and not begins
