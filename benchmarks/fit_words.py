"""Fits the reader of words (`text/word_reader.py`) and writes its weights, or measures it on folds.

python benchmarks/fit_words.py [--measure] [--output FILE]

It is fitted to what people wrote: the rated cases `tests/cases/collected-*.jsonl`, the descriptions among the samples,
and the `says` sentences of the knowledge; and, with less weight, to `tests/written.jsonl`, descriptions that were
written for it from the list of causes alone. `fresh.jsonl` and `paraphrases.jsonl` are never fitted. Needs numpy; the
same input gives the same file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from array import array
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.text.word_reader import WEIGHTS, hash_of, terms_of, weigh_terms

TESTS = Path(__file__).parent.parent / "tests"
CASES = TESTS / "cases"
FITTED = ("collected-classic.jsonl", "collected-modern.jsonl")
_RATED = 0.7
"""Share of the rated symptom; the rest is for all that raters accept."""
_LEAST = 2
"""Least number of texts with a feature that is kept."""
_PENALTY = 0.05
"""Weight of the squared norm (L2), from folds."""
_WRITTEN = 0.25
"""Weight of a text that was written for this, next to 1 of what somebody wrote who had the failure; from folds."""
_KEPT = 20_000
"""Number of features that are kept, those that weigh most; the folds lose nothing by it."""
_STEPS = 200
_FOLDS = 5
_KNOWN = ("says", "samples", "written")
"""Groups that are in each fold's fit."""
_WORDS_FORMAT = 2


class Text(NamedTuple):
    """A text and the symptoms that it shows."""

    group: str
    """Texts of one group are never in different folds: a thread."""
    text: str
    target: dict[str, float]
    weight: float = 1.0


def texts() -> list[Text]:
    """Return all texts to fit, in the order of their files."""
    found = []
    for name in FITTED:
        for line in (CASES / name).read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            accepted = {code: (1 - _RATED) / len(case["accept"]) for code in case["accept"]}
            accepted[case["code"]] = accepted.get(case["code"], 0.0) + _RATED
            found.append(Text(case["url"], case["situation"], accepted))
    codes = {symptom.id: code for code, symptom in load().symptoms.items()}
    files = sorted((TESTS / "samples").glob("*/*.said.txt"))
    rated = [(codes[file.parent.name], file.read_text(encoding="utf-8")) for file in files if file.parent.name in codes]
    found += [Text("samples", text, {code: 1.0}) for code, text in rated]
    for code, symptom in load().symptoms.items():
        found += [Text("says", sentence, {code: 1.0}) for sentence in symptom.says]
    written = [json.loads(line) for line in (TESTS / "written.jsonl").read_text(encoding="utf-8").splitlines()]
    return found + [Text("written", row["text"], {codes[row["symptom"]]: 1.0}, _WRITTEN) for row in written]


def digest(rows: Sequence[Text]) -> str:
    """Return the hash of what is fitted."""
    settings = [_WORDS_FORMAT, _LEAST, _PENALTY, _KEPT, _STEPS]
    return hashlib.sha256(json.dumps([settings, *rows], ensure_ascii=False).encode()).hexdigest()


class Features(NamedTuple):
    """Texts as vectors."""

    seen: tuple[dict[str, int], dict[str, int]]
    """Number of texts with each word or pair, and with each run of characters."""
    documents: int
    values: Any
    """Texts by features: TF-IDF, words and runs normalised apart."""


class Fit(NamedTuple):
    """A model in full precision, of the features that are kept."""

    documents: int
    terms: list[tuple[int, str, int]]
    """Kind (0 a word or pair, 1 a run of characters), term, and number of texts with it, of each feature."""
    weights: Any
    """Features by symptoms."""
    intercept: Any


def features_of(rows: Sequence[Text]) -> Features:
    """Return the features of texts, without those that only one of them has."""
    import numpy as np

    counted = [terms_of(row.text) for row in rows]
    totals = [Counter(term for counts in counted for term in counts[kind]) for kind in (0, 1)]
    words, runs = ({t: n for t, n in sorted(total.items()) if n >= _LEAST} for total in totals)
    places = {key: n for n, key in enumerate([*((0, t) for t in words), *((1, t) for t in runs)])}
    values = np.zeros((len(rows), len(places)), dtype=np.float32)
    for at, counts in enumerate(counted):
        for kind, seen in enumerate((words, runs)):
            for term, value in weigh_terms(counts[kind], seen, len(rows)).items():
                values[at, places[kind, term]] = value
    return Features((words, runs), len(rows), values)


def solve(gram: Any, rows: Sequence[Text], codes: Sequence[str]) -> tuple[Any, Any]:
    """Fit multinomial logistic regression with L2 by Nesterov's accelerated gradient on the texts' coefficients.

    Takes the inner products of the texts; returns coefficients (texts by symptoms) and intercepts.
    """
    import numpy as np

    target = np.array([[row.target.get(code, 0.0) for code in codes] for row in rows], dtype=np.float32)
    weight = np.array([[row.weight] for row in rows], dtype=np.float32)
    intercept = np.log(shares(rows, codes)).astype(np.float32)
    root = np.sqrt(weight)
    step = 1 / (0.5 * largest_eigenvalue(root * gram * root.T) + _PENALTY)
    now = ahead = np.zeros_like(target)
    momentum = 1.0
    for _ in range(_STEPS):
        after = ahead - step * (weight * (softmax(gram @ ahead + intercept) - target) + _PENALTY * ahead)
        following = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        ahead = after + (momentum - 1) / following * (after - now)
        now, momentum = after, following
    return now, intercept


