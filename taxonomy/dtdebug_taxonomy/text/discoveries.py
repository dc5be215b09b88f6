"""Reads from a user's words what they have found out: the cause that they name, and what made it work.

A text is read sentence by sentence. A discovery states an outcome ("turned out that", "the culprit was", "removing it
fixed the hang"); a suspicion, what others say, what did not help, and what a later sentence takes back are none. Of
several the last one counts, for a later finding corrects an earlier one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from dtdebug_taxonomy.text.lazy_re import lazy_re
from dtdebug_taxonomy.text.outcomes import outcome_of
from dtdebug_taxonomy.text.pattern_matcher import clip_lines, plain

_MOST, _SENTENCES = 20_000, 300
_LONG = 200
"""Characters of a quoted clause."""
_FULL = 60
"""Characters of a line from which the next one continues its sentence."""
_LEAST = 3
"""Words of a thing that is named as the cause; fewer name nothing."""


class Discovery(NamedTuple):
    """The writer's own finding."""

    cause: str
    """The cause in their words; empty if only a remedy is told."""
    remedy: str
    """The clause that says what made it work; empty if none is told."""
    words: str
    """The sentences that tell it."""
    line: int


_FENCE = lazy_re(r"(?ms)^ {0,3}```.{0,20000}?^ {0,3}```[^\n]*$")
_END = lazy_re(r"[.!?](?=\s|$)|\n")
_PAST = lazy_re(
    r"(?i)\b(?:it |this |that )?(?:has |had )?turn(?:ed|s) out(?: in the end| finally)?(?: that| to be| to have been"
    r"| it was|:)?\s(?P<thing>.+)"
)
_CULPRIT = lazy_re(
    r"(?i)\b(?:the|our|my|its)(?: (?:real|actual|main|true|only))? (?:culprit|root cause|cause|reason|trigger"
    r"|offender)(?: (?:here|(?:of|for|behind) (?:[\w-]{1,16} ?){1,4}?))? ?(?:was|were|is|turned out to be|lies in"
    r"|lay in|:)(?: that)?\s(?P<thing>.+)"
)
_DOWN_TO = lazy_re(
    r"(?i)\b(?:(?:tracked|traced|narrowed|nailed|bisected"
    r"|pinned(?= (?:\w{2,8} ){0,3}down\b))\s(?:(?:it|this|that|things"
    r"|(?:the|my|our) (?:[\w-]{2,14} ){1,2})\s?)?(?:all |back ){0,2}(?:down )?"
    r"|(?:boil(?:ed|s)|came|comes) (?:all )?down )"
    r"to\s(?P<thing>.+)"
)
_BISECT = lazy_re(
    r"(?i)\b(?:git )?bisect(?:ing|ion)? (?:points? (?:to|at)|pointed (?:to|at)|blames?|blamed|finds?|found|shows?"
    r"|showed|gives?|gave|leads? to|led to)\s(?P<thing>.+)"
)
_FOUND = lazy_re(
    r"(?i)(?:^\W{0,3}|\b(?:I|we)(?:'ve| have)?(?: finally| now)? )(?:found|figured"
    r"|worked) (?:out )?(?:the (?:culprit|cause|reason"
    r"|bug|problem|issue|root cause)|it|(?:out )?what (?:it was|was wrong|happened))(?: out)?\s?[:,.\u2013\u2014-]{1,2}"
    r"\s?(?P<thing>.+)"
)
_CAUSED = lazy_re(
    r"(?i)\b(?:it|this|that|the (?:hang|error|problem|issue|crash|deadlock|nans?|slowdown|freeze|failure|oom)) "
    r"(?:(?:is|was|were) (?:in fact |actually |indeed )?(?:caused by|due to|because of|triggered (?:by|when|if))"
    r"|(?:comes|came|stems|stemmed|results|resulted) from)\s(?P<thing>.+)"
)
_TO_BLAME = lazy_re(
    r"(?i)^(?P<thing>.{3,160}?) (?:was|were|is|are) (?:the (?:real |actual )?(?:culprit|root cause|cause|offender)"
    r"|to blame|responsible for (?:it|this|the \w{3,12}))\b"
)
_BECAUSE = lazy_re(r"(?i)^(?P<what>.{8,200}?),? because (?P<thing>(?!of\b).+)")
"""Reason that a sentence gives: it counts for what the same sentence says goes wrong."""
_TOO_FEW = lazy_re(
    r"(?i)\b(?:sees?|finds?|uses?|gets?|starts?|runs? on|trains? on|takes?)\b[^,;.]{0,12} "
    r"(?:only|just) (?:one|1|a single|part)\b"
    r"|\bonly (?:one|1|a single) (?:gpu|device|process|node|rank|task)\b"
)
_NAMES_CODE = lazy_re(r"`|\w\(\)|[a-z]\w*\.[a-z]\w|\w_\w|(?<!\w)--[a-z]")
_REPEATS = lazy_re(
    r"(?i)\b(?:error|exception|message|traceback|above|below|it (?:fails|hangs|crashes)|I (?:want|need|have|am))\b"
)
"""Words of a reason that names no cause."""
_CAUSES = (_PAST, _CULPRIT, _DOWN_TO, _BISECT, _FOUND, _CAUSED, _TO_BLAME)
_SOLVED_FIRST = lazy_re(
    r"(?i)^(?:\W{0,4}(?:edit|update|solution|solved|resolved)\d?\W{1,4})?(?:it is |it's |this is |I |we |now "
    r"|finally )?"
    r"(?:solved|resolved|fixed|found it|solution)(?: it| this)?\W*$"
)
"""Sentence that only says that it is solved: the next one tells how."""
_WAS = lazy_re(r"(?i)^(?:the|our|my) (?:problem|issue|bug|mistake|error) was(?: that)?\s(?P<thing>.+)")
"""A complaint as well, unless the text says that it is solved."""
_FAILURE = (
    r"(?:it|this|that|everything|(?:the|this|my|our|that|all) (?:[\w-]{2,14} ){0,2}?(?:problem|issue|hang|error|crash"
    r"|deadlock|freeze|nans?|oom|failure|slowdown|leak|stall|bug|timeout)s?)"
)
_DID_IT = lazy_re(
    rf"(?i)\b(?:has |have )?(?:fixed|fixes|solved|solves|resolved|resolves|cured|cures|eliminated|eliminates|got rid of"
    rf"|gets rid of) {_FAILURE}\b"
    rf"|\b(?:makes?|made|lets?) (?:{_FAILURE}|training|the (?:job|run|training|script)) (?:work|run|pass|go away"
    r"|disappear|go through|finish|vanish)\b|\b(?:does|did) the trick\b"
)
_BY = lazy_re(
    rf"(?i)\b(?:fixed|solved|resolved|worked around|circumvented|cured|got around"
    rf"|got rid of|can (?:be )?(?:overrid\w{{1,3}}|avoid(?:ed)?|prevent(?:ed)?|fix(?:ed)?|solved?|circumvent(?:ed)?))"
    rf"(?: {_FAILURE})?(?: for (?:me"
    r"|us|now))? (?:by|with|through|via|using)\s(?P<thing>.+)"
)
_HELD = lazy_re(r"(?i)\b(?:keep(?:s|ing)?|kept|hold(?:s|ing)?|held|leave|left|stays?|remains?)\b[^,;]{0,50}$")
"""Words before "fixed with" that make it constant: "we keep the batch fixed with accumulation"."""
_WORKAROUND = lazy_re(
    r"(?i)\b(?:(?:a|my|our|the|one|current|only|temporary|possible|simple) )?work-?around(?: (?:for (?:now|me|us)"
    r"|that works|(?:I|we) (?:use|found|have)|I am using))?(?: is| was|:| -)(?: to)?\s(?P<thing>.+)"
    r"|\bas a work-?around,? (?:I|we)\s(?P<thing2>.+)"
)
_CONDITION = lazy_re(
    r"(?i)^(?:\W{0,3}|but |and |so |then |now |finally,? |in the end,? )(?P<how>(?:if|when|once|after"
    r"|as soon as|by|since"
    r"|with|without) (?:(?:I|we|you) )?(?P<thing>[^,]{3,120}?)),? (?:then )?(?P<result>(?:it|this|everything"
    r"|all|training"
    r"|the (?:nans?|hang|error|problem|issue|crash|job|run|training|loss|freeze|deadlock|leak|model|script)|things"
    r"|no|both|each|every|we|I)\b.{2,80})$"
)
_REVERSED = lazy_re(
    r"(?i)^(?P<result>[^;]{2,80}?),? (?P<how>(?:if|when|once|after|as soon as|since) (?:(?:I|we|you) )?"
    r"(?P<thing>[^;]{3,120}))$"
)
_RUNS = lazy_re(
    r"(?i)\b(?:trains|runs|it works)(?: again| now| through)?(?:$|, )|\b(?:(?:is|are|was|were) gone|goes away|went away"
    r"|disappear(?:s|ed)|vanish(?:es|ed))\b"
)
_DEED = lazy_re(
    r"(?i)^(?:if|when|once|after|as soon as|by|since) (?:(?:I|we|you) (?:\w{2,9}ly )?(?:sets?|disabl\w{1,3}"
    r"|enabl\w{1,3}"
    r"|remov\w{1,3}|add\w{0,3}|turn\w{0,3}|switch\w{0,3}|chang\w{1,3}|downgrad\w{1,3}|upgrad\w{1,3}|install\w{0,3}"
    r"|reinstall\w{0,3}|replac\w{1,3}|mov\w{1,3}|us\w{1,3}|pin\w{0,4}|revert\w{0,3}|go(?:es)? back|went back"
    r"|pass\w{0,3}"
    r"|call\w{0,3}|put\w{0,4}|comment\w{0,3}|reduc\w{1,3}|increas\w{1,3}|rais\w{1,3}|lower\w{0,3}|export\w{0,3}"
    r"|drop\w{0,4}"
    r"|bind\w{0,3}|mount\w{0,3}|rebuil\w{1,4}|updat\w{1,3}|clear\w{0,3}|delet\w{1,3}|restart\w{0,3}"
    r"|reboot\w{0,3}|set)\b"
    r"|[a-z]{2,12}ing\b"
    r"|(?:(?!(?:it|this|that|training|the (?:job|run|program))\b)[\w@.'-]{1,30} ){1,8}?(?:is|are) (?:not |all )?"
    r"(?:given|set|put|cut|left out|taken out|made"
    r"|(?:remov|chang|reduc|disabl|enabl|add|replac|mov|pass|pinn|pad|drop|turn)ed)\b)"
)
"""Something that was done, not a circumstance."""
_HEDGE = lazy_re(
    r"(?i)\b(?:suspect\w{0,3}|guess\w{0,3}|maybe|perhaps|probably|possibly|presumably|might|may|could|seem\w{0,2}"
    r"|apparently|thinks?|thought|believe[sd]?|assum\w{1,4}|wonder\w{0,3}|looks? like|looked like|not sure"
    r"|unsure|hypothes\w{1,4}"
    r"|suppos\w{1,4}|likely|whether|would|should|hop(?:e|ing)|expect\w{0,3}|try to|want to|is there|are there"
    r"|does anyone"
    r"|any|how (?:do|can|to)|what|which|please|unless|until)\b"
)
_HEDGED_THING = lazy_re(
    r"(?i)\b(?:maybe|perhaps|probably|possibly|presumably|might be|likely|(?:I|we) (?:think|guess|suspect|believe"
    r"|assume))\b|^(?:unknown|unclear|not (?:known|clear|sure|yet)|still|a mystery|what|unrelated|another"
    r"|different|fine|hard"
    r"|difficult|beyond)\b"
)
_DENIED = lazy_re(
    r"(?i)\b(?:not|never|nothing|none|neither|nor|no|hardly|partly|partially|cannot|can't|without success)\b|n't\b"
)
_NOT_IT = lazy_re(r"(?i)^(?:not\b|never\b|no\b|to not\b|something else|(?:a |an )?different)")
_OTHERS = lazy_re(
    r"(?i)^\s{0,3}>|\b(?:colleagues?|someone|somebody|others?|people|they|he|she|admins?|support|docs?|documentation"
    r"|chatgpt|(?:this|that|another|the) (?:issue|thread|post|answer|comment|blog))\b[^.]{0,40}"
    r"\b(?:says?|said|suggest\w{0,3}|claim\w{0,3}|report\w{0,3}|think\w{0,1}|recommend\w{0,3}|mention\w{0,3}"
    r"|wrote|told)\b"
    r"|\baccording to\b|\bfor (?:others|him|her|them|some people)\b"
)
_TURNS = lazy_re(r"(?i)^\W{0,3}(?:but|however|unfortunately|sadly|still|now|then|alas|sometimes)\b")
_BACK = lazy_re(
    r"(?i)\b(?:came back|comes back|is back|again after (?:an?|some|several|\d{1,4}|two|a few)\b|only delays?"
    r"|delayed|for a while|hangs? again|fails? again"
    r"|(?:new|next|another|other|different) (?:error|problem|issue)|but (?:now|then|it still|still))\b"
)
_AGAIN_GOOD = lazy_re(r"(?i)\b(?:before|without|otherwise|used to|previously)\b")
_SOLVED = lazy_re(r"(?i)\b(?:solved|fixed|resolved|works? now|working now|is gone|went away|works again)\b")
_LEAD = lazy_re(
    r"(?i)^(?:\W{1,4}|(?:edit|update|solution|solved|resolved|so|and|but|then|finally|ok|okay|well|now|yes|in the end"
    r"|fortunately|luckily)\d?\b[\s,:.]{1,3})+"
)
_BEGINS = lazy_re(
    r"(?:If|When|Once|After|With|Without|By|As|The|A|An|My|Our|It|We|This|Everything|[A-Z][a-z]{2,14}ing)\b"
)
"""First words of a sentence that are no names."""
_SO = lazy_re(r"(?i), so\b")
_ASIDE = lazy_re(r" \([^()]{0,200}\)")
_CODE = lazy_re(r"`[^`\n]{1,200}`")
_PLACE = lazy_re(
    r"(?i)\b(?P<how>if|when|once|after|by) (?:in|at|inside) (?=\S{0,60}[./_])\S{1,80}(?: line \d{1,5})?,?"
    r" (?=I\b|we\b|you\b)"
)
"""Place of an edit before its subject: "if in train.py we change"."""
_CUT = lazy_re(r"[;,](?=\s)|\s[\u2013\u2014-]\s|\s\(")


