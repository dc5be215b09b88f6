"""Outcome of a clause in users' words: it works, it fails, or neither is said."""

from __future__ import annotations

import re

from dtdebug_taxonomy.text.lazy_re import lazy_re

GOOD_WORDS = (
    r"(?:works?|worked|working|is fine|are fine|was fine|were fine|(?:fine|right|correct|good|okay|ok|normal"
    r"|stable)(?=\W*$)|(?:go(?:es)?|is|are|was) well"
    r"|(?:trains?|trained|runs?|ran|learns?|learned|goes|went|resum\w{1,4}|behaves?|starts?|started) "
    r"(?:\w{2,8} ){0,2}?(?:well|fine|normally|smoothly|properly|correctly|as expected|through"
    r"|without (?:\w{2,8} )?(?:error|problem|issue|hang)s?)"
    r"|(?:is|are|was|were|stays?|become|becomes|became|looks?) (?:\w{2,8} )?(?:right|correct|stable|normal|good"
    r"|okay|ok|identical|as expected)"
    r"|(?<!I )(?<!we )(?:runs?|trains?)(?= (?:with|on|under|in)\b)|correctly|perfectly|converges?|converged"
    r"|succeeds?|succeeded|success\w{0,4}|pass(?:es|ed)?|completes?|completed|finish(?:es|ed)"
    r"|no (?:problem|error|issue|hang|crash|leak|nan)s?|(?:problem|error|issue|hang|it|crash|leak) (?:is"
    r"|was) gone|disappears?|disappeared|goes away|went away"
    r"|(?:solve[sd]?|fixe[sd]|helps|helped|resolve[sd]?)|never (?:happen|hang|fail|crash)\w{0,3}"
    r"|(?:do|does|did)(?: not|n.t) (?:happen|hang|fail|crash|occur|appear|exist|show|have (?:this|the|any)))\b"
)
BAD_WORDS = (
    r"(?:fail(?:s|ed|ing|ure)?|broken|broke|breaks|hangs?|hung|hanging|stuck|stalls?|freezes?|deadlock\w{0,2}"
    r"|crash(?:es|ed|ing)?"
    r"|errors?|wrong|worse|slow(?:er|ly|down)?|no longer|never (?:works?|ends?|starts?|finish\w{0,2}|converge\w?)"
    r"|not work\w{0,3}|nothing works"
    r"|(?:do|does|did|will|wo|is|are|was)(?: not|n.?t) (?:work|run|train|learn|start|converge|right|correct"
    r"|stable|fine|reproduce|happen to work)"
    r"|out of (?:\w{2,8} )?memory|OOMs?|nan|incorrect|dies|diverge[sd]?|explodes?|spikes?|leaks?|regress\w{0,5}"
    r"|problems?|trouble"
    r"|times? out|timed out|timeouts?|terminates?|aborts?|segfaults?|killed|loss (?:is |goes |went "
    r"|keeps |gets )?(?:also )?(?:going |rising |increas\w{0,3} )?(?:up|increas\w{0,3}|rises|larger"
    r"|bigger|higher|grows)"
    r"|(?:this|it|(?:error|problem|issue|hang)s?) (?:only )?(?:is (?:only )?(?:observed|seen)|happens|occurs"
    r"|appears)|empty tensors?|stays pending|pending|garbage)\b"
)
_GOOD, _BAD = (lazy_re(rf"\b{words}", re.IGNORECASE) for words in (GOOD_WORDS, BAD_WORDS))
_DENIED = lazy_re(
    r"(?i)\b(?:no|without|not|n.t|never)(?: any| an| a| the)? (?:\w{2,8} )?(?:error|problem|issue|hang|crash"
    r"|fail\w{0,3}|trouble|nan)s?\b"
    r"|\bno (?:\w{2,8} )?(?:problem|issue)s?\b"
)
_DENIED_GOOD = lazy_re(
    r"(?i)\b(?:not|n.t|never|no longer|hardly|nothing|cannot|without)\b.{0,12}?\b(?:works?|working|worked|fine"
    r"|right|stable|correct\w{0,2}"
    r"|converges?|succeed\w{0,2}|success\w{0,4}|complet\w{1,3}|finish\w{0,3})\b"
)
_NOT_WITH = lazy_re(r"(?i)^\W*(?:but |and )?not (?=(?:with|when|on|in|under|for|if|using)\b)")


def outcome_of(clause: str, before: bool | None) -> bool | None:
    """Return whether a clause says that it works; None if it says neither. "Not with X" turns the clause before."""
    words = _DENIED.sub("works", clause)
    if _DENIED_GOOD.search(words) is not None:
        return False
    good, bad = _GOOD.search(words), _BAD.search(words)
    if good is not None and bad is None:
        return True
    if bad is not None:
        return False
    if before is not None and _NOT_WITH.search(clause):
        return not before
    return None
