"""Injects faults into real gloo jobs and reports how well each is diagnosed."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import dumps
import live
from score import Score, score, table
from truth import FAULTS, Injection, inject, seen, stood

SHAPES = (("world", 4), ("tp+dp", 4), ("subgroup", 4), ("world", 8), ("tp+dp", 8), ("tp+dp+pp", 8), ("subgroup", 8))


def draw_jobs(number: int, seed: int, faults: Sequence[str] = (), most: int = 8) -> Iterator[Injection]:
    """So many jobs of at most so many ranks: the faults in turn, over all layouts."""
    chance = random.Random(f"jobs {seed}")
    shapes = [shape for shape in SHAPES if shape[1] <= most]
    made = 0
    for turn in itertools.count():
        if turn % len(shapes) == 0:
            chance.shuffle(shapes)
        for place, fault in enumerate(faults or FAULTS):
            layout, world = shapes[(place + turn) % len(shapes)]
            injection = inject(fault, layout, world, chance.randrange(1_000_000))
            if injection is None:
                continue
            yield injection
            made += 1
            if made == number:
                return


def examine(injection: Injection, folder: Path, mode: str) -> Score:
    """Runs one job, has it diagnosed, and compares."""
    began = time.monotonic()
    void = ""
    if mode == "run":
        verdict, fired = live.diagnose(injection, folder)
    else:
        truth = dumps.dump(injection, folder)
        verdict, fired = dumps.diagnose(folder), truth["fired"]
        if truth["silent"]:
            void = f"ranks {truth['silent']} had no time to write"
    if not fired and injection.fault != "none":
        void = "the fault did not strike"
    shown = None if mode == "run" else seen(folder)
    return score(injection, verdict, stood(folder), shown, time.monotonic() - began, void)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs jobs and reports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--mode", choices=("run", "dumps", "collect"), default="run", help="collect: dumps and truth only"
    )
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fault", action="append", choices=list(FAULTS), default=[])
    parser.add_argument("--most", type=int, choices=(4, 8), default=8, help="ranks of a job")
    parser.add_argument("--folder", type=Path, help="where to keep what the jobs leave")
    options = parser.parse_args(argv)
    os.environ |= {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    folder = options.folder or Path(tempfile.mkdtemp(prefix="faults-"))
    scores = []
    for injection in draw_jobs(options.jobs, options.seed, options.fault, options.most):
        if options.mode == "collect":
            print(injection.name, json.dumps(dumps.dump(injection, folder / injection.name)), flush=True)
            continue
        one = examine(injection, folder / injection.name, options.mode)
        scores.append(one)
        mark = "void" if one.void else "ok" if one.right else "MISS"
        print(f"{one.seconds:5.1f} s  {mark:4}  {injection.name}: {one.said}", flush=True)
    if scores:
        print(table(scores))
    return 0


if __name__ == "__main__":
    sys.exit(main())