def find_discovery(text: str) -> Discovery | None:
    """Return what the writer found out, or None."""
    rows = [*islice(_sentences(clip_lines(text)[:_MOST]), _SENTENCES)]
    cause = remedy = ""
    first, told = -1, set[int]()
    solved = _SOLVED.search(text) is not None
    for n, (_, sentence) in enumerate(rows):
        if sentence.endswith("?") or _OTHERS.search(sentence):
            continue
        named = _cause_in(sentence, solved=solved) or _after_solved(rows, n)
        cured = _remedy_in(sentence)
        if not (named or cured) or _is_taken_back(rows, n):
            continue
        told = {n} if named else {*told, n}
        cause, remedy, first = named or cause, cured or remedy, n if first < 0 or named else first
    if first < 0:
        return None
    words = " ".join(plain(rows[n][1]) for n in sorted(told))
    return Discovery(cause, "" if remedy == cause else remedy, words, text.count("\n", 0, rows[first][0]) + 1)


def _sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield (offset, sentence), without code; a full line continues in the next one."""
    text = _FENCE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    start = 0
    parts: list[tuple[int, str]] = []
    for found in _END.finditer(text):
        end = found.end()
        line = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
        following = text[end : end + 1]
        if found[0] == "\n" and len(line) >= _FULL and (following.isalnum() or following in {"`", "(", '"', "'"}):
            continue
        parts.append((start, text[start:end]))
        start = end
    parts.append((start, text[start:]))
    for at, part in parts:
        if part.strip():
            yield at + len(part) - len(part.lstrip()), " ".join(part.split())


def _cause_in(sentence: str, *, solved: bool) -> str:
    """Return the cause that a sentence states, or nothing."""
    for pattern in (*_CAUSES, _WAS) if solved else _CAUSES:
        found = pattern.search(sentence)
        if found is None:
            continue
        thing = _clip(found["thing"])
        begin = _begin(sentence, found.start(), (", ", "; ", " but ", ": "))
        before = sentence[begin : found.start("thing") if pattern is not _TO_BLAME else found.start()]
        if pattern is _TO_BLAME:
            before = found[0]
        if _HEDGE.search(before) or (_DENIED.search(before) and pattern is not _PAST):
            continue
        if _HEDGED_THING.search(thing[:_FULL]) or _NOT_IT.match(thing) or len(thing.split()) < _LEAST - 1:
            continue
        return thing
    return _reason_in(sentence)


def _reason_in(sentence: str) -> str:
    """Return the reason that a sentence gives for what goes wrong, or nothing."""
    found = _BECAUSE.search(sentence)
    if found is None or _HEDGE.search(found["what"]):
        return ""
    if outcome_of(found["what"], None) is not False and _TOO_FEW.search(found["what"]) is None:
        return ""
    thing = _clip(_ASIDE.sub("", found["thing"]))
    if _HEDGED_THING.search(thing[:_FULL]) or _REPEATS.search(thing) or len(thing.split()) < _LEAST:
        return ""
    if _NAMES_CODE.search(thing) is None or outcome_of(thing, None) is False:
        return ""  # what is a failure itself, or names no part of a program, is part of the complaint
    return thing


def _begin(sentence: str, end: int, breaks: Sequence[str]) -> int:
    """Return where the clause begins that holds what stands before `end`."""
    return max((at + len(c) for c in breaks if (at := sentence.rfind(c, 0, end)) >= 0), default=0)


def _after_solved(rows: Sequence[tuple[int, str]], n: int) -> str:
    """Return a sentence that follows one which only says that it is solved."""
    sentence = rows[n][1]
    told = n > 0 and _SOLVED_FIRST.match(rows[n - 1][1]) is not None
    if not told or _HEDGE.search(sentence) or len(sentence.split()) < _LEAST or _remedy_in(sentence):
        return ""
    return _clip(sentence)


def _remedy_in(sentence: str) -> str:
    """Return the clause that says what made it work, or nothing; the commas of code are no commas of the sentence."""
    codes = _CODE.findall(sentence)
    masked = _CODE.sub("code_", _PLACE.sub(r"\g<how> ", sentence)) if codes else _PLACE.sub(r"\g<how> ", sentence)
    found = _remedy_in_plain(masked)
    if not codes or "code_" not in found:
        return found
    before = masked[: masked.lower().find(found[:40].lower())].count("code_")
    for code in codes[before:]:
        found = found.replace("code_", code, 1)
    return found


def _remedy_in_plain(sentence: str) -> str:
    found = _DID_IT.search(sentence)
    if found is not None:
        begin = _begin(sentence, found.start(), ("; ", " but ", ": "))
        clause = sentence[begin : found.end()]
        thing = sentence[begin : found.start()].strip(" ,")
        if not _HEDGE.search(clause) and not _DENIED.search(clause) and thing.lower() not in _NOBODY:
            return _clip(clause)
    for pattern in (_BY, _WORKAROUND):
        found = pattern.search(sentence)
        if found is None:
            continue
        start = found.start()
        before = sentence[max(start - 60, 0) : start]
        if _HELD.search(before) and found[0][:5].lower() == "fixed":
            continue
        if not _HEDGE.search(before) and not _DENIED.search(before) and not _NOT_IT.match(found[0][-40:]):
            group = found.groupdict()
            return _clip(_SO.split(group.get("thing") or group.get("thing2") or "", maxsplit=1)[0])
    for pattern in (_CONDITION, _REVERSED):
        found = pattern.search(sentence.rstrip(".! "))
        if found is None or not _DEED.match(found["how"]) or _HEDGE.search(sentence):
            continue
        result = found["result"].split(", ", 1)[0]
        if outcome_of(found["thing"], None) is False:
            continue
        if outcome_of(result, None) is True or _RUNS.search(result):
            return _clip(sentence)
    return ""


_NOBODY = frozenset({"", "it", "this", "that", "i", "we", "which", "you", "have", "i have", "we have", "this has"})
"""Subjects that name no remedy."""


def _is_taken_back(rows: Sequence[tuple[int, str]], n: int) -> bool:
    """True if the sentence itself or one of the next two says that it fails all the same."""
    if _BACK.search(rows[n][1]):
        return True
    return any(
        _TURNS.match(later) is not None
        and (outcome_of(later, None) is False or _BACK.search(later) is not None)
        and not _AGAIN_GOOD.search(later)
        and not later.endswith("?")
        for _, later in rows[n + 1 : n + 3]
    )


def _clip(words: str) -> str:
    """Return a clause without what leads into it, cut between words if it is long."""
    words = _LEAD.sub("", plain(words)).strip(" .,;:!-")
    if _BEGINS.match(words):
        words = words[:1].lower() + words[1:]
    if len(words) <= _LONG:
        return words
    cuts = [m.start() for m in _CUT.finditer(words, _FULL, _LONG)]
    return words[: cuts[-1]] if cuts else f"{words[:_LONG].rsplit(' ', 1)[0]} ..."
