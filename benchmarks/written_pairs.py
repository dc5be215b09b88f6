"""Prints the table of `dtdebug/masking/noise.py`: frequencies of character pairs in names that people write.

`python benchmarks/written_pairs.py FOLDER...`: of each folder 1,500 Python files, chosen with a fixed seed.
"""

import math
import random
import re
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

SYMBOLS = "abcdefghijklmnopqrstuvwxyz0-"
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
FILES, BASE = 1_500, 3
NUMBER = re.compile(r"[\d_.+-]+|(?:0x)?[0-9a-fA-F]+")


def folded(text: str) -> str:
    """Return letters in lower case, every digit as 0, and anything else as a hyphen."""
    return re.sub(r"[^a-z0]", "-", re.sub(r"[0-9]", "0", text.lower()))


def main(folders: list[str]) -> None:
    """Count and print."""
    words: Counter[str] = Counter()
    for folder in folders:
        files = sorted(Path(folder).rglob("*.py"))
        random.Random(1).shuffle(files)
        for file in files[:FILES]:
            found = re.findall(r"[A-Za-z0-9_/+-]{6,60}", file.read_text(errors="replace"))
            words.update(word for word in found if not NUMBER.fullmatch(word))
    pairs: Counter[str] = Counter()
    for word, times in words.items():
        text = "-" + folded(word)
        for a, b in pairwise(text):
            pairs[a + b] += 1 + math.log(times)  # type: ignore[assignment]
    for a in SYMBOLS:
        total = sum(pairs[a + b] for b in SYMBOLS) + len(SYMBOLS) * BASE
        print("".join(DIGITS[min(35, round(-2 * math.log2((pairs[a + b] + BASE) / total)))] for b in SYMBOLS))


if __name__ == "__main__":
    main(sys.argv[1:])
