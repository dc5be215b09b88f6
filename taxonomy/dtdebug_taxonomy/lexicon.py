"""All patterns of the knowledge as two matchers: of what is printed, and of what users say."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from dtdebug_taxonomy.finding import Finding, Source, plain
from dtdebug_taxonomy.kept import kept
from dtdebug_taxonomy.knowledge import Knowledge, load
from dtdebug_taxonomy.matching import Matcher, Needs, PatternHit, needs


class Matchers:
    """Both matchers of one knowledge."""

    def __init__(self, knowledge: Knowledge) -> None:
        evidence = knowledge.evidence.values()
        values = [(f"{o.key}={v.value}", v) for o in knowledge.observations.values() for v in o.value]
        printed = [(e.id, p) for e in evidence for p in e.text]
        shown = [(k, p) for k, v in values for p in v.text]
        spoken = [(e.id, p) for e in evidence for p in e.says] + [(k, p) for k, v in values for p in v.says]

        def work_out() -> dict[str, Needs]:
            return {pattern: needs(pattern) for _, pattern in (*printed, *shown, *spoken)}

        known = kept("patterns", dict[str, Needs], work_out) if knowledge is load() else work_out()
        self.printed = Matcher([*printed, *shown], known=known)
        self.said = Matcher(printed, words=spoken, known=known)


@lru_cache(maxsize=4)
def matchers_of(knowledge: Knowledge) -> Matchers:
    """The matchers, made once."""
    return Matchers(knowledge)


def lexicon(knowledge: Knowledge) -> Matcher:
    """All messages that are known, as one matcher of printed text."""
    return matchers_of(knowledge).printed


def in_order(hits: Iterable[PatternHit]) -> list[PatternHit]:
    """By their place in the text."""
    return sorted(hits, key=lambda h: h.start)


def from_hit(hit: PatternHit, source: Source, rank: int | None) -> Finding:
    """What was seen there, as a finding."""
    return Finding(evidence=hit.key, source=source, line=hit.line, words=plain(hit.words), rank=rank)
