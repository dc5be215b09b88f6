"""Comparisons in the user's words: a condition under which it works, one device of several, a release that works.

A pair of runs that differ in one thing says more than any resemblance. What observations hold already (one host, one
process, another back end) is left to them.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from dtdebug_taxonomy.text.lazy_re import lazy_re
from dtdebug_taxonomy.text.outcomes import outcome_of
from dtdebug_taxonomy.text.pattern_matcher import clip_lines, plain

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
_OUTCOME = lazy_re(rf"(?i)\b(?:{_WORKS}|(?:helps?|helped|solve[sd]?|fixe[sd]|resolve[sd]?)\b)")
_CONDITION = lazy_re(r"(?i)\b(?:with|without|if|when|after|using|by|disabl|enabl|set|remov|add|chang)|=")
_THING = r"(?P<thing>(?:[^\n,.;:!?()]|\.(?=\w)|\(\)){3,60}?)"
_IT = (
    r"(?:it|this|that|they(?: all)?|these|both|everything|all|the same(?: \w{2,12})?|training"
    r"|(?:the |this )?(?:problem|error|issue|hang|run|job|training|crash|model|loss|result|script|server|program|code))"
)
_DONE = "after (?:disabling|removing|setting|enabling|adding|replacing)"
_SENTENCE = lazy_re(
    r"[.!?;](?=\s|$)|\n|, (?:but|and|while|whereas) (?=\w)|, (?=(?:with|without) \w)"
    r"|(?<!,) (?:but|whereas) (?=\w)(?!only\b|not\b)"
)
_OBSERVED = lazy_re(
    r"(?i)(?<![=_-])\b(?:one(?! at a time)|single(?! precision)|1|two|2|fewer|other|another|different"
    r"|small\w{0,3}|large\w{0,1}|older|newer|some|any|all)\b"
    r"(?![-=])|\bgloo\b|\bv?\d{1,2}\.\d|\bcpu\b"
    r"|(?:tensor[_-]parallel(?:[_-]size)?|tp(?:[_-]size)?|world_size|num_gpus|nproc\w{0,12}|num_processes) ?[=: ] ?1$"
    r"|^(?:it|(?:this|that)(?! line)|them|my|the (?:same|code|model|data)|nvlink)\b|\bproblem|\berror"
)
"""Things that observations or other indicators hold, and words that name nothing."""
_OPTION = lazy_re(
    r"(?i)(?<![\w-])(?P<option>--?[a-z][\w-]{2,40}|[a-z]{2,20}(?:_[a-z]{1,20}){1,5}|[tpcedsv]p)"
    r"(?:[ =]|: )(?P<bad>\d{1,6}|true|false)\b"
)
_OTHER_VALUE = lazy_re(
    r"(?i)\b(?:with (?:it )?(?:set to |at )?|(?=[tpcedsv]p ?[=:]))(?:[tpcedsv]p ?[=:] ?)?"
    rf"(?P<good>\d{{1,6}}|true|false),? (?:{_IT} )?{_WORKS}"
)
"""`--data-parallel-size 2 ..., with 1 it works`."""
_FAILS = r"(?:fails?|hangs?|crash(?:es)?|freezes|is stuck|gets stuck|errors?|times? out)\b"
_DEVICE = r"(?P<device>(?:gpu|card|device) ?#?\d{1,2})\b"
_ONE_DEVICE = (
    lazy_re(
        r"(?i)\b(?:pairs?|combinations?|subsets?) (?:\w{2,10} )?(?:with|includ\w{2,4}|contain\w{0,3}|involv\w{2,4})"
        rf" (?:the )?{_DEVICE}[^\n.;]{{0,24}}?\b{_FAILS}"
    ),
    lazy_re(
        rf"(?i)\b{_FAILS}[^\n.;]{{0,24}}?\b(?:whenever|only (?:when|if|with)|as soon as|every time) (?:the )?{_DEVICE}"
    ),
    lazy_re(
        rf"(?i)\b(?:whenever|only (?:when|if)|as soon as|every time) (?:the )?{_DEVICE} (?:is|takes?|joins?)\b"
        rf"[^\n.;]{{0,30}}?\b{_FAILS}"
    ),
    lazy_re(
        r"(?i)\b(?:without|except(?: for)?|all but|leaving out|excluding) (?:the )?"
        rf"{_DEVICE}[^\n.;]{{0,30}}?\b{_WORKS}"
    ),
)
"""One device of several, found by leaving each out or by trying pairs."""
_SMALLER = lazy_re(
    r"(?i)\b(?:1|one|single|only one)[- ](?:[\w-]{2,12} ){0,4}(?:node|machine|host|server|gpu|card|process|rank)\b"
)
"""Mentions of a single host or device: then that makes the difference."""
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


class Condition(NamedTuple):
    """One thing with which it works."""

    words: str
    """`without activation checkpointing`."""
    line: int


@cache
def _pairs() -> tuple[re.Pattern[str], ...]:
    """Return the patterns of such pairs, compiled on first use."""
    return (
        lazy_re(rf"(?i)(?:\b(?P<how>with|without|{_DONE})|(?:^|, )using) {_THING},? {_IT} (?:\w{{2,10}} )?{_WORKS}"),
        lazy_re(rf"(?i)\b{_IT} {_WORKS} (?:\w{{2,10}} )?(?P<how>with|without|when using|{_DONE}) {_THING}$"),
        lazy_re(rf"(?i)\b(?:if|when) (?:i|we) (?P<how>{'|'.join(_DEEDS)}) {_THING},? (?:then )?{_IT} {_WORKS}"),
        lazy_re(rf"(?i)(?:^|, )(?P<how>for) (?:a |an |the )?{_THING},? {_IT} {_WORKS}$"),
        lazy_re(rf"(?i)\b(?P<how>with|without) {_THING} (?:the same )?{_WORKS}(?: fine| well| properly)?(?=$|,)"),
        lazy_re(
            rf"(?i)^(?:but )?(?:started |launched |run )?(?P<how>)(?P<thing>one at a time|one after"
            rf" (?:the other|another)|sequentially|serially|from scratch),?(?: {_IT})? {_WORKS}"
        ),
        lazy_re(rf"(?i)^(?:but )?training (?P<how>)(?P<thing>from scratch) (?:[\w-]{{2,12}} ){{0,5}}?{_WORKS}"),
        lazy_re(
            rf"(?i)^(?:but )?(?P<thing>torchrun|mpirun|srun|accelerate launch|deepspeed|python -m \S{{3,40}}) {_WORKS}$"
        ),
    )


def find_condition(situation: str) -> Condition | None:
    """The first thing that the user names as making the difference."""
    text = clip_lines(situation)
    if not text.strip():
        return None
    option, other = _OPTION.search(text), _OTHER_VALUE.search(text)
    if option and other and option.start() < other.start() and option["bad"].lower() != other["good"].lower():
        return Condition(f"with {option['option']} {other['good']}", text.count("\n", 0, other.start()) + 1)
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
            return Condition(
                f"if you {how} {thing}" if how in _DEEDS else f"{how} {thing}".strip(), text.count("\n", 0, end) + 1
            )
    return None


def find_device(situation: str) -> Condition | None:
    """The device without which it works, where the user has tried that."""
    text = clip_lines(situation)
    found = next((m for p in _ONE_DEVICE if (m := p.search(text))), None)
    return None if found is None else Condition(plain(found["device"]), text.count("\n", 0, found.start()) + 1)


def tells_outcome(words: str) -> bool:
    """They say under which condition it works."""
    return _OUTCOME.search(words) is not None and _CONDITION.search(words) is not None


def _belongs_to_before(found: re.Match[str]) -> bool:
    """`I train with my data, it works` says nothing of the data; `but with my data, it works` does."""
    words, before = found[0].lower(), found.string[: found.start()].rstrip().lower()
    begins = not before or before.endswith((",", ":", "but", "and", "however", "then", "only", "so"))
    return "," in words and words.startswith("with") and not begins


_NAME = r"(?<![\w/.-])(?P<name>[A-Za-z][\w-]{1,30})"
_RELEASE = r"v?(?P<release>\d{1,4}\.\d{1,4}(?:\.\d{1,5})?(?:\.?(?:post|rc|dev)\d{0,8})?)(?![\w%]|\.\d)"
_OF = lazy_re(rf"(?:{_NAME}(?:[ =:-]{{1,3}}|\s(?:version|release) ))?{_RELEASE}")
_CLAUSE = lazy_re(
    r"[.:;!?](?=\s|$)|\n|,\s|\s(?:but|while|whereas|whilst)\s"
    r"|\sand\s(?=(?:with|in|on|then|it|not|works?|fails|hangs|crashes|breaks|is|does)\b)"
)
_GOOD = lazy_re(
    r"(?i)\b(?:works?|worked|working|fine(?!-?tun)|okay|ok|(?:learns?|learned|trains?|trained|runs?|ran|converges?) "
    r"(?:\w{2,8} )?(?:well|fine|as expected|normally|without)|is right|was right|are right"
    r"|stable|correct|succeeds?|succeeded|passes|(?:goes|went) through"
    r"|no (?:problem|error|issue|hang)s?|as expected|normal"
    r"|(?:does|did)(?: not|n.t) (?:happen|hang|fail|crash|occur|appear|exist))\b"
)
_BAD = lazy_re(
    r"(?i)\b(?:fail(?:s|ed|ing)?|broken|broke|breaks|hangs?|hung|stuck|crash(?:es|ed)?|errors?|wrong|worse"
    r"|slow(?:er)?|(?:does|do|did)(?: not|n.t) (?:work|run|train|learn|start|converge)|no longer|not work\w{0,3}"
    r"|out of (?:\w{2,8} )?memory|OOM\w{0,3}|nan|incorrect|dies|diverges?|leaks?|regress\w{0,5})\b"
)
_NOT_GOOD = lazy_re(
    r"(?i)\b(?:not|n.t|never|no longer|hardly|nothing)\b.{0,12}\b(?:works?|worked|fine|right|stable|correct)"
)
_UPGRADE = lazy_re(
    rf"(?i)\b(?:after|since|once|when) (?:i |we )?(?:have )?(?:upgrad|updat|mov|switch|go|went|bump)\w{{0,5}} "
    rf"(?:of |the )?(?:{_NAME} )?(?:from v?(?P<old>\d[\w.]{{1,15}}) )?to (?:[A-Za-z][\w-]{{1,30}} )?{_RELEASE}"
)
_BEFORE = lazy_re(
    rf"(?i)\b(?:works?|worked|fine|ran|run|okay|no problem)\b.{{0,24}}\b(?:before|prior to|until) (?:{_NAME} )?"
    rf"{_RELEASE}"
)
_FROM = lazy_re(
    rf"(?i)\b(?:since|as of|starting (?:with|from)|beginning with|(?:began|begins|broken?) (?:in|with)"
    rf"|(?:occurr?\w{{0,3}}|began|begins|appear\w{{0,3}}|happen\w{{0,3}}|start\w{{0,3}}) after) (?:the )?"
    rf"(?:(?:release|version) )?(?:of )?(?:{_NAME} )?(?:(?:release|version) )?{_RELEASE}"
)
"""The release since which it fails, without a word of upgrading."""
_THAN = lazy_re(rf"(?i)\bthan (?:with|in|on|under|using) (?:the )?(?:{_NAME} )?{_RELEASE}")
"""The release to which a worse one is compared."""
_CHANGE = lazy_re(r"(?i)\b(?:PR|pull request|commit)\s+\[?`?(?:#\d{1,6}|[0-9a-f]{7,40})\b")
_UPDATED = r"(?:installed|updated|upgraded|replaced|changed|rebuilt"
_SINCE = lazy_re(
    rf"(?i)\b(?:since|after) (?:(?:we|I|they|the admins?) (?:have |had )?{_UPDATED}) "
    r"(?P<did>[^\n,;:]{3,60}?(?=[,;:\n]|\.(?:\s|$)))"
    rf"|(?P<thing>[^\n,;:]{{3,60}}?) (?:is|was|were|are|has been|have been|got|came) {_UPDATED}|rolled out|in use)\b)"
)
"""An update without a number: of a driver, an image, a kernel."""
_BEFORE_IT = lazy_re(
    r"(?i)\b(?:before(?: that| then| it)?|previously|until then|earlier|in the past|up to then"
    r"|with the (?:old|previous) one),? "
    r"(?:(?:it|everything|all|this|that|the same (?:job|code|script)|they|the jobs?)(?: all)? )?"
    r"(?:worked|works|ran|was fine|were fine|did not|didn't|had no)\b"
    r"|\b(?:worked|ran|was fine|were fine|had worked)(?: well| fine)? (?:before|until then)\b"
)
_CODE = r"(?:code|version|release|commit|branch|checkout|image|build|main|master|repo\w{0,6}|source)"
_OLD = lazy_re(
    rf"(?i)\b(?:the |an? |my |our )?(?P<old>(?:old(?:er)?|previous|former|earlier) {_CODE}"
    rf"|{_CODE} (?:from|of) (?:before|last \w{{3,6}}|(?:a|some|\w{{2,5}}) (?:days?|weeks?|months?) ago|yesterday))\b"
)
_NEW = lazy_re(
    rf"(?i)\b(?P<new>(?:new(?:er|est)?|latest|current|updated) {_CODE}|(?:git )?pull(?:ed|ing)?\b"
    rf"|updated? (?:the )?{_CODE})"
)
_WITHOUT_IT = lazy_re(
    r"(?i)\b(?:older|earlier|previous|before|prior to|revert\w{0,3}|without it|one commit (?:back|earlier))\b"
)
_NOISE = frozenset({
    "with", "in", "on", "of", "version", "release", "from", "to", "is", "and", "at", "using", "was", "by", "for",
    "the", "gpu", "loss", "lr", "about", "than", "only", "grad", "norm", "it", "or", "under", "since", "until",
    "before", "after", "accuracy", "score", "reward", "rate", "step", "epoch", "install", "installed", "use", "used",
    "try", "tried", "run", "pin", "pinned", "into",
})  # fmt: skip
"""Words before a number that name no package."""
_NEAR = 200
"""Characters around a change that are searched for its outcome."""
_ANY = lazy_re(r"(?<![\d.])\d{1,4}\.\d")


class _Mention(NamedTuple):
    package: str
    release: str
    at: int
    before: str = ""
    """The release from which it was upgraded, if it is named."""


NEWER_CODE = "the newer code"
"""Name of the state that fails, where only an old and a new one of the code are told apart."""


class Regression(NamedTuple):
    """A package of which one release works."""

    package: str
    """Empty where the user names it nowhere near, for a commit or pull request, and for an update without a number."""
    good: str
    """Empty where only what fails is named."""
    bad: str
    words: str
    line: int


def find_regression(situation: str) -> Regression | None:
    """The pair that the user names, None where there is none."""
    text = clip_lines(situation)
    if (update := _by_update(text)) is not None:
        return update
    if not _ANY.search(text):
        return _by_change(text) or _by_old_code(text)
    upgrade = _upgrade_in(text)
    good, bad, unsaid = _by_outcome(text, upgrade.release if upgrade else "")
    if upgrade is not None and upgrade.before:
        good = _Mention(upgrade.package, upgrade.before, upgrade.at)
    elif upgrade is not None and good is None and (than := _THAN.search(text)) is not None:
        good = _Mention(_package(than), than["release"], than.start())
    bad = upgrade or bad
    if bad is None and good is not None and unsaid is not None and unsaid.package == good.package:
        bad = unsaid
    if bad is None or (good is None and upgrade is None) or (good is not None and good.release == bad.release):
        return _by_old_code(text)
    package = bad.package or (good.package if good else "")
    if not package and good is None and _FROM.search(text) and _GOOD.search(text):
        return _release_alone(text, bad)
    if not package or (good is not None and good.package not in ("", package)):
        return None
    words = plain(" ".join(text[max(bad.at - 30, 0) : bad.at + 60].split()))
    return Regression(package, good.release if good else "", bad.release, words, text.count("\n", 0, bad.at) + 1)


def _by_update(text: str) -> Regression | None:
    """The update since which it fails, where another sentence says that before it worked."""
    found = _SINCE.search(text)
    if found is None or not _BEFORE_IT.search(text):
        return None
    thing = " ".join(plain(found["did"] or found["thing"]).split())
    return Regression("", "the one before", thing, plain(found[0]), text.count("\n", 0, found.start()) + 1)


def _by_old_code(text: str) -> Regression | None:
    """The newer code since which it fails, where a clause says that the old one works."""
    new = _NEW.search(text)
    for found in _OLD.finditer(text) if new is not None else ():
        ends = [m.start() for m in _CLAUSE.finditer(text, found.end())] or [len(text)]
        begins = [m.end() for m in _CLAUSE.finditer(text, 0, found.start())] or [0]
        clause = text[begins[-1] : ends[0]]
        if outcome_of(clause, None) and new is not None and _BAD.search(text):
            old, line = " ".join(plain(found["old"]).split()), text.count("\n", 0, found.start()) + 1
            return Regression("", f"the {old}", NEWER_CODE, plain(" ".join(clause.split()))[:200], line)
    return None


def _release_alone(text: str, bad: _Mention) -> Regression:
    """Return the release of the program itself, if only that is named and another one works."""
    words = plain(" ".join(text[max(bad.at - 10, 0) : bad.at + 60].split()))
    return Regression("release", "", bad.release, words, text.count("\n", 0, bad.at) + 1)


def _by_change(text: str) -> Regression | None:
    """The commit or pull request since which it fails, where a sentence near it says that without it it works."""
    for found in _CHANGE.finditer(text):
        around = text[max(found.start() - _NEAR, 0) : found.end() + _NEAR]
        clauses = _CLAUSE.split(around)
        pairs = (f"{a}, {b}" for a, b in pairwise(clauses) if not (_GOOD.search(a) or _BAD.search(b)))
        named = [c for c in clauses if _CHANGE.search(c)]
        others = named if not any(found[0] in c and _GOOD.search(c) for c in named) else []
        without = (*others, *(c for c in (*clauses, *pairs) if _WITHOUT_IT.search(c)))
        if _BAD.search(around) and any(_GOOD.search(c) for c in without):
            change = " ".join(found[0].replace("[", "").replace("`", "").split())
            words = plain(" ".join(text[max(found.start() - 30, 0) : found.end() + 60].split()))
            return Regression("", "", change, words, text.count("\n", 0, found.start()) + 1)
    return None


def _upgrade_in(text: str) -> _Mention | None:
    """The release since which it fails."""
    found = _UPGRADE.search(text)
    if found is not None and _BAD.search(text[found.end() :]) is not None:
        return _Mention(_package(found), found["release"], found.start(), (found["old"] or "").rstrip("."))
    found = _FROM.search(text)
    told = any(p.search(text) for p in (_GOOD, _THAN, _BEFORE_IT))  # that it was right without it
    if found is not None and told and _BAD.search(text) is not None:
        return _Mention(_package(found), found["release"], found.start())
    found = _BEFORE.search(text)
    return _Mention(_package(found), found["release"], found.start()) if found is not None else None


def _by_outcome(text: str, known: str) -> tuple[_Mention | None, _Mention | None, _Mention | None]:
    """Return the first release named with a good outcome, with a bad one, and with none."""
    good = bad = unsaid = None
    start = 0
    for end in (*(m.start() for m in _CLAUSE.finditer(text)), len(text)):
        clause, at, start = text[start:end], start, end
        fails = _BAD.search(clause) is not None or _NOT_GOOD.search(clause) is not None
        works = not fails and _GOOD.search(clause) is not None
        for found in _OF.finditer(clause):
            row = _Mention(_package(found), found["release"], at + found.start())
            if row.release == known:
                continue
            if works:
                good = good or row
            elif fails:
                bad = bad or row
            elif row.package:
                unsaid = unsaid or row
    return good, bad, unsaid


def _package(found: re.Match[str]) -> str:
    name = (found["name"] or "").lower()
    return "" if name.rpartition("_")[2] in _NOISE else name
