"""Measures how far two raters agree on threads.jsonl, and how a judge rated the answers; no rater saw the program.

python benchmarks/agreement.py

Each line is a public thread with the labels of both raters (several if several fit, the best first), the cause in
the words of one, and the judge's verdict on the answer to the thread's first post.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from accuracy import kappa

_LEVELS = ("symptom", "root", "fix")
_ANSWERS = ("useful", "partly", "open", "misleading")


def lines(rows: list[dict[str, Any]], name: str) -> list[str]:
    """Yield the figures of a set."""
    n = len(rows)
    pairs = {level: [(r[level][0][0], r[level][1][0]) for r in rows] for level in _LEVELS}
    agreed = [f"{k} {sum(a == b for a, b in p) / n:.3f} (kappa {kappa(p):.3f})" for k, p in pairs.items()]
    first = Counter(r["answer"]["first"] for r in rows)
    likely = Counter(r["answer"]["likely"] for r in rows)
    return [
        f"{name}: {n} threads; {', '.join(agreed)}",
        f"  first answer {', '.join(f'{k} {first[k]} ({first[k] / n:.0%})' for k in _ANSWERS)}",
        f"  called likely: {', '.join(f'{k} {likely[k]}' for k in ('right', 'partly', 'wrong'))}",
    ]


def main() -> None:
    """Print the figures of each set and of all."""
    rows = [json.loads(row) for row in Path(__file__).with_name("threads.jsonl").read_text("utf-8").splitlines()]
    for name in sorted({r["set"] for r in rows}):
        print(*lines([r for r in rows if r["set"] == name], name), sep="\n")
    print(*lines(rows, "all"), sep="\n")


if __name__ == "__main__":
    main()
