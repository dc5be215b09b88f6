"""Judges triage on logs of jobs in the formats of many launchers and loggers, with one fault each.

    .venv/bin/python benchmarks/triage_styles.py --seed 1 --jobs 60
    .venv/bin/python benchmarks/triage_styles.py --seed 1 --only 17 --keep /tmp/job   # one of them, to look at

A job is drawn by its number from the seed: a layout (files and prefixes of each rank), a style of
logging, the ranks that print progress, and a fault. A job counts as right if the first rank and its line, the
followers, the silent ranks, the report of the machine and the number of ranks are all right.
"""

# ruff: noqa: E501 - lines of logs as they are printed; each fault has one signature

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from styles_faults import FAULT
from styles_files import LAYOUTS, PODS, write
from styles_job import ENDED, FAULTS, HEALTHY, MANNERS, PER_NODE, Job, does_print, first_lines, progress_line

from dtdebug.recorded.job_logs import api, render
from dtdebug.recorded.job_logs.part import decode, encode
from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load


def draw(seed: int, number: int, sizes: tuple[int, ...]) -> Job:
    """Return the job of this number."""
    r = random.Random(seed * 1_000_003 + number)
    layout = list(LAYOUTS)[(number + seed) % len(LAYOUTS)]
    ranks = r.choice(sizes)
    manner = "json" if layout == "json-lines" else r.choice(list(MANNERS))
    name = r.choice(("nid{:06d}", "ip-10-0-{}-17", "h100-{:03d}", "gpu{:d}", "a3mega-{:d}", "r07n{:02d}"))
    base = r.randrange(10, 90)
    job = Job(
        ranks, layout, manner, r.choice(("all", "zero", "last", "node")), FAULTS[(number * 7 + seed * 3) % len(FAULTS)],
        datetime(2026, 1 + seed % 12, 1 + number % 28, 7, 12, tzinfo=UTC).timestamp(),
        [name.format(base + n) for n in range(ranks // PER_NODE)],
    )  # fmt: skip
    if manner == "deepspeed":  # what is logged so says of which rank it is
        job.who = "zero"
    if layout in PODS:
        job.hosts = [f"llm-worker-{n}" for n in range(len(job.hosts))]
    if layout == "sagemaker":
        job.hosts = [f"algo-{n + 1}" for n in range(len(job.hosts))]
    _play(job, r)
    return job


def _play(job: Job, r: random.Random) -> None:
    steps, at = r.randrange(60, 160), 0
    nccl = job.fault in ("bus", "ecc", "killed") or r.random() < 0.3
    begin = [first_lines(job, rank, nccl, r) for rank in range(job.ranks)]
    for rank in range(job.ranks):
        rows = begin[rank]
        for step in range(1, steps + 1):
            if does_print(job, rank):
                rows.append(progress_line(job, rank, job.start + 20 + 2 * step + r.random() * 0.2, step, r))
        job.says.append(rows)
    at = job.start + 20 + 2 * steps
    if job.fault not in HEALTHY and job.fault not in ENDED:
        job.culprit = r.randrange(job.ranks)
    FAULT[job.fault](job, at, r)
    for rows in (*job.says, *job.before):
        rows.sort(key=lambda say: say.time)


def judge(job: Job, folder: Path) -> list[str]:
    """Return the errors in the form for programs."""
    part = api.read_part([str(folder)], 1)
    found = api.job_of(decode(encode(part), "part"))
    data = json.loads(json.dumps(render.data(found, diagnose(load(), found.snapshot)), default=str))
    wrong = []

    def check(what: str, good: bool, saw: Any) -> None:
        if not good:
            wrong.append(f"{what}: {str(saw)[:160]}")

    unnamed = job.layout == "kubectl"  # torchrun without --tee: lines of eight ranks without a name
    known = job.ranks
    if unnamed or (job.layout == "ray" and job.ranks - data["ranks"] == 1):  # one process that says nothing of its rank
        known = data["ranks"]
    check("ranks", data["ranks"] == known, data["ranks"])
    first = [row["rank"] for row in data["first"]]
    verdict = data["verdict"]
    if job.culprit is None:
        check("first", not first, (first[:4], [row["text"][:80] for row in data["first"][:2]]))
        check("silent", not data["silent"], data["silent"][:2])
        check("culprits", not verdict.get("culprits"), (verdict.get("culprits"), verdict.get("summary")))
        check("cascade", not data["cascade"]["ranks"], data["cascade"]["ranks"][:4])
        if job.fault in ENDED:
            check("ended", bool(data["ended"]), data["ended"])
        return wrong
    if unnamed and first[:1] == [None]:  # which of eight ranks printed it is not said
        return wrong
    check("first", bool(first) and first[0] == job.culprit, (first[:3], "not", job.culprit, verdict.get("summary")))
    check("others", all(rank == job.culprit for rank in first), first[:4])
    if job.marker and first and first[0] == job.culprit:
        row = data["first"][0]
        lines = Path(row["file"]).read_bytes().decode().split("\n")
        text = "".join(lines[max(row["line"] - 1, 0) : row["line"]])
        words = json.dumps(job.marker[:24])[1:-1]
        check("line", words in text or job.marker[:24] in text, (row["file"], row["line"], text[:60]))
        if job.exception:
            check("exception", row["exception"] == job.exception, row["exception"])
    cascade = set(data["cascade"]["ranks"])
    check("cascade", not job.followed or len(cascade & job.followed) >= 0.95 * len(job.followed), len(cascade))
    check("cascade", job.culprit not in cascade, "culprit is in it")
    silent = {row["rank"] for row in data["silent"]}
    check("silent", job.silent <= silent or unnamed, (sorted(silent)[:4], "not", job.silent))
    check("silent", len(silent - {job.culprit}) == 0, sorted(silent)[:4])
    if job.code:
        rows = [row for row in data["hardware"] if row["code"] == job.code]
        check("hardware", bool(rows), data["hardware"][:1])
        if rows and job.joinable:
            check("device", rows[0]["rank"] == job.culprit, (rows[0]["rank"], "not", job.culprit))
    return wrong


def main() -> None:
    """Run the jobs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=60)
    parser.add_argument("--only", type=int)
    parser.add_argument("--sizes", type=int, nargs="+", default=[64, 64, 128, 256])
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    bad: Counter[str] = Counter()
    wrong = 0
    numbers = range(options.jobs) if options.only is None else [options.only]
    for number in numbers:
        job = draw(options.seed, number, tuple(options.sizes))
        folder = options.keep or Path(tempfile.mkdtemp())
        try:
            write(job, folder)
            faults = judge(job, folder)
        finally:
            if options.keep is None:
                shutil.rmtree(folder)
        if faults:
            wrong += 1
            print(
                f"{number:3d} {job.layout:12} {job.manner:10} {job.who:5} {job.fault:14} {job.ranks:4} culprit {job.culprit}"
            )
            for fault in faults:
                print(f"      {fault}", flush=True)
            bad.update({fault.partition(":")[0] for fault in faults})
    print(f"seed {options.seed}: {wrong} of {len(numbers)} jobs have anything wrong; {dict(bad)}")


if __name__ == "__main__":
    main()
