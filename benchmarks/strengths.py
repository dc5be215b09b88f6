"""Compares hand-set strengths with counts on rated cases, by leaving repositories out.

python benchmarks/strengths.py CASES.jsonl [CASES.jsonl ...]

Two measurements: for each indicator, the share of its cases that have each symptom, as declared by a word and as
counted; and for each word shown with a first cause, the share of causes with a fix that the raters accept.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.incident import Incident
from dtdebug_taxonomy.inference.collect import collect
from dtdebug_taxonomy.knowledge.loader import Knowledge, load
from dtdebug_taxonomy.knowledge.schema import STRENGTHS, Strength
from dtdebug_taxonomy.model.snapshot import Snapshot

_FOLDS, _PRIOR, _DRAWS = 10, 4.0, 1_000
"""Number of parts of the repositories; weight in cases of a hand-set strength; draws of a bootstrap."""


class Row(NamedTuple):
    """Indicator in one case, and one symptom that it supports."""

    repository: str
    evidence: str
    code: str
    word: Strength
    right: bool


def interval(right: float, n: float) -> tuple[float, float]:
    """Return Wilson's interval of 95 %."""
    if not n:
        return 0.0, 1.0
    z, p = 1.96, right / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(0.0, middle - half), min(1.0, middle + half)


def repository(case: dict[str, Any]) -> str:
    """Return `owner/name` of the case's thread."""
    return "/".join(case.get("url", "").split("/")[3:5]) or case["framework"]


def rows_of(knowledge: Knowledge, case: dict[str, Any]) -> Iterable[Row]:
    """Return what the words and the output of a case show, without circumstances and likenesses."""
    snapshot = Snapshot(situation=case["situation"], output=case["evidence"])
    for name in {f.evidence for f in collect(knowledge, Incident(snapshot)) if not (f.values or f.scores or f.told)}:
        for code, word in knowledge.evidence[name].symptoms.items():
            yield Row(repository(case), name, code, word, code == case["code"])


def told_by(seen: list[Row]) -> dict[str, Callable[[Row], float]]:
    """Return the hand-set strengths, those of each word, and those of each indicator shrunk towards its word."""
    words: dict[str, Counter[bool]] = defaultdict(Counter)
    each: dict[tuple[str, str], Counter[bool]] = defaultdict(Counter)
    for r in seen:
        words[r.word][r.right] += 1
        each[r.evidence, r.code][r.right] += 1

    def hand(r: Row) -> float:
        return STRENGTHS[r.word]

    def word(r: Row) -> float:
        n = words[r.word]
        return (n[True] + _PRIOR * hand(r)) / (n.total() + _PRIOR)

    def indicator(r: Row) -> float:
        n = each[r.evidence, r.code]
        return (n[True] + _PRIOR * word(r)) / (n.total() + _PRIOR)

    return {"set by hand": hand, "counted for each word": word, "counted for each indicator": indicator}


def compare(rows: list[Row]) -> list[str]:
    """Compare Brier scores, each repository predicted from the others, and their gain over hand-set ones."""
    names = sorted({r.repository for r in rows})
    random.Random(1).shuffle(names)
    losses: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for fold in range(_FOLDS):
        left = {*names[fold::_FOLDS]}
        for how, told in told_by([r for r in rows if r.repository not in left]).items():
            for r in rows:
                if r.repository in left:
                    losses[how][r.repository].append((told(r) - r.right) ** 2)
    lines, draw = [], random.Random(2)
    for how, by in losses.items():
        gains = []
        for _ in range(_DRAWS):
            drawn = draw.choices(names, k=len(names))
            hand = [x for name in drawn for x in losses["set by hand"].get(name, ())]
            other = [x for name in drawn for x in by.get(name, ())]
            gains.append(sum(hand) / len(hand) - sum(other) / len(other))
        gains.sort()
        whole = [x for row in by.values() for x in row]
        low, high = gains[_DRAWS // 40], gains[-_DRAWS // 40]
        lines.append(f"  {how:<28}{sum(whole) / len(whole):.4f}  less than by hand: {low:+.4f} to {high:+.4f}")
    return lines


def causes(knowledge: Knowledge, cases: list[dict[str, Any]]) -> list[str]:
    """Count, by the word shown with a first cause, those with a fix that the raters accept."""
    patterns = {p.name.lower() for p in knowledge.patterns.values()}
    count: dict[str, Counter[bool]] = defaultdict(Counter)
    for case in cases:
        d = diagnose(knowledge, Snapshot(situation=case["situation"], output=case["evidence"]))
        first = (*d.advice, *d.guesses)[:1]
        accepted = {f.removeprefix("other: ").strip().lower() for f in case["accept_fixes"]}
        for a in first if accepted & patterns else ():
            word = a.band if d.advice else "guess"
            count[word][a.pattern.lower() in accepted] += 1
        count["none shown" if not first else "shown"][True] += 1
    lines = []
    for word in ("likely", "possible", "unlikely", "guess"):
        n = count[word]
        low, high = interval(n[True], n.total())
        lines.append(f"  {word:<10}{n[True]:>4} of {n.total():<4} {low:.2f} to {high:.2f}")
    return [*lines, f"  shown in {count['shown'].total()}, none in {count['none shown'].total()}"]


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("cases", type=Path, nargs="+")
    options = parser.parse_args()
    lines = [line for path in options.cases for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    cases = [c for line in lines if "accept" in (c := json.loads(line))]
    knowledge = load()
    rows = [r for c in cases for r in rows_of(knowledge, c)]
    print(f"{len(cases)} cases of {len({repository(c) for c in cases})} repositories, {len(rows)} pairs")
    print("of the faults that show an indicator, the share that is the symptom:")
    for word, strength in STRENGTHS.items():
        seen = [r for r in rows if r.word == word]
        right = sum(r.right for r in seen)
        low, high = interval(right, len(seen))
        share = right / len(seen) if seen else math.nan
        print(f"  {word:<10}{strength:.2f}   counted {share:.2f} ({low:.2f} to {high:.2f}), n={len(seen)}")
    print("squared distance, each repository told by the others:", *compare(rows), sep="\n")
    print("first causes whose fix the raters accept:", *causes(knowledge, cases), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
