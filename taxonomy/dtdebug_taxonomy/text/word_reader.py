"""Reads a symptom from the user's words by a learned linear model: evidence of the least trust.

Multinomial logistic regression over TF-IDF weighted words and pairs of words, as they are and in their common form
(`word_forms`), and over runs of three to five characters within words, fitted by `benchmarks/fit_words.py`. Characters
make it indifferent to endings and compounds, and the weights are counts of what people wrote, not what an author
expected them to write.
"""

from __future__ import annotations

import json
import math
import re
import sys
from array import array
from bisect import bisect_left
from collections import Counter
from functools import lru_cache
from itertools import pairwise
from operator import mul
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from dtdebug_taxonomy.text.word_forms import common_words

WEIGHTS = Path(__file__).with_name("word_weights.bin")
"""The fitted model: a line of JSON, then hashes, document counts and weights of the features."""
_FIRST, _LAST = 2_000, 2_000
"""Characters read of the beginning and of the end of a longer text."""
_LONGEST = 24
"""Characters read of a word; what is longer is a path or a hash."""
_FEW = 4
"""Least number of words that the model knows; fewer say nothing."""
_CHARACTERS = (3, 4, 5)
_SHOWN = 4
"""Words shown as the reason."""
_SHORTEST = 3
"""Letters of a word that is shown."""
_WORD = re.compile(r"[a-z]+|\d+")
_COMMON = "~"
"""First letter of a word in its common form."""
_STRENGTH, _REACH = 1.8, 7.2
"""Factor on calibrated scores, and the largest difference of two log likelihood ratios. Chosen on rated cases that are
not fitted: at this weight no single pattern on words decides against the text as a whole."""


class Reading(NamedTuple):
    """Symptom as the words tell it."""

    ratios: dict[str, float]
    """Symptom code -> log likelihood ratio; empty if too few words are known."""
    words: str
    """Words of the user that weigh most for the likeliest symptom, in their order."""


class Model(NamedTuple):
    """Fitted weights."""

    codes: tuple[str, ...]
    documents: int
    """Number of texts that it was fitted to."""
    share: tuple[float, ...]
    """Log share of each symptom among those texts."""
    intercept: tuple[float, ...]
    scale: tuple[float, ...]
    """Weight of one step of each symptom's column."""
    temperature: float
    """Factor that calibrates the scores, from folds that were left out."""
    inputs: str
    """Hash of all that it was fitted to."""
    features: array[int]
    """Sorted hashes of the features."""
    counts: array[int]
    """Number of texts with each feature."""
    weights: memoryview
    """Signed bytes, one row a feature."""


def read_words(text: str, prior: dict[str, float]) -> Reading:
    """Return the log likelihood ratio of the words for each symptom with a prior."""
    model = load_model()
    terms = terms_of(text)
    found = _known_terms(model, terms)
    if sum(row.is_word and row.term[0][0] != _COMMON for row in found) < _FEW:
        return Reading({}, "")
    size = len(model.codes)
    table = memoryview(b"".join(model.weights[r.place * size : (r.place + 1) * size] for r in found)).cast("b")
    values = [r.value for r in found]
    logit = [math.fsum(map(mul, table[column::size], values)) * model.scale[column] for column in range(size)]
    rows = zip(model.codes, logit, model.intercept, model.share, strict=True)
    raw = {code: _STRENGTH * (model.temperature * (v + b) - share) for code, v, b, share in rows if code in prior}
    best = max(raw, key=lambda code: (raw[code], code))
    least = raw[best] - _REACH
    mean = math.fsum(prior[code] * max(v, least) for code, v in raw.items())
    ratios = {code: max(v, least) - mean for code, v in raw.items()}
    column = table[model.codes.index(best) :: size]
    return Reading(ratios, _telling(terms, {r.term: r.value * w for r, w in zip(found, column, strict=True)}))


