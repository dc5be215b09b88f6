"""Measure the form of answers: lines at 80 columns, words said twice, places and diffs of the user's own file.

Usage: python benchmarks/answers.py [LOG ...]   without logs: over all committed cases
"""

from __future__ import annotations

import statistics
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from golden_cases import all_cases  # noqa: E402

from dtdebug.cli.readings import snapshot_of  # noqa: E402
from dtdebug.presentation.terminal import code_at  # noqa: E402
from dtdebug.recorded.logs import Logs  # noqa: E402
from dtdebug_taxonomy.diagnosis.diagnose import diagnose  # noqa: E402
from dtdebug_taxonomy.knowledge.loader import load  # noqa: E402
from dtdebug_taxonomy.model.snapshot import Snapshot  # noqa: E402
from dtdebug_taxonomy.presentation.answer import build_answer  # noqa: E402
from dtdebug_taxonomy.presentation.answer_text import WIDTH, to_short_text  # noqa: E402
from dtdebug_taxonomy.presentation.text import to_text  # noqa: E402

_GRAM = 6
"""Words in a row that count as said twice."""


def main(logs: list[str]) -> None:
    """Print one table for the short and one for the full form."""
    forms: dict[str, list[str]] = {"short": [], "full": []}
    placed = coded = edits = causes = 0
    cases = list(_cases(logs))
    for snapshot in cases:
        found = diagnose(load(), snapshot)
        answer = build_answer(found, snapshot, code_at=code_at)
        forms["short"].append(to_short_text(answer, prefix="dtdebug: "))
        forms["full"].append(to_text(found))
        placed += bool(answer.spots)
        coded += any(s.code for s in answer.spots)
        edits += answer.fix is not None and bool(answer.fix.diff or answer.fix.line)
        causes += answer.fix is not None
    print(f"{len(cases)} cases; a cause in {causes}, a place in {placed}, a line of code in {coded}, ", end="")
    print(f"an edit or diff of the own file in {edits}")
    print("| form | lines at 80 columns: median, 90 %, most | words said twice |")
    print("| --- | --- | --- |")
    for name, texts in forms.items():
        lines = sorted(sum(len(textwrap.wrap(row, WIDTH) or [""]) for row in text.split("\n")) for text in texts)
        share = statistics.mean(_repeated(text) for text in texts)
        print(f"| {name} | {lines[len(lines) // 2]}, {lines[len(lines) * 9 // 10]}, {lines[-1]} | {share:.0%} |")


def _cases(logs: list[str]) -> Iterator[Snapshot]:
    if not logs:
        yield from (case.read() for case in all_cases())
    for log in logs:
        yield snapshot_of(Logs([log]), "")[0]


def _repeated(text: str) -> float:
    """Return the share of words in sequences that stand in the text before."""
    words = text.split()
    seen: set[tuple[str, ...]] = set()
    twice = 0
    for at in range(len(words) - _GRAM + 1):
        gram = tuple(words[at : at + _GRAM])
        twice += gram in seen
        seen.add(gram)
    return twice / max(1, len(words))


if __name__ == "__main__":
    main(sys.argv[1:])
