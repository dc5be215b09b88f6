"""Similarity of a text to the knowledge's own texts: weak evidence, never decisive.

Complement naive Bayes over TF-IDF weighted words and pairs of words (Rennie et al.,
"Tackling the poor assumptions of naive Bayes text classifiers", ICML 2003): a class is
described by what all the others do not contain, which suits few texts of uneven length.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import groupby, pairwise
from typing import NamedTuple

import msgspec

from dtdebug_taxonomy.knowledge.cache import load_cached
from dtdebug_taxonomy.knowledge.loader import Knowledge, load
from dtdebug_taxonomy.model.snapshot import Snapshot

_WORD = re.compile(r"[a-z][a-z_]+")
_LIMIT = 4_000
"""Maximum characters of the user's words, and of the end of the output, that are compared."""
_FEW = 3
"""Minimum number of terms; a shorter text resembles nothing."""
_DRAWER = 5
"""Number of first letters of a term that select its drawer."""
_SCALE = 5.0
"""Factor from similarity to log likelihood ratio; chosen on rated cases that the texts were not written from."""
_CEILING = 2.5
"""Largest log likelihood ratio that similarity alone can give to a symptom."""
_FIX_SCALE, _FIX_CEILING = 5.0, 1.5
"""The same for fix patterns."""


class Likeness(NamedTuple):
    """Log likelihood ratios from similarity."""

    symptoms: dict[str, float]
    """Symptom code -> ratio; empty if the text is too short."""
    patterns: dict[str, float]
    """Fix pattern id -> ratio."""
    words: str
    """The most decisive words for the most similar symptom."""


def likeness(knowledge: Knowledge, snapshot: Snapshot) -> Likeness:
    """Return the similarity of the output's end to the symptoms, and of the user's words as well to fix patterns.

    Symptoms are read from words by `word_reader`.
    """
    printed = _terms(snapshot.output[-_LIMIT:])
    terms = [*_terms(snapshot.situation[:_LIMIT]), *printed]
    if len(terms) < _FEW:
        return Likeness({}, {}, "")
    of_symptoms, of_patterns = models(knowledge)
    ratios: dict[str, float] = {}
    words = ""
    if len(printed) >= _FEW:
        symptoms = of_symptoms.of_text(printed)
        ratios = _ratios(symptoms.scores(), knowledge.prior, _SCALE, _CEILING)
        words = ", ".join(symptoms.telling(max(ratios, key=lambda code: ratios[code])))
    fixes = of_patterns.of_text(terms).scores()
    even = dict.fromkeys(fixes, 1 / len(fixes))
    return Likeness(ratios, _ratios(fixes, even, _FIX_SCALE, _FIX_CEILING), words)


def _ratios(scores: dict[str, float], prior: dict[str, float], scale: float, ceiling: float) -> dict[str, float]:
    mean = math.fsum(prior[name] * v for name, v in scores.items())
    return {name: max(-ceiling, min(ceiling, scale * (v - mean))) for name, v in scores.items()}


def _terms(text: str) -> list[str]:
    words = [_stem(w) for w in _WORD.findall(text.lower())]
    return words + [f"{a} {b}" for a, b in pairwise(words)]


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s", "ly"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word


class _Term(msgspec.Struct, frozen=True, array_like=True):
    """Term of the texts that a model is built from."""

    rarity: float
    mine: dict[str, float]
    """Class -> how much rarer the term is outside the class than overall; absent if it is not in the class."""


class _ComparedText(NamedTuple):
    """Terms of a text that a model knows."""

    vector: dict[str, float]
    """Term -> weight; normalised to length 1."""
    terms: dict[str, _Term]
    outside: dict[str, float]

    def scores(self) -> dict[str, float]:
        """Return class -> how much less likely the text is outside it."""
        total = math.fsum(self.vector.values())
        result = {name: total * v for name, v in self.outside.items()}
        for term, v in self.vector.items():
            for name, mine in self.terms[term].mine.items():
                result[name] += v * mine
        return result

    def telling(self, name: str) -> list[str]:
        """Return the most decisive terms for a class."""
        own = {t: v * self.terms[t].mine.get(name, 0.0) for t, v in self.vector.items()}
        return [t for t in sorted(own, key=lambda t: (-own[t], t))[:4] if own[t] > 0]