def terms_of(text: str) -> tuple[Counter[str], Counter[str]]:
    """Return the words and pairs of words, and the runs of characters, each with its number; digits count as one."""
    words = _words(text)
    runs: Counter[str] = Counter()
    for word, times in Counter(words).items():
        padded = f"_{word[:_LONGEST]}_"
        for n in _CHARACTERS:
            for i in range(len(padded) - n + 1):
                runs[padded[i : i + n]] += times
    common = [f"{_COMMON}{word}" for word in common_words(text)]
    return Counter([*words, *(f"{a} {b}" for each in (words, common) for a, b in pairwise(each)), *common]), runs


def weigh_terms(counts: Counter[str], seen: dict[str, int], documents: int) -> dict[str, float]:
    """Return TF-IDF of the terms that `seen` counts, as a vector of length 1."""
    rarity = {t: math.log((1 + documents) / (1 + seen[t])) + 1 for t in counts if t in seen}
    raw = {t: (1 + math.log(counts[t])) * v for t, v in rarity.items()}
    length = math.sqrt(math.fsum(v * v for v in raw.values())) or 1.0
    return {t: v / length for t, v in raw.items()}


def hash_of(term: str, *, is_word: bool) -> int:
    """Return the hash by which the model knows a term."""
    return crc32(f"{term} {int(is_word)}".encode())


@lru_cache(maxsize=1)
def load_model() -> Model:
    """Return the model; its file is read on first use."""
    head, _, body = WEIGHTS.read_bytes().partition(b"\n")
    row = json.loads(head)
    view, n = memoryview(body), row["features"]
    features, counts = array("I", bytes(view[: 4 * n])), array("H", bytes(view[4 * n : 6 * n]))
    if sys.byteorder == "big":
        features.byteswap()
        counts.byteswap()
    return Model(
        codes=tuple(row["codes"]),
        documents=row["documents"],
        share=tuple(row["share"]),
        intercept=tuple(row["intercept"]),
        scale=tuple(row["scale"]),
        temperature=row["temperature"],
        inputs=row["inputs"],
        features=features,
        counts=counts,
        weights=view[6 * n :],
    )


class _Known(NamedTuple):
    term: tuple[str, bool]
    is_word: bool
    place: int
    value: float


def _known_terms(model: Model, terms: tuple[Counter[str], Counter[str]]) -> list[_Known]:
    """Return the terms that the model knows, with their TF-IDF."""
    found: list[_Known] = []
    for is_word, counts in zip((True, False), terms, strict=True):
        places = {}
        for term in counts:
            number = hash_of(term, is_word=is_word)
            place = bisect_left(model.features, number)
            if place < len(model.features) and model.features[place] == number:
                places[term] = place
        values = weigh_terms(counts, {t: model.counts[p] for t, p in places.items()}, model.documents)
        found += (_Known((t, is_word), is_word, places[t], v) for t, v in values.items())
    return found


def _telling(terms: tuple[Counter[str], Counter[str]], weight: dict[tuple[str, bool], float]) -> str:
    """Return the words that add most: alone, in pairs, and by their characters."""
    alone = [w for w in terms[0] if " " not in w and len(w) >= _SHORTEST and w[0] != _COMMON]
    times = terms[0]
    total = {w: weight.get((w, True), 0.0) for w in alone}
    for word in alone:
        padded = f"_{word[:_LONGEST]}_"
        runs = {padded[i : i + n] for n in _CHARACTERS for i in range(len(padded) - n + 1)}
        total[word] += math.fsum(weight.get((r, False), 0.0) * times[word] / terms[1][r] for r in sorted(runs))
    for pair in terms[0]:
        first, _, second = pair.partition(" ")
        for word in (first, second) if second else ():
            if word in total:
                total[word] += weight.get((pair, True), 0.0) / 2
    best = sorted(alone, key=lambda w: -total[w])[:_SHOWN]
    return ", ".join(w for w in alone if w in best and total[w] > 0)


def _words(text: str) -> list[str]:
    if len(text) > _FIRST + _LAST:
        text = f"{text[:_FIRST]}\n{text[-_LAST:]}"
    return ["0" if w.isdigit() else w for w in _WORD.findall(text.lower().replace("n't", " not"))]
