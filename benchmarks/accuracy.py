"""Measures how often the answer is right: runs a file of rated cases and prints the figures.

python benchmarks/accuracy.py CASES.jsonl [--questions 5] [--words] [--failures]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from dtdebug_taxonomy.diagnosis.batch import run_case
from dtdebug_taxonomy.knowledge.loader import load


def kappa(pairs: list[tuple[str, str]]) -> float:
    """Return Cohen's kappa of (rated, answered) codes."""
    n = len(pairs)
    agreed = sum(a == b for a, b in pairs) / n
    left, right = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    chance = sum(left[c] * right[c] for c in left) / n**2
    return (agreed - chance) / (1 - chance) if chance < 1 else 1.0


def spelling(name: str) -> str:
    """Return a fix as it is compared: `other: x` and `x` are the same."""
    return name.removeprefix("other: ").strip().lower()


def hits(ranked: list[str], accepted: set[str], among: int) -> bool:
    """True if one of the accepted names is among the first few."""
    return bool(accepted & set(ranked[:among]))


def figures(cases: list[dict[str, Any]], results: list[dict[str, Any]]) -> dict[str, float]:
    """Return first / among three for symptoms and fixes, kappa, and mean questions."""
    n = len(cases)
    symptom = [[s["code"] for s in r["symptoms"]] for r in results]
    fix = [[spelling(f["pattern"]) for f in r["fix_patterns"]] for r in results]
    good = [set(c["accept"]) for c in cases]
    accepted = [{spelling(f) for f in c.get("accept_fixes", ())} for c in cases]
    row = {
        "first": sum(hits(s, g, 1) for s, g in zip(symptom, good, strict=True)) / n,
        "among_three": sum(hits(s, g, 3) for s, g in zip(symptom, good, strict=True)) / n,
        "kappa": kappa([(c["code"], s[0]) for c, s in zip(cases, symptom, strict=True)]),
        "fix_first": sum(hits(f, g, 1) for f, g in zip(fix, accepted, strict=True)) / n,
        "fix_among_three": sum(hits(f, g, 3) for f, g in zip(fix, accepted, strict=True)) / n,
        "questions": sum(len(r["questions"]) for r in results) / n,
        "milliseconds": sum(r["milliseconds"] for r in results) / n,
    }
    return row if any(accepted) else {name: value for name, value in row.items() if not name.startswith("fix")}


def table(cases: list[dict[str, Any]], results: list[dict[str, Any]], by: str) -> list[str]:
    """Return right first / number of cases, by symptom or framework."""
    right: dict[str, list[bool]] = defaultdict(list)
    for c, r in zip(cases, results, strict=True):
        right[c[by]].append(hits([s["code"] for s in r["symptoms"]], set(c["accept"]), 1))
    return [f"  {name:<22}{sum(row):>4} of {len(row)}" for name, row in sorted(right.items())]


def confusions(cases: list[dict[str, Any]], results: list[dict[str, Any]]) -> list[str]:
    """Return rated -> answered pairs that were wrong, the most frequent first."""
    wrong = Counter(
        (c["code"], r["symptoms"][0]["code"])
        for c, r in zip(cases, results, strict=True)
        if r["symptoms"][0]["code"] not in c["accept"]
    )
    return [f"  {a} taken for {b}: {n}" for (a, b), n in wrong.most_common(15)]


def rewordings(cases: list[dict[str, Any]]) -> list[str]:
    """Return how far the first symptom hangs on the words: each case is told in several ways, with the same facts."""
    knowledge = load()
    right = []
    for c in cases:
        told = (run_case(knowledge, {"id": c["id"], "situation": text}) for text in c["rewordings"])
        right.append([hits([s["code"] for s in r["symptoms"]], set(c["accept"]), 1) for r in told])
    texts = sum(map(len, right))
    odd = sum(min(sum(row), len(row) - sum(row)) for row in right)
    changing = sum(len({*row}) > 1 for row in right)
    return [
        f"right symptom first in {sum(map(sum, right))} of {texts} rewordings",
        f"unlike most rewordings of the case: {odd} of {texts} ({odd / texts:.1%})",
        f"cases that change between right and wrong: {changing} of {len(right)} ({changing / len(right):.1%})",
    ]


def main() -> int:
    """Print the figures for text only and after questions."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("cases", type=Path)
    parser.add_argument("--questions", type=int, default=5)
    parser.add_argument("--failures", action="store_true", help="list the cases that went wrong")
    parser.add_argument("--words", action="store_true", help="leave out what was printed")
    options = parser.parse_args()
    cases = [json.loads(line) for line in options.cases.read_text(encoding="utf-8").splitlines() if line.strip()]
    if options.words:
        cases = [{**case, "evidence": ""} for case in cases]
    knowledge = load()
    print(f"{options.cases.name}: {len(cases)} cases")
    if all("rewordings" in c for c in cases):
        print(*rewordings(cases), sep="\n")
        return 0
    for most in (0, options.questions):
        results = [run_case(knowledge, c, most) for c in cases]
        row = figures(cases, results)
        print(
            f"{'text only' if not most else f'at most {most} questions'}: "
            + ", ".join(f"{k} {v:.3f}" for k, v in row.items())
        )
        if options.failures:
            for c, r in zip(cases, results, strict=True):
                if r["symptoms"][0]["code"] not in c["accept"]:
                    top = " ".join(f"{s['code']}:{s['probability']:.2f}" for s in r["symptoms"][:3])
                    asked = " ".join(f"{q['key']}={q['answer']}" for q in r["questions"])
                    print(f"  {c['id']}: rated {c['code']}, answered {top}; asked {asked}")
    print("by symptom (after questions)", *table(cases, results, "code"), sep="\n")
    if all("framework" in c for c in cases):
        print("by framework (after questions)", *table(cases, results, "framework"), sep="\n")
    print("confusions (after questions)", *confusions(cases, results), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
