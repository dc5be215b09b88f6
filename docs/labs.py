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
from dtdebug_taxonomy.knowledge.loader import load, sort_key

PAGE = Path(__file__).with_suffix(".md")
HEAD = """# Labs

Small distributed trainings that really fail, with one fault each: to learn how a fault looks, and to know that dtdebug
finds it. Each one is a folder in `taxonomy/dtdebug_taxonomy/labs`.

<!-- not run: a lab takes its time; tests/kernel/learn/test_labs.py runs them all -->
```console
$ dtdebug lab list                      # what there is
$ dtdebug lab start uneven-batches      # copies the script to a new folder and runs it: it fails
$ dtdebug lab hint                      # a hint, from vague to exact; at last the fix
$ dtdebug lab check                     # runs your file: solved when it ends well and has done its work
$ dtdebug lab verify uneven-batches     # fails before, is diagnosed as told, works after: here, too?
```

Your file is never overwritten, each run is bounded, and nothing is left behind.

The table is made by `python docs/labs.py`, which runs all labs. A lab is *found* where the symptom comes first, its
cause is among the first two pieces of advice, and the rank is right where one rank comes first; and where the fixed
program ends well and dtdebug keeps silent. Where the output alone does not show what is wrong, the diagnosis also has
the sentence of a user (*told*). Where nothing fails the lab runs [under the watch](watch.md), or [a step is
measured](parity.md), which must name what did not hold, with its line, and nothing in the fixed program (*watched*).

| Lab | Symptom | Cause | Ranks | Before, after | Verdict |
| --- | --- | --- | --- | --- | --- |
"""
TAIL = """
The times are those of the machine that made the table. What a lab needs beside PyTorch stands in its `lab.toml`; where
that is missing, `dtdebug lab` says so in one line and ends with status 2.

The labs of TensorFlow and Keras are two workers of MultiWorkerMirroredStrategy on this host. `make labs-tensorflow`
installs `tensorflow-cpu` into an environment of its own and verifies them. There is no lab of Horovod: its build
against a current PyTorch had neither succeeded nor failed after 47 minutes on two cores, so what dtdebug says of
Horovod rests on its sources, documentation and public threads, not on runs of ours.
"""


def row(lab: Lab) -> str:
    """One line of the table."""
    symptom, begin = load().symptom(lab.symptom), f"| `{lab.id}` | {lab.symptom}"
    cause = next(c.title for c in symptom.cause if c.id == lab.cause)
    if missing := what_is_missing(lab):
        return f"{begin} | {cause} | {lab.ranks} | | not run: {missing} |"
    before, after = verify(lab)
    for half in (before, after):
        print(f"{'ok ' if half.ok else 'BAD'} {lab.id} {half.file} {half.seconds} s: {half.text}", flush=True)
    times = f"{before.seconds:.0f} s, {after.seconds:.0f} s"
    return f"{begin} | {cause} | {lab.ranks} | {times} | {_verdict(lab, before, after)} |"


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
