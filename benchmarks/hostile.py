"""Measures how time grows with hostile input: seconds for n and for 4n characters of each construction.

    python benchmarks/hostile.py [CHARACTERS]

Cleaning, matching, wording and a whole diagnosis have to stay linear: a ratio far above 4 is a defect.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial

from dtdebug.capture import from_traceback
from dtdebug.privacy.sanitize import clean
from dtdebug.recorded.log_files import excerpt
from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.text.pattern_matcher import literals

GROWTH = 4
LINEAR = 2 * GROWTH
"""Ratio from which a row is marked; rows below `_SHORT` seconds are not judged."""
_SHORT = 0.05


def repeated(piece: str, size: int) -> str:
    """Repeat a piece up to this number of characters."""
    return (piece * (size // len(piece) + 1))[:size]


def constructions() -> Iterator[tuple[str, Callable[[int], str]]]:
    """Return name and maker of each hostile text."""
    knowledge = load()
    patterns = [p for e in knowledge.evidence.values() for p in (*e.text, *e.says)]
    needed = list(dict.fromkeys(literal for p in patterns for literal in literals(p)))
    pieces = {
        "Traceback": "Traceback (most recent call last):\n",
        "frames": '  File "/a.py", line 1, in f\n',
        "key=": "key=",
        "token=": "token=",
        "token names": "token_",
        "CSI without end": "\x1b[",
        "OSC without end": "\x1b]0;",
        "half surrogates": "\ud800",
        "carriage returns": "50%|##|\r",
        "private key begins": "-----BEGIN PRIVATE KEY-----",
        "web token begins": "-eyJ",
        "addresses": "://a:",
        "bearer and spaces": "bearer" + " " * 5_000,
        "spaces": " ",
        "spaces and line ends": " \n",
        "dots": ".",
        "dashes": " -",
        "words without a clause": "hang or crash or not ",
        "clauses": "hangs. ",
        "one letter": "x",
        "one letter, lines of 1,999": "x" * 1_999 + "\n",
        "empty lines": "\n",
        "many ranks": "".join(f"[rank{n}]: RuntimeError: NCCL error {n}\n" for n in range(20_000)),
        "unlike errors": "".join(f"{n:x} error {n * 7919:b}\n" for n in range(20_000)),
        "all literals, one line": " ".join(needed).replace("\n", " "),
        "all literals, own lines": "\n".join(needed),
        "each literal over a line": "\n".join(repeated(literal, 1_990) for literal in needed if literal),
        "broadcast, repeated": repeated("broadcast", 1_990) + "\n",
    }
    for name, piece in pieces.items():
        yield name, partial(repeated, piece)


def seconds(action: Callable[[str], object], text: str) -> float:
    """Return the better time of two runs."""
    times = []
    for _ in range(2):
        begin = time.perf_counter()
        action(text)
        times.append(time.perf_counter() - begin)
    return min(times)


def read(text: str) -> object:
    """Return the excerpt of a log."""
    return excerpt.read_excerpt(io.BytesIO(text.encode("utf-8", "replace")), "log")


def main() -> int:
    """Print seconds and ratios; the exit status shows whether a row is marked."""
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    knowledge = load()
    actions: dict[str, Callable[[str], object]] = {
        "read": read,
        "clean": clean,
        "printed": lambda text: diagnose(knowledge, Snapshot(output=text)),
        "said": lambda text: diagnose(knowledge, Snapshot(situation=text)),
        "traceback": lambda text: from_traceback(text, None),
    }
    print(f"seconds for {size:,} and {GROWTH * size:,} characters\n{'':<28}" + "".join(f"{a:>21}" for a in actions))
    marked = 0
    for name, make in constructions():
        cells = []
        for action in actions.values():
            short, long = seconds(action, make(size)), seconds(action, make(GROWTH * size))
            bad = long > _SHORT and long > LINEAR * short
            marked += bad
            cells.append(f"{short:>8.3f} {long:>8.3f}{' !!!' if bad else '    '}")
        print(f"{name:<28}" + "".join(cells), flush=True)
    print(f"{marked} grow faster than linear")
    return 1 if marked else 0


if __name__ == "__main__":
    sys.exit(main())
