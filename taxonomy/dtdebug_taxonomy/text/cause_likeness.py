"""Likeness of a user's words to what is known of each cause: evidence of the least trust, for words alone.

Cosine of TF-IDF weighted words in their common form (`word_forms`), so that it is indifferent to how a fact is worded,
against each cause's title, reason, fix and the meanings of its indicators. It orders the causes that something else
supports, and withholds one that a single pattern suggests in a text that is unlike it; alone it shows none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from dtdebug_taxonomy.knowledge.cache import load_cached
from dtdebug_taxonomy.knowledge.loader import Knowledge, load
from dtdebug_taxonomy.knowledge.schema import Cause
from dtdebug_taxonomy.text.word_forms import common_words

_TITLE, _WHY, _FIX, _MEANS = 3.0, 1.0, 0.7, 0.5
"""Weights of the parts of what is known of a cause."""
_FEW = 4
"""Least number of words that are known; fewer resemble nothing."""
_SCALE, _USUAL, _CEILING = 12.0, 0.06, 5.0
"""Factor from likeness to log likelihood ratio, the likeness of any text, and the largest ratio: chosen on failures
that were told in three ways each, and checked on others."""
_RARE = 0.3
"""Added to each term's rarity, so that a common one still counts."""


class _Terms(msgspec.Struct, frozen=True, array_like=True):
    """Terms of what is known of the causes."""

    rarity: dict[str, float]
    weights: dict[str, dict[str, float]]
    """Term -> cause -> weight in a vector of length 1."""


def likeness_to_causes(knowledge: Knowledge, words: str) -> dict[str, float]:
    """Return cause id -> log likelihood ratio, of all causes; empty if too few words are known."""
    terms = terms_of_causes(knowledge)
    found = {t: terms.rarity[t] for t in {*common_words(words)} if t in terms.rarity}
    if len(found) < _FEW:
        return {}
    length = math.sqrt(math.fsum(v * v for v in found.values()))
    alike: dict[str, float] = dict.fromkeys(knowledge.causes, 0.0)
    for term in sorted(found):
        for cause, weight in terms.weights[term].items():
            alike[cause] += found[term] * weight / length
    return {cause: min(_SCALE * (v - _USUAL), _CEILING) for cause, v in alike.items()}


@lru_cache(maxsize=4)
def terms_of_causes(knowledge: Knowledge) -> _Terms:
    """Return the terms of what is known of the causes."""
    if knowledge is load():
        return load_cached("cause_likeness", _Terms, lambda: _learn_terms(knowledge))
    return _learn_terms(knowledge)


def _learn_terms(knowledge: Knowledge) -> _Terms:
    counts = {name: _count_terms(_parts_of(knowledge, cause)) for name, (_, cause) in knowledge.causes.items()}
    seen = Counter(term for row in counts.values() for term in row)
    rarity = {term: math.log((len(counts) + 1) / (n + 1)) + _RARE for term, n in seen.items()}
    weights: dict[str, dict[str, float]] = {term: {} for term in seen}
    for name, row in counts.items():
        vector = {term: (1 + math.log(n + 1)) * rarity[term] for term, n in row.items()}
        length = math.sqrt(math.fsum(v * v for v in vector.values())) or 1.0
        for term, v in vector.items():
            weights[term][name] = v / length
    return _Terms(rarity, weights)


def _parts_of(knowledge: Knowledge, cause: Cause) -> Iterable[tuple[float, str]]:
    """Return (weight, text) of what is known of a cause; indicators that name it count twice."""
    naming = [e.means for e in knowledge.evidence.values() if cause.id in e.names]
    listed = [knowledge.evidence[name].means for name in cause.evidence if name in knowledge.evidence]
    return ((_TITLE, cause.title), (_WHY, cause.why), (_FIX, cause.fix), (_MEANS, " ".join((*naming, *listed))))


def _count_terms(parts: Iterable[tuple[float, str]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for weight, text in parts:
        for term, n in Counter(common_words(text)).items():
            total[term] = total.get(term, 0.0) + weight * (1 + math.log(n))
    return total