class _Model(msgspec.Struct, frozen=True, array_like=True):
    """Complement naive Bayes of (class, text) pairs."""

    outside: dict[str, float]
    drawers: dict[str, msgspec.Raw]
    """First letters -> the terms that begin with them, packed: a text has few of all terms, which would take 15 MB."""

    @classmethod
    def of(cls, texts: Iterable[tuple[str, str]], smoothing: float = 0.3) -> _Model:
        """Build the model of some texts."""
        rows = [(name, Counter(_terms(text))) for name, text in texts]
        seen = Counter(term for _, counts in rows for term in counts)
        rarity = {term: math.log((1 + len(rows)) / (1 + n)) + 1 for term, n in seen.items()}
        weight: dict[str, dict[str, float]] = {term: {} for term in seen}
        size = dict.fromkeys((name for name, _ in rows), 0.0)
        for name, counts in rows:
            for term, v in _weigh_terms(counts, rarity).items():
                weight[term][name] = weight[term].get(name, 0.0) + v
                size[name] += v
        everything = math.fsum(size.values()) + smoothing * len(seen)

        def pack_terms(terms: Iterable[str]) -> msgspec.Raw:
            drawer = {}
            for term in terms:
                by_class = weight.pop(term)
                total = smoothing + math.fsum(by_class.values())
                mine = {name: math.log(total / (total - v)) for name, v in by_class.items()}
                drawer[term] = _Term(rarity[term], mine)
            return msgspec.Raw(msgspec.msgpack.encode(drawer))

        groups = groupby(sorted(weight), key=lambda term: term[:_DRAWER])
        return cls(
            {name: math.log(everything - n) for name, n in size.items()},
            {letters: pack_terms(terms) for letters, terms in groups},
        )

    def of_text(self, terms: Sequence[str]) -> _ComparedText:
        """Return the comparison of a text with these terms."""
        wanted = set(terms)
        known: dict[str, _Term] = {}
        for letters in {term[:_DRAWER] for term in wanted} & self.drawers.keys():
            drawer = msgspec.msgpack.decode(self.drawers[letters], type=dict[str, _Term])
            known.update((term, drawer[term]) for term in wanted & drawer.keys())
        counts = Counter(t for t in terms if t in known)
        return _ComparedText(_weigh_terms(counts, {t: known[t].rarity for t in counts}), known, self.outside)


def _weigh_terms(counts: Counter[str], rarity: dict[str, float]) -> dict[str, float]:
    raw = {t: (1 + math.log(n)) * rarity[t] for t, n in counts.items()}
    length = math.sqrt(math.fsum(v * v for v in raw.values())) or 1.0
    return {t: v / length for t, v in raw.items()}


@lru_cache(maxsize=4)
def models(knowledge: Knowledge) -> tuple[_Model, _Model]:
    """Return the models of the symptoms' and of the fix patterns' texts."""
    if knowledge is load():
        return load_cached("likeness", tuple[_Model, _Model], lambda: _learnt(knowledge))
    return _learnt(knowledge)


def _learnt(knowledge: Knowledge) -> tuple[_Model, _Model]:
    symptoms = [(code, text) for code, s in knowledge.symptoms.items() for text in (*s.says, s.summary)]
    patterns = [(p.id, f"{p.title} {p.how}") for p in knowledge.patterns.values()]
    for code, s in knowledge.symptoms.items():
        symptoms += [(code, f"{c.title} {c.why}") for c in s.cause]
        patterns += [(c.pattern, f"{c.title} {c.why} {c.fix}") for c in s.cause]
    return _Model.of(symptoms), _Model.of(patterns)
