"""Writes `src/known.json`: by what the front end tells, without a kernel, whether dtdebug knows an error.

Run it after a change of the knowledge; a test says when that was forgotten. Under the word stand the patterns that
can only match where it occurs, so that most of them need not be tried.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path

from dtdebug_taxonomy.knowledge import Knowledge, load
from dtdebug_taxonomy.matching import literals

FILE = Path(__file__).parent / "src" / "known.json"


def text(knowledge: Knowledge) -> str:
    """Classes and patterns that only distributed training raises or prints."""
    own = [e for e in knowledge.evidence.values() if e.role != "advice" and not e.generic]
    classes = sorted({name.rpartition(".")[2].rpartition(":")[2] for e in own for name in e.exception})
    patterns: defaultdict[str, set[str]] = defaultdict(set)
    for pattern in (p for e in own for p in e.text):
        for literal in literals(pattern):
            patterns[max(re.findall("[a-z]+", literal), key=len, default="")].add(pattern)
    rows = {word: sorted(patterns[word]) for word in sorted(patterns)}
    return json.dumps({"classes": classes, "patterns": rows}, indent=0, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(load()), encoding="utf-8")
    print(FILE)
