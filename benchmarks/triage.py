"""Logs of jobs: what the reader by shapes loses, whether the first rank is right, speed and memory.

    .venv/bin/python benchmarks/triage.py loss                  # samples amid healthy logs of other styles
    .venv/bin/python benchmarks/triage.py jobs --ranks 64 --seed 9000
    .venv/bin/python benchmarks/triage.py speed --ranks 1024 --megabytes 1
    .venv/bin/python benchmarks/triage.py merge --ranks 16384    # parts of hosts with 8 ranks each

A seed is a set of jobs; take one that nobody has looked at.
"""

# ruff: noqa: E402 - the generator stands among the tests

from __future__ import annotations

import argparse
import io
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import triage_jobs as jobs

from dtdebug.clean import clean
from dtdebug.logs import reader
from dtdebug.logs.shapes import Shapes
from dtdebug.triage import command
from dtdebug.triage.job import view
from dtdebug.triage.part import Part, Stream, Told, decode, encode, merge
from dtdebug_taxonomy.findings import lexicon
from dtdebug_taxonomy.knowledge import load

SAMPLES = ROOT / "tests" / "samples"
STYLES = (
    "deepspeed-training", "megatron-iterations", "nccl-info", "horovod-training", "transformers-trainer",
    "torch-debug-info", "lightning-fit", "keras-progress-bar", "ray-cluster", "web-server",
)  # fmt: skip
"""Real healthy logs, whose lines are repeated with other digits."""


def healthy(style: str, size: int, seed: int) -> bytes:
    """So many bytes in a style."""
    r = random.Random(seed)
    lines = (SAMPLES / "none" / f"{style}.txt").read_text().splitlines()
    out, length, n = [], 0, 0
    while length < size:
        line = re.sub(r"\d", lambda _: r.choice("0123456789"), lines[n % len(lines)])
        out.append(line)
        length += len(line) + 1
        n += 1
    return ("\n".join(out) + "\n").encode()


def loss(size: int, seed: int) -> None:
    """Indicators of all samples that are lost, each amid two such pieces of a healthy log of the next style."""
    matcher = lexicon(load())

    def seen(text: str) -> set[str]:
        return {hit.key for hit in matcher.hits(clean(text)) if "=" not in hit.key}

    samples = [
        f
        for folder in sorted(SAMPLES.iterdir())
        if folder.is_dir() and folder.name not in ("none", "hostile")
        for f in sorted(folder.glob("*.txt"))
        if not f.name.endswith(".said.txt")
    ]
    around = {style: (healthy(style, size, 1), healthy(style, size, 2)) for style in STYLES}
    total, spent = 0, 0.0
    for n, f in enumerate(samples):
        style = STYLES[(n + seed) % len(STYLES)]
        before, after = around[style]
        text = f.read_bytes().rstrip(b"\n") + b"\n"
        wanted = seen(text.decode(errors="replace"))
        began = time.process_time()
        excerpt = reader.read(io.BytesIO(before + text + after), "log")
        spent += time.process_time() - began
        lost = wanted - seen(excerpt.text)
        total += len(wanted)
        if lost:
            print(f"  {f.parent.name}/{f.stem} in {style}: {', '.join(sorted(lost))}", flush=True)
    rate = len(samples) * 2 * size / 1e9 / spent
    print(
        f"{len(samples)} samples, {total} indicators in {len(STYLES)} styles, {rate:.2f} GB/s; the lost ones are above"
    )


def first(ranks: int, seed: int, lines: int) -> None:
    """Whether the first rank, the silent rank and the device are right, in all layouts with all faults."""
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for i, layout in enumerate(jobs.LAYOUTS):
        for j, fault in enumerate(jobs.FAULTS):
            with tempfile.TemporaryDirectory() as folder:
                planted = jobs.make(Path(folder), seed + 100 * i + j, ranks, layout, fault, lines)
                found = view(command.read([folder], 1))
                rank = found.first[0].rank if found.first else None
                checks = {"first": rank == planted.culprit, "ranks": found.ranks == ranks}
                if planted.silent or fault == "bus":
                    checks["silent"] = planted.culprit in [s.rank for s in found.silent]
                if planted.code and planted.joinable:
                    checks["machine"] = planted.culprit in [e.rank for e in found.hardware if e.code == planted.code]
                for name, good in checks.items():
                    total[name] += 1
                    right[name] += good
                    if not good:
                        print(f"  {layout} {fault}: {name} is wrong, wanted {planted.culprit}, found {rank}")
    print(f"{ranks} ranks, seed {seed}: " + ", ".join(f"{n} {right[n]} of {total[n]}" for n in total))


