"""Fits the reader of words (`text/word_reader.py`) and writes its weights, or measures it on folds.

python benchmarks/fit_words.py [--measure] [--output FILE]

It is fitted to what people wrote: the rated cases `tests/cases/collected-*.jsonl`, the descriptions among the samples,
and the `says` sentences of the knowledge. `fresh.jsonl` and `paraphrases.jsonl` are never fitted. Needs numpy; the same
input gives the same file.
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
_STEPS = 400
_FOLDS = 5
_KNOWN = ("says", "samples")
"""Groups that are in each fold's fit."""
_WORDS_FORMAT = 1


class Text(NamedTuple):
    """A text and the symptoms that it shows."""

    group: str
    """Texts of one group are never in different folds: a thread."""
    text: str
    target: dict[str, float]


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
    return found


def digest(rows: Sequence[Text]) -> str:
    """Return the hash of what is fitted."""
    settings = [_WORDS_FORMAT, _LEAST, _PENALTY, _STEPS]
    return hashlib.sha256(json.dumps([settings, *rows], ensure_ascii=False).encode()).hexdigest()


class Fit(NamedTuple):
    """A model in full precision."""

    seen: tuple[dict[str, int], dict[str, int]]
    """Number of texts with each word or pair, and with each run of characters."""
    documents: int
    places: dict[tuple[int, str], int]
    weights: Any
    """Features by symptoms."""
    intercept: Any


def matrix(rows: Sequence[str], model: Fit) -> Any:
    """Return the TF-IDF of texts: words and runs are normalised apart."""
    import numpy as np

    found = np.zeros((len(rows), len(model.places)))
    for at, text in enumerate(rows):
        for kind, counts in enumerate(terms_of(text)):
            for term, value in weigh_terms(counts, model.seen[kind], model.documents).items():
                found[at, model.places[kind, term]] = value
    return found


def fit(rows: Sequence[Text], codes: Sequence[str]) -> Fit:
    """Fit multinomial logistic regression with L2 by Nesterov's accelerated gradient on the texts' coefficients."""
    import numpy as np

    counted = (Counter[str](), Counter[str]())
    for row in rows:
        for kind, counts in enumerate(terms_of(row.text)):
            counted[kind].update(counts.keys())
    words, runs = ({t: n for t, n in sorted(c.items()) if n >= _LEAST} for c in counted)
    seen = (words, runs)
    places = {key: n for n, key in enumerate((kind, term) for kind in (0, 1) for term in seen[kind])}
    empty = Fit(seen, len(rows), places, None, None)
    features = matrix([row.text for row in rows], empty)
    target = np.array([[row.target.get(code, 0.0) for code in codes] for row in rows])
    gram = features @ features.T
    intercept = np.log(target.mean(axis=0) + 1e-3)
    step = 1 / (0.5 * np.linalg.eigvalsh(gram)[-1] + _PENALTY)
    now = ahead = np.zeros_like(target)
    momentum = 1.0
    for _ in range(_STEPS):
        after = ahead - step * (softmax(gram @ ahead + intercept) - target + _PENALTY * ahead)
        following = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        ahead = after + (momentum - 1) / following * (after - now)
        now, momentum = after, following
    return empty._replace(weights=features.T @ now, intercept=intercept)


def softmax(scores: Any) -> Any:
    """Return probabilities, row by row."""
    import numpy as np

    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def held_out(rows: Sequence[Text], codes: Sequence[str]) -> tuple[Any, list[Text]]:
    """Return the scores of each case by a model that saw no text of its fold, and the cases."""
    import numpy as np

    cases = [row for row in rows if row.group not in _KNOWN]
    fold = [int(hashlib.sha256(row.group.encode()).hexdigest(), 16) % _FOLDS for row in cases]
    scores = np.zeros((len(cases), len(codes)))
    for left_out in range(_FOLDS):
        known = {row.group for row, n in zip(cases, fold, strict=True) if n == left_out}
        model = fit([row for row in rows if row.group not in known], codes)
        mine = [at for at, n in enumerate(fold) if n == left_out]
        scores[mine] = matrix([cases[at].text for at in mine], model) @ model.weights + model.intercept
    return scores, cases


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
        (hash_of(term, is_word=kind == 0), model.seen[kind][term], rounded[place].tobytes())
        for (kind, term), place in model.places.items()
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
        target = np.array([[row.target.get(code, 0.0) for code in codes] for row in rows])
        share = np.log(target.mean(axis=0) + 1e-3)
        options.output.write_bytes(packed(fit(rows, codes), codes, factor, share, digest(rows)))
        print(f"{options.output.name}: {options.output.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