def shares(rows: Sequence[Text], codes: Sequence[str]) -> Any:
    """Return the share of each symptom, none of which is 0."""
    import numpy as np

    target = np.array([[row.target.get(code, 0.0) * row.weight for code in codes] for row in rows])
    return target.sum(axis=0) / sum(row.weight for row in rows) + 1e-3


def largest_eigenvalue(matrix: Any) -> float:
    """Return a bound of the largest eigenvalue of a symmetric matrix without negative entries, by powers."""
    import numpy as np

    vector = np.ones(len(matrix), dtype=np.float32)
    for _ in range(30):
        vector = matrix @ (vector / np.linalg.norm(vector))
    return 1.02 * float(np.linalg.norm(vector))


def fit(rows: Sequence[Text], codes: Sequence[str]) -> Fit:
    """Fit a model and keep the features whose weights, in all texts that have them, are largest."""
    import numpy as np

    found = features_of(rows)
    coefficients, intercept = solve(found.values @ found.values.T, rows, codes)
    weights = found.values.T @ coefficients
    terms = [(kind, term, n) for kind, seen in enumerate(found.seen) for term, n in seen.items()]
    size = (weights**2).sum(axis=1) * np.array([n for _, _, n in terms])
    kept = sorted(np.argsort(-size, kind="stable")[:_KEPT])
    return Fit(found.documents, [terms[n] for n in kept], weights[kept], intercept)


def softmax(scores: Any) -> Any:
    """Return probabilities, row by row."""
    import numpy as np

    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def held_out(rows: Sequence[Text], codes: Sequence[str]) -> tuple[Any, list[Text]]:
    """Return the scores of each case by a model that was not told the symptoms of its fold, and the cases."""
    import numpy as np

    values = features_of(rows).values
    gram = values @ values.T
    cases = [n for n, row in enumerate(rows) if row.group not in _KNOWN]
    fold = {n: int(hashlib.sha256(rows[n].group.encode()).hexdigest(), 16) % _FOLDS for n in cases}
    scores = np.zeros((len(cases), len(codes)))
    for left_out in range(_FOLDS):
        mine = [n for n in cases if fold[n] == left_out]
        others = [n for n in range(len(rows)) if fold.get(n) != left_out]
        coefficients, intercept = solve(gram[np.ix_(others, others)], [rows[n] for n in others], codes)
        places = [at for at, n in enumerate(cases) if fold[n] == left_out]
        scores[places] = gram[np.ix_(mine, others)] @ coefficients + intercept
    return scores, [rows[n] for n in cases]


def temperature(scores: Any, cases: Sequence[Text], codes: Sequence[str]) -> float:
    """Return the factor on the scores under which the rated symptoms are likeliest."""
    import numpy as np

    target = np.array([[row.target.get(code, 0.0) for code in codes] for row in cases])
    tried = [n / 100 for n in range(40, 201, 5)]
    return max(tried, key=lambda t: float((target * np.log(softmax(t * scores))).sum()))


def packed(model: Fit, codes: Sequence[str], factor: float, share: Sequence[float], inputs: str) -> bytes:
    """Return the model as the file that is committed: a signed byte a weight."""
    import numpy as np

    weights = np.asarray(model.weights)
    scale = np.abs(weights).max(axis=0) / 127
    rounded = np.rint(weights / scale).astype(np.int8)
    rows = sorted(
        (hash_of(term, is_word=kind == 0), n, rounded[place].tobytes())
        for place, (kind, term, n) in enumerate(model.terms)
    )
    if len({number for number, _, _ in rows}) != len(rows):
        raise SystemExit("two features have one hash: choose another seed in `hash_of`")
    numbers, counts = array("I", [row[0] for row in rows]), array("H", [row[1] for row in rows])
    if sys.byteorder == "big":
        numbers.byteswap()
        counts.byteswap()
    head = {
        "codes": list(codes),
        "documents": model.documents,
        "features": len(rows),
        "share": [round(float(v), 4) for v in share],
        "intercept": [round(float(v), 4) for v in np.asarray(model.intercept)],
        "scale": [float(f"{v:.4g}") for v in scale],
        "temperature": factor,
        "inputs": inputs,
    }
    return b"\n".join((json.dumps(head).encode(), numbers.tobytes() + counts.tobytes() + b"".join(r[2] for r in rows)))


def main() -> int:
    """Fit and write, or measure."""
    import numpy as np

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--measure", action="store_true", help="print what folds give, and write nothing")
    parser.add_argument("--output", type=Path, default=WEIGHTS)
    options = parser.parse_args()
    rows, codes = texts(), list(load().symptoms)
    scores, cases = held_out(rows, codes)
    factor = temperature(scores, cases, codes)
    best = np.argsort(-np.asarray(scores), axis=1)
    first = np.mean([codes[order[0]] in row.target for order, row in zip(best, cases, strict=True)])
    three = np.mean([any(codes[n] in row.target for n in order[:3]) for order, row in zip(best, cases, strict=True)])
    print(f"{len(rows)} texts, {len(cases)} of them rated cases; temperature {factor}")
    print(f"words alone, {_FOLDS} folds of the cases: first {first:.3f}, among three {three:.3f}")
    if not options.measure:
        share = np.log(shares(rows, codes))
        options.output.write_bytes(packed(fit(rows, codes), codes, factor, share, digest(rows)))
        print(f"{options.output.name}: {options.output.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
