"""Outcome of a clause in users' words: it works, it fails, or neither is said."""

from __future__ import annotations

import re

from dtdebug_taxonomy.text.lazy_re import lazy_re

_DENIAL = (
    r"no longer|not|no|never|without|can ?not|nothing|none|neither|nobody|hardly|free of"
    r"|(?:do|does|did|could|would|should|is|are|was|were|has|have|had)n['\u2019]?t|(?:ca|wo)n['\u2019]t"
)
_GONE = (
    r"(?:is|are|was|were) gone|(?:disappear|vanish)(?:s|ed|es)?|(?:goes|went|go) away|(?:solve|fixe|resolve)[sd]|solve"
    r"|help(?:s|ed)"
)
"""Ends of a failure."""
_FAILS = (
    r"fail(?:s|ed|ing|ures?)?|broken|broke|breaks|hang(?:s|ing)?|hung|stuck|stall(?:s|ed|ing)?|fr[eo]ez(?:es?|en|ing)"
    r"|froze|deadlock(?:s|ed)?|crash(?:es|ed|ing)?|errors?|wrong|worse|slow(?:er|ly|down)?"
    r"|(?:runs? |ran )?out of (?:\w{2,8} )?memory|ooms?|nans?|incorrect(?:ly)?|die[sd]|diverg(?:es?|ed|ing|ence)"
    r"|abnormal(?:ly)?"
    r"|explod(?:es?|ed|ing)|spike[sd]?|leak(?:s|ed|ing)?|regress\w{0,5}|problems?|issues?|trouble|time[sd]? out"
    r"|time-?outs?|terminates?|aborts?|segfault(?:s|ed)?|killed|pending|garbage|bl(?:ows|ew) up|plateaus?"
    r"|corrupt(?:ed)?|sits|mess(?:ed)? up|forever|indefinitely|empty tensors?"
    r"|(?:all|exactly|always|stays?|remains?|constantly) (?:at )?(?:zeros?|0(?:\.0+)?)(?![.\d])"
    r"|(?:stays?|remains?|stayed|remained) (?:\w{2,8} )?(?:constant|flat|unchanged|the same|at \d)"
    r"|loss (?:is |goes |went |keeps |gets )?(?:also )?(?:going |rising |increas\w{0,3} )?"
    r"(?:up|increas\w{0,3}|rises|larger|bigger|higher|grows)"
    r"|(?:this|it|(?:error|problem|issue|hang)s?) (?:only )?(?:is (?:only )?(?:observed|seen)|happens|occurs|appears)"
)
_GOES = (
    r"work(?:s|ed|ing)?|(?<!as )well|fine|right(?=\W*$)|correct(?:ly)?|normal(?:ly)?|stable|smoothly|properly"
    r"|good(?=\W*$)|ok(?:ay)?(?=\W*$)|as (?:expected|usual)|perfectly|identical(?=\W*$)|like a charm|converge[sd]?"
    r"|succe(?:ed|ss)\w{0,4}|pass(?:es|ed)|complete[sd]?|finish(?:es|ed)?|proceeds?"
    r"|(?<!% )progress(?:es)?(?! bar)|improve[sd]?|fits(?! the)|learns?|learned|learning(?![ _-]rate)"
    r"|(?:goes|went|go|gets?|got) (?:past|through|further)|exits? cleanly"
    r"|keeps? (?:going|running|training)|(?:starts|comes) up"
    r"|(?:loss|perplexity|error) (?:\w{2,8} )?(?:decreases?|decreased|drop(?:s|ped)|falls|fell|goes down|went down"
    r"|go down|(?:is|was|keeps) (?:decreasing|going down|dropping|falling))"
)
_WEAK = (
    r"trains?|runs?|ran|starts?|begins?|continues?|returns?|connects?|joins?|updates?|responds?|ends|happens?"
    r"|decreases?|go(?:es)? down"
)
"""Verbs of progress if the clause ends in them, and of a failure if they are denied."""
_OCCURS = r"happen|occur|appear|exist|show(?: up)?|reproduce|come up"
"""Verbs of a failure; one that "does not happen" is absent."""
_WORD = lazy_re(
    rf"(?i)\b(?:(?P<no>(?<!-)(?:{_DENIAL})(?!-))|(?P<gone>{_GONE})|(?P<bad>{_FAILS})|(?P<good>{_GOES})|(?P<weak>{_WEAK})"
    rf"|(?P<occurs>{_OCCURS}))(?!\w)"
)
GOOD_WORDS, BAD_WORDS = rf"(?:{_GOES}|{_GONE}|{_WEAK})\b", rf"(?:{_FAILS})\b"
_REACH = 4
"""Words behind a denial up to which it denies."""
_ENDS = lazy_re(r"(?i)\W*(?:(?:again|now|too|there|as well)\W*)?$")
_AT_WILL = lazy_re(r"(?i)^\W*(?:and |but |then |so |now )*(?:i|we|you)\b")
"""A clause about what people do."""
_NOT_WITH = lazy_re(r"(?i)^\W*(?:but |and )?not (?=(?:with|when|on|in|under|for|if|using)\b)")


def outcome_of(clause: str, before: bool | None) -> bool | None:
    """Return whether a clause says that it works; None if it says neither. "Not with X" turns the clause before.

    A word of failing or of progress counts turned round if a denial stands before it; a failure that is gone, or does
    not happen, is none.
    """
    denial: re.Match[str] | None = None
    signs: list[bool] = []
    gone = False
    for found in _WORD.finditer(clause):
        kind = found.lastgroup
        if kind == "no":
            denial = found
            continue
        denied = denial is not None and clause.count(" ", denial.end(), found.start()) <= _REACH
        nobody = denial is not None and denial[0].lower() in {"nothing", "nobody", "none"}
        if kind == "gone":
            gone = gone or not denied
            signs += [False] if denied else []
        elif kind == "bad":
            signs.append(denied)
        elif kind == "good":
            signs.append(not denied)
        elif kind == "occurs" and denied and not nobody:
            gone = True
        elif denied and denial is not None and denial[0].lower() != "without":
            signs.append(False)
        elif kind == "weak" and _ENDS.match(clause, found.end()) and not _AT_WILL.match(clause):
            signs.append(True)
        if denied:
            denial = None
    if gone:
        return True
    if signs:
        return all(signs)
    if before is not None and _NOT_WITH.search(clause):
        return not before
    return None
