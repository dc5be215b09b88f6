"""All patterns of the knowledge as two matchers: for printed text, and for users' words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property, lru_cache
from typing import Literal

from dtdebug_taxonomy.knowledge.cache import load_cached
from dtdebug_taxonomy.knowledge.loader import Knowledge, load
from dtdebug_taxonomy.text.pattern_matcher import Index, Matcher, PatternHit, index_of


class Matchers:
    """The matchers of one knowledge, each built on first use."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge

    @cached_property
    def output_matcher(self) -> Matcher:
        """Matcher for printed text."""
        return self._matcher("printed", lambda: index_of((*self._messages(), *self._values("text"))))

    @cached_property
    def words_matcher(self) -> Matcher:
        """Matcher for users' text: their own words, or quoted output."""
        return self._matcher("said", lambda: index_of(self._messages(), words=(*self._words(), *self._values("says"))))

    def _matcher(self, name: str, make: Callable[[], Index]) -> Matcher:
        return matchers_from(self._knowledge, name, lambda: (make(),))[0]

    def _words(self) -> list[tuple[str, str]]:
        return [(e.id, p) for e in self._knowledge.evidence.values() for p in e.says]

    def _messages(self) -> list[tuple[str, str]]:
        return [(e.id, p) for e in self._knowledge.evidence.values() for p in e.text]

    def _values(self, kind: Literal["text", "says"]) -> list[tuple[str, str]]:
        observations = self._knowledge.observations.values()
        return [(f"{o.key}={v.value}", p) for o in observations for v in o.value for p in getattr(v, kind)]


def matchers_from(knowledge: Knowledge, name: str, make: Callable[[], tuple[Index, ...]]) -> tuple[Matcher, ...]:
    """Return matchers of indices, which are cached under that name if they are of our own knowledge."""
    indices = load_cached(f"matchers-{name}", tuple[Index, ...], make) if knowledge is load() else make()
    return tuple(Matcher(index) for index in indices)


@lru_cache(maxsize=4)
def matchers_of(knowledge: Knowledge) -> Matchers:
    """Return the matchers, built once."""
    return Matchers(knowledge)


def lexicon(knowledge: Knowledge) -> Matcher:
    """Return a matcher of printed text with all known messages."""
    return matchers_of(knowledge).output_matcher


def in_order(hits: Iterable[PatternHit]) -> list[PatternHit]:
    """Sort hits by their place in the text."""
    return sorted(hits, key=lambda h: h.start)
