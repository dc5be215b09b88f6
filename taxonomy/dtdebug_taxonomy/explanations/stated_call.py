"""A call in which all ranks wait, if the user says that one rank alone makes it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, Reason, explanation_for
from dtdebug_taxonomy.inference.finding import POSSIBLE
from dtdebug_taxonomy.text.pattern_matcher import plain

_CALL = re.compile(
    r"\b(?:[A-Za-z_]\w{0,40}\.){0,4}(?P<name>save_state|load_state|get_state_dict|save_checkpoint|load_checkpoint"
    r"|gather_for_metrics|wait_for_everyone|all_?reduce|all_?gather(?:_object)?|reduce_scatter|broadcast_object_list|barrier"
    r"|full_optim_state_dict)\b(?P<called>\(\w{0,40}\)?|`)?"
)
"""Call that every rank must make, by what libraries name it; `barrier` alone is also a word."""
_ONE = re.compile(
    r"(?ix)\bonly\b[^.;]{0,60}\b(?:(?:main|master|chief|first)[ _-](?:process|rank|gpu|worker)"
    r"|rank[ _-]?(?:0|zero)\b|one\ (?:process|rank)\b)"
    r"|\b(?:on|by|in|under|inside|within|behind)\ (?:the\ )?(?:main[ _]process|rank[ _-]?(?:0|zero))\ (?:only|alone)\b"
    r"|\bis_(?:local_)?main_process\b|\bis_global_zero\b|\brank_zero_only\b|\b(?:global_|local_)?rank\ ?==\ ?0\b"
)
"""Statement, or the name of a condition, that admits one rank."""
_DENIED = re.compile(r"(?i)\b(?:not only|instead of|rather than|moved? .{0,30}out|without|removed?|outside)\b")
_SENTENCE = re.compile(r"(?<=[.!?;])\s|\n")
_MOST = 200
"""Maximum number of sentences that are read."""
_PROBABILITY = 0.5
_HANG = "D.2.1"
_CAUSE = "collective-under-rank-guard"


class Stated(NamedTuple):
    """Call that one rank makes, as the user says."""

    name: str
    words: str


def explain(context: Context) -> Iterator[Explanation]:
    """Yield the call, if the ranks may be waiting for one another."""
    if context.ranking.symptoms.get(_HANG, 0.0) < POSSIBLE:
        return
    found = find_call(context.incident.prose.text)
    if found is None:
        return
    _, cause = context.knowledge.causes[_CAUSE]
    shown = Reason(
        evidence="stated-call-of-one-rank",
        means=f"The user says that one rank alone calls {found.name}().",
        source="said",
        weight=2.0,
        words=plain(found.words)[:200],
    )
    pattern = context.knowledge.patterns[cause.pattern].name
    title = f"One rank alone calls {found.name}(), and waits there for the others"
    yield explanation_for(_HANG, title, cause.why, cause.fix, _PROBABILITY, shown, pattern=pattern)


def find_call(text: str) -> Stated | None:
    """Return the first call of all ranks of which a sentence says that one rank makes it."""
    for sentence in _SENTENCE.split(text)[:_MOST]:
        if _ONE.search(sentence) is None or _DENIED.search(sentence):
            continue
        for call in _CALL.finditer(sentence):
            if call["called"] or "_" in call["name"] or "." in call[0]:
                return Stated(call["name"], sentence.strip())
    return None
