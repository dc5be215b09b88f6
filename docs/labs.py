"""Writes docs/labs.md: runs each lab before and after its fix, and says what was seen.

python docs/labs.py [--jobs N] [LAB ...]

With names it runs these labs only; the rows of the others stay.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dtdebug.learn.labs.requirements import what_is_missing
from dtdebug.learn.labs.verify import HalfResult, verify
from dtdebug_taxonomy.knowledge.labs import Lab, load_labs
from dtdebug_taxonomy.knowledge.loader import sort_key

PAGE = Path(__file__).with_suffix(".md")
HEAD = """# Labs

How does a fault of distributed training look? Each lab is a small training that really fails on your machine, with one
fault:

<!-- not run: a lab takes its time; tests/kernel/learn/test_labs.py runs them all -->
```console
$ dtdebug lab list                      # what there is
$ dtdebug lab start uneven-batches      # copies the script to a new folder and runs it: it fails
$ dtdebug lab hint                      # a hint, from vague to exact; at last the fix
$ dtdebug lab check                     # runs your file: solved when it ends well and has done its work
$ dtdebug lab verify uneven-batches     # fails before, is diagnosed as told, works after: here, too?
```

Your file is never overwritten, each run is bounded, and nothing is left behind. If a lab needs something beside PyTorch
that is missing (its `lab.toml` lists it), one line says so and the status is 2. `dtdebug learn` has guides on topics.

The table is written by `python docs/labs.py`, which runs all labs; the times are of that machine. *found*: the symptom
comes first, the cause is among the first two pieces of advice, the rank is right if one rank comes first, and dtdebug
is silent on the fixed program. *told*: the output alone does not show the fault, so the diagnosis also gets a user's
sentence. *watched*: nothing fails, so the lab runs [under the watch](watch.md), or [a step is measured](parity.md),
which must name the line, and nothing after the fix.

| Lab | Symptom | Ranks | Before, after | Verdict |
| --- | --- | --- | --- | --- |
"""
TAIL = """
The labs of TensorFlow and Keras are two workers of MultiWorkerMirroredStrategy on one host. `make labs-tensorflow`
installs `tensorflow-cpu` into an environment of its own and verifies them. Horovod has no lab: its build against a
current PyTorch was given up after 47 minutes. What dtdebug says of it rests on its sources, documentation and public
threads.
"""


def row(lab: Lab) -> str:
    """One line of the table."""
    begin = f"| `{lab.id}` | {lab.symptom} | {lab.ranks}"
    if missing := what_is_missing(lab):
        return f"{begin} | | not run: {missing} |"
    before, after = verify(lab)
    for half in (before, after):
        print(f"{'ok ' if half.ok else 'BAD'} {lab.id} {half.file} {half.seconds} s: {half.text}", flush=True)
    times = f"{before.seconds:.0f} s, {after.seconds:.0f} s"
    return f"{begin} | {times} | {_verdict(lab, before, after)} |"


def _verdict(lab: Lab, before: HalfResult, after: HalfResult) -> str:
    wrong = [f"{half.file}: {half.text}" for half in (before, after) if not half.ok]
    if wrong:
        return "; ".join(wrong)
    rank = f", rank {lab.culprit}" if lab.culprit is not None else ""
    return f"found{rank}{', told' if lab.says else ''}{', watched' if lab.violates else ''}"


def main() -> int:
    """Runs all labs and writes the page; status 1 if one does not keep its word."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2), help="labs at a time")
    parser.add_argument("labs", nargs="*", metavar="LAB", help="which ones; all unless told otherwise")
    asked = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8") if asked.labs else ""
    rows_before = re.findall(r"^(\| `([\w-]+)` .*)$", page, re.MULTILINE)
    kept = {name: line for line, name in rows_before if name not in asked.labs}
    labs = sorted(load_labs().values(), key=lambda lab: (sort_key(lab.symptom), lab.id))
    with ThreadPoolExecutor(asked.jobs) as pool:
        rows = list(pool.map(lambda lab: kept.get(lab.id) or row(lab), labs))
    PAGE.write_text(HEAD + "\n".join(rows) + "\n" + TAIL, encoding="utf-8")
    bad = [line for line in rows if "| found" not in line and "| not run" not in line]
    print(f"{len(rows)} labs, {len(rows) - len(bad)} as told")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
