"""How alike a user's words are to the knowledge's own texts: a weak evidence, never the judge."""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from dtdebug_taxonomy.knowledge import Knowledge
from dtdebug_taxonomy.model import Symptom
from dtdebug_taxonomy.snapshot import Snapshot

_WORD = re.compile(r"[a-z][a-z_]+|\d+")
_LIMIT = 4_000
"""Characters of a text that are compared."""
_CEILING = 2.5
"""Largest log likelihood ratio that likeness alone can give."""
_SCALE = 12.0


class Likeness(NamedTuple):
    """Log likelihood ratio for each symptom code, and the words that decided most."""

    scores: dict[str, float]
    words: str


def scores(knowledge: Knowledge, snapshot: Snapshot) -> Likeness:
    """Likeness of the user's words (and a little of the output) to each symptom's sentences."""
    text = snapshot.situation[:_LIMIT]
    if len(text.split()) < 3:
        return Likeness({}, "")
    model = _model(knowledge)
    vector = model.vector(_terms(text))
    if not vector:
        return Likeness({}, "")
    raw = {code: model.likeness(vector, code) for code in knowledge.symptoms}
    mean = math.fsum(knowledge.prior[code] * v for code, v in raw.items())
    result = {code: max(-_CEILING, min(_CEILING, _SCALE * (v - mean))) for code, v in raw.items()}
    best = max(result, key=lambda code: result[code])
    return Likeness(result, ", ".join(model.telling(vector, best)))


def _terms(text: str) -> list[str]:
    words = [_stem(w) for w in _WORD.findall(text.lower())]
    return words + [f"{a} {b}" for a, b in pairwise(words)]


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s", "ly"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word


class _Model:
    """TF-IDF vectors of each sentence of `says`; likeness = mean of the nearest few."""

    def __init__(self, symptoms: dict[str, Symptom]) -> None:
        texts = [(code, _terms(t)) for code, s in symptoms.items() for t in (*s.says, s.summary) if t]
        seen = Counter(term for _, terms in texts for term in set(terms))
        self.weight = {term: math.log(len(texts) / n) for term, n in seen.items()}
        self.rows: dict[str, list[dict[str, float]]] = {code: [] for code in symptoms}
        for code, terms in texts:
            self.rows[code].append(self.vector(terms))

    def vector(self, terms: list[str]) -> dict[str, float]:
        raw = {t: (1 + math.log(n)) * self.weight[t] for t, n in Counter(terms).items() if t in self.weight}
        norm = math.sqrt(math.fsum(v * v for v in raw.values()))
        return {t: v / norm for t, v in raw.items()} if norm else {}

    def likeness(self, vector: dict[str, float], code: str) -> float:
        near = sorted((_dot(vector, row) for row in self.rows[code]), reverse=True)[:3]
        return math.fsum(near) / 3

    def telling(self, vector: dict[str, float], code: str) -> list[str]:
        total: Counter[str] = Counter()
        for row in self.rows[code]:
            total.update({t: v * row[t] for t, v in vector.items() if t in row})
        return [t for t, _ in total.most_common(4)]


def _dot(a: dict[str, float], b: dict[str, float]) -> float:
    if len(b) < len(a):
        a, b = b, a
    return math.fsum(v * b[t] for t, v in a.items() if t in b)


@lru_cache(maxsize=4)
def _model(knowledge: Knowledge) -> _Model:
    return _Model(knowledge.symptoms)
