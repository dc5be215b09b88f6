"""Lines in which a process says that it left a batch, a step or a part of one out."""

from __future__ import annotations

from dtdebug_taxonomy.text.lazy_re import lazy_re

_WHAT = (
    r"(?:mini-?|micro-?)?batch(?:es)?|steps?|samples?|updates?|iterations?|backward|examples?|sequences?|images?"
    r"|documents?|records?|Schritte?|Beispiele?"
)
_LEFT = r"dropp(?:ed|ing)|skipp(?:ed|ing)|discard(?:ed|ing)|ignor(?:ed|ing)|left out|leaving out|übersprungen|verworfen"
_LEFT_OUT = lazy_re(rf"(?i)\b(?:(?:{_LEFT})\b.{{0,40}}\b(?:{_WHAT})|(?:{_WHAT})\b.{{0,40}}\b(?:{_LEFT}))\b|跳过|丢弃")
_NONE = lazy_re(
    r"(?i)\b(?:no|not|never|without)\b|(?<![\d.])0(?![\d.])"
    r"|\b(?:skipped|dropped|number)(?: \w{1,20}){0,3}[ ]{0,8}[:=]|\b(?:first|last|resum\w{1,5}|already)\b"
)
"""Words of a line that says that nothing was left out, that counts it, or that finds its place again after a resume."""
_LONGEST = 400


def says_left_out(body: str) -> bool:
    """True if a line, without its prefixes, says so."""
    head = body[:_LONGEST]
    return _LEFT_OUT.search(head) is not None and _NONE.search(head) is None