def speed(ranks: int, megabytes: float) -> None:
    """Processor time and memory for a job's logs, the reduction alone, and ripgrep with a few words if it is there."""
    with tempfile.TemporaryDirectory() as folder:
        planted = jobs.make(Path(folder), 77, ranks, "rank-files", "raises", lines=int(megabytes * 10_500))
        size = sum(f.stat().st_size for f in planted.files)
        began, spent = time.perf_counter(), time.process_time()
        part = command.read([folder], 1)
        middle = time.process_time()
        found = view(part)
        end = time.process_time()
        rate, peak = size / 1e9 / (middle - spent), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        right = "right" if found.first and found.first[0].rank == planted.culprit else "wrong"
        print(
            f"{ranks} files, {size / 1e9:.2f} GB: {middle - spent:.1f} s to read, {rate:.2f} GB/s a core, {peak:.0f} MB"
        )
        print(f"{end - middle:.2f} s to judge, {time.perf_counter() - began:.1f} s in all; first rank {right}")
        log = b"".join(f.read_bytes() for f in planted.files[: max(1, int(200 / megabytes))])
        spent = time.process_time()
        shapes = Shapes()
        for at in range(0, len(log), 1 << 20):
            shapes.take(log[at : at + (1 << 20)])
        spent = time.process_time() - spent
        print(f"shapes alone: {len(log) / 1e9 / spent:.2f} GB/s a core, {len(shapes.kept)} lines kept")
        spent = time.process_time()
        excerpt = reader.read(io.BytesIO(log), "log")
        spent = time.process_time() - spent
        print(f"one log of {len(log) / 1e6:.0f} MB: {len(log) / 1e9 / spent:.2f} GB/s, {len(excerpt.text)} kept")
        words = ("Traceback", "Error", "NCCL WARN", "Xid", "killed", "timeout")
        try:
            began = time.perf_counter()
            subprocess.run(["rg", "-c", "|".join(words), folder], capture_output=True, check=False, timeout=600)
            print(f"ripgrep, {len(words)} words only: {size / 1e9 / (time.perf_counter() - began):.2f} GB/s")
        except FileNotFoundError:
            print("ripgrep is not here")


def joined(ranks: int) -> None:
    """Time and memory of joining parts of hosts, one rank of which raised."""
    end, culprit, parts = 1e9, ranks // 2 + 1, []
    lost = "RuntimeError: [1] Connection closed by peer [10.0.0.1]:2000"
    head = ("Traceback (most recent call last):", '  File "/w/a.py", line 5, in main', "    step(batch)")
    for first_of in range(0, ranks, 8):
        streams = []
        for rank in range(first_of, min(first_of + 8, ranks)):
            own, at = rank == culprit, end if rank == culprit else end + 600
            told = [Told(900 + n, words, at) for n, words in enumerate((*head, "KeyError: 'x'" if own else lost))]
            streams.append(Stream(
                file=f"/logs/rank_{rank}.log", rank=rank, host=f"gpu-{rank // 8:05d}", began=end - 5000, last=at,
                line=903, step=400, first=at, kind="own" if own else "lost", end="own" if own else "lost",
                told=tuple(told) if own or rank == first_of else (), marks=((1, end - 4000.0),),
            ))  # fmt: skip
        parts.append(encode(Part(files=8, size=8 << 20, streams=streams, read=[s.file for s in streams])))
    began = time.process_time()
    whole = merge(decode(part, "part") for part in parts)
    middle = time.process_time()
    found = view(whole)
    right = "right" if found.first and found.first[0].rank == culprit else "wrong"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"{len(parts)} parts, {sum(map(len, parts)) / 1e6:.1f} MB: {middle - began:.2f} s to join, "
          f"{time.process_time() - middle:.2f} s to judge, {peak:.0f} MB; first rank {right}")  # fmt: skip


def main() -> None:
    """Runs one measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("loss", "jobs", "speed", "merge"))
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lines", type=int, default=200)
    parser.add_argument("--megabytes", type=float, default=1.0)
    options = parser.parse_args()
    if options.what == "loss":
        loss(int(options.megabytes * 1.5e6), options.seed)
    elif options.what == "jobs":
        first(options.ranks, options.seed, options.lines)
    elif options.what == "merge":
        joined(options.ranks)
    else:
        speed(options.ranks, options.megabytes)


if __name__ == "__main__":
    main()
