"""Recognises lines in which a program says that it stands, begins to wait, or does otherwise than usual."""

from __future__ import annotations

from dtdebug_taxonomy.text.lazy_re import lazy_re

_LONGEST = 400
_CALL = (
    r"(?:barrier|all[_ -]?(?:reduce|gather|to[_ -]?all)\w{0,12}|broadcast\w{0,12}|reduce[_ -]?scatter\w{0,12}"
    r"|collective)"
)
_STANDS = lazy_re(
    r"(?i)\b(?:no|without(?: any)?|not? making(?: any)?|made no) (?:\w{1,12} )?"
    r"(?:progress|heart-?beat|response|output|update|step)s?\b(?: \w{1,12}){0,3}? ?(?:for|in|since|within|after|from)\b"
    r"|\b(?:is|are|seems?|appears?|got|still|looks?|be) (?:to be )?(?:stuck|hung|hanging|stalled|blocked)\b"
    r"|\bhang detected\b|\bstall(?:ed)? (?:detected|for|since)\b"
    r"|\b(?:not|hasn't|has not|have not) (?:\w{1,12} )?(?:progressed|advanced|moved)\b"
    r"|\b(?:still |is |are |been )?(?:waiting|blocked) (?:\w{1,12} )?(?:for|in|at|on) "
    rf"|\b(?:wait|{_CALL}|heart-?beat|watchdog)\b.{{0,60}}\b(?:timed? ?out|timeout)\b"
    r"|\btimed out (?:waiting|after \d|in )"
)
_ENTERS = lazy_re(
    rf"(?i)\b(?:enter(?:s|ed|ing)?|before|reach(?:es|ed|ing)?|arrived? at|calling|start(?:s|ed|ing)?|begin(?:s|ning)?"
    rf"|wait(?:s|ing)?|syncing|synchroni[sz]ing)\b(?: \w{{1,12}}){{0,3}} ?(?:\w{{1,12}}\.){{0,3}}{_CALL}\b"
    r"|\b(?:synchroni[sz]ing|waiting)(?: \w{1,12}){0,3} (?:ranks|workers|peers|processes)\b"
)
_OVER = lazy_re(
    r"(?i)\b(?:no longer|not stuck|done|finished|passed|left|leaving|resumed|recovered|ended|complet\w{1,6}|waited"
    r"|returned|over|progress again|wandb|W&B|upload\w{0,3})\b"
)
"""Words of a wait that has come to its end, or of one for a service."""
_HAS_ENDED = lazy_re(r"(?i)\b(?:done|finished|stopped|no longer) \Z")
_DEVIATES = lazy_re(
    r"(?i)\b(?:skip(?:s|ped|ping)?|ignor(?:e|es|ed|ing)|drop(?:s|ped|ping)|discard(?:s|ed|ing)?|retr(?:y|ies|ied|ying)"
    r"|fall(?:s|ing)? ?back|fell back|bail(?:s|ing|ed)?|break(?:s|ing)?|early (?:stop|exit)\w{0,4}"
    r"|stop(?:s|ped|ping)? early|exhausted|no more|ran out|end of (?:data|epoch|shard|iterator)"
    r"|empty (?:batch|shard|data)|continu(?:e|es|ing) without|return(?:s|ed|ing) early|missing|corrupt\w{0,4}"
    r"|cannot|could not|can't|fail(?:s|ed|ing)?|unable)\b"
)


def states_standstill(body: str) -> bool:
    """True if a line says that there is no progress, or that its program waits."""
    head = body[:_LONGEST]
    return _STANDS.search(head) is not None and _OVER.search(head) is None


def enters_wait(body: str) -> bool:
    """True if a line says that its program enters a call in which ranks wait for each other."""
    head = body[:_LONGEST]
    found = _ENTERS.search(head)
    return found is not None and not (_OVER.search(head[found.start() :]) or _HAS_ENDED.search(head[: found.start()]))


def deviates(body: str) -> bool:
    """True if a line says that its program leaves out something, or does it otherwise than usual."""
    return _DEVIATES.search(body[:_LONGEST]) is not None
