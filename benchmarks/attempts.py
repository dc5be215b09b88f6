"""Judges the decision on drawn histories of attempts of one job.

.venv/bin/python benchmarks/attempts.py --seed 1 --count 200
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from dtdebug.recorded.attempts.decision import decide
from dtdebug.recorded.attempts.history import attempts_of

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from attempt_histories import draw


def main() -> None:
    """Run the histories."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    options = parser.parse_args()
    right = stopped = 0
    for number in range(options.count):
        with tempfile.TemporaryDirectory() as folder:
            drawn = draw(options.seed, number, Path(folder))
            attempts = attempts_of(drawn.paths)
            decision = decide(attempts) if attempts else None
        found = ("", "") if decision is None else (decision.action, decision.what)
        if found == (drawn.action, drawn.what) and len(attempts) == drawn.attempts:
            right += 1
            continue
        stopped += found[0] == "stop"
        print(f"{number:3d} {drawn.kind:10} {drawn.layout:8} {drawn.action} {drawn.what} but {' '.join(found)}")
    print(f"seed {options.seed}: {right} of {options.count} right; {stopped} stopped that could recover")


if __name__ == "__main__":
    main()
