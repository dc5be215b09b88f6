"""Measures `dtdebug triage`: lines lost by shapes, whether the first rank is right, speed and memory.

    .venv/bin/python benchmarks/triage.py loss                  # samples amid healthy logs of other styles
    .venv/bin/python benchmarks/triage.py jobs --ranks 64 --seed 9000
    .venv/bin/python benchmarks/triage.py speed --ranks 1024 --megabytes 1   # many logs, beside ripgrep and logsage
    .venv/bin/python benchmarks/triage.py long --megabytes 2000 [--shared]    # one log, plain, .gz and .zst
    .venv/bin/python benchmarks/triage.py merge --ranks 16384    # parts of hosts with 8 ranks each

A seed is a set of jobs; use one that nobody has looked at.
"""

# ruff: noqa: E402 - the generator stands among the tests

from __future__ import annotations

import argparse
import io
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import triage_jobs as jobs

from dtdebug.privacy.sanitize import clean
from dtdebug.recorded.job_logs import api
from dtdebug.recorded.job_logs.job_view import view
from dtdebug.recorded.job_logs.part import Part, Stream, TellingLine, decode, encode, merge
from dtdebug.recorded.log_files import excerpt as log_excerpt
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.text.matchers import lexicon

SAMPLES = ROOT / "tests" / "samples"
STYLES = (
    "deepspeed-training", "megatron-iterations", "nccl-info", "horovod-training", "transformers-trainer",
    "torch-debug-info", "lightning-fit", "keras-progress-bar", "ray-cluster", "web-server",
)  # fmt: skip
"""Real healthy logs, whose lines are repeated with other digits."""


def healthy(style: str, size: int, seed: int) -> bytes:
    """Return this number of bytes in a style."""
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
    """Count indicators of all samples that are lost, each between two such pieces of a healthy log of another style."""
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
        excerpt = log_excerpt.read_excerpt(io.BytesIO(before + text + after), "log")
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
    """Check if the first rank, the silent rank and the device are right, in all layouts with all faults."""
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for i, layout in enumerate(jobs.LAYOUTS):
        for j, fault in enumerate(jobs.FAULTS):
            with tempfile.TemporaryDirectory() as folder:
                planted = jobs.make(Path(folder), seed + 100 * i + j, ranks, layout, fault, lines)
                found = view(api.read_part([folder], 1))
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


def speed(ranks: int, megabytes: float, folder: Path) -> None:
    """Measure CPU time and memory of the command: many logs, one long one, compressed ones, and peers.

    All logs are written by a child process, because the memory needed for that is not the reader's.
    """
    logs = folder / "logs"
    culprit, _ = _made(logs, ranks, 400)
    for log in logs.iterdir():
        text = log.read_bytes()
        healthy = text[: text.rfind(b"\n", 0, len(text) // 2) + 1]
        log.write_bytes(healthy * (int(2 * megabytes * 1e6) // len(text)) + text)
    size = sum(f.stat().st_size for f in logs.iterdir())
    print(f"load {os.getloadavg()[0]:.1f}; {ranks} files of {size / ranks / 1e6:.2f} MB, {size / 1e9:.2f} GB")
    found = timed("dtdebug triage, 1 process", size, [*TRIAGE, "--processes", "1", str(logs)])
    first = json.loads(found)["first"]
    print(f"    first rank {'right' if first and first[0]['rank'] == culprit else f'wrong: {first}'}")
    _peers(logs, size)
    shutil.rmtree(logs)


def long(megabytes: float, folder: Path, shared: bool) -> None:
    """Measure one log of this size, plain and compressed: of one rank, or of 64 with their labels."""
    folder.mkdir(exist_ok=True)
    log = folder / "job.log"
    made = folder / "made"
    culprit, exception = _made(made, 64, 400 if shared else 7_000, "srun-labels" if shared else "rank-files")
    piece = next(f for f in made.iterdir() if shared or f.name.endswith(f"{culprit:04d}.log")).read_bytes()
    healthy = piece[: piece.rfind(b"\n", 0, len(piece) // 2) + 1]
    with log.open("wb") as out:
        while out.tell() < megabytes * 1e6 - len(piece):
            out.write(healthy)
        out.write(piece)
    shutil.rmtree(made)
    size = log.stat().st_size
    print(f"load {os.getloadavg()[0]:.1f}; one log of {size / 1e9:.2f} GB, {'64 ranks' if shared else '1 rank'}")
    found = json.loads(timed("dtdebug triage", size, [*TRIAGE, str(log)]))["first"]
    print(f"    first: {[(row['rank'], row['exception']) for row in found][:2]}, planted {culprit} {exception}")
    timed("dtdebug diagnose", size, [DTDEBUG, "diagnose", str(log), "--format", "json"])
    for packer in (["gzip", "-1", "-k"], ["zstd", "-q", "-k"]):
        packed = log.with_name(log.name + (".gz" if packer[0] == "gzip" else ".zst"))
        subprocess.run([*packer, str(log)], check=True)
        timed(f"dtdebug triage, {packed.suffix}", size, [*TRIAGE, str(packed)])
        packed.unlink()
    log.unlink()


DTDEBUG = str(Path(sys.executable).with_name("dtdebug"))
TRIAGE = (DTDEBUG, "triage", "--format", "json")


def _made(folder: Path, ranks: int, lines: int, layout: str = "rank-files") -> tuple[int, str]:
    """Write a job's logs in a child, because memory of a process counts for its children; return the culprit."""
    code = (
        "import sys; from pathlib import Path; import triage_jobs as jobs; "
        f"made = jobs.make(Path(sys.argv[1]), 77, {ranks}, {layout!r}, 'raises', lines={lines}); "
        "print(made.culprit, made.exception)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)], cwd=ROOT / "tests", capture_output=True, text=True, check=True
    )
    rank, exception = done.stdout.split()
    return int(rank), exception


def timed(what: str, size: int, argv: list[str]) -> bytes:
    """Run a command and print its seconds, rate and memory; return its output."""
    began = time.perf_counter()
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        assert child.stdout is not None
        text = child.stdout.read()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    spent = used.ru_utime + used.ru_stime
    print(
        f"  {what}: {spent:.1f} s of processor, {time.perf_counter() - began:.1f} s, "
        f"{size / 1e9 / spent:.2f} GB/s a core, {used.ru_maxrss / 1e3:.0f} MB; exit status {child.returncode}",
        flush=True,
    )
    return text


def _peers(folder: Path, size: int) -> None:
    """Measure peers on the same files: ripgrep for some words; NVIDIA's logsage for each log's errors."""
    words = "Traceback|Error|NCCL WARN|Xid|killed|timeout"
    if shutil.which("rg"):
        timed("ripgrep -c, 6 words, 1 thread", size, ["rg", "-j1", "-c", words, str(folder)])
    else:
        print("  ripgrep is not here")
    python = os.environ.get("LOGSAGE_PYTHON")
    if python is None:
        print("  logsage is not here: name the Python of an environment that has it in LOGSAGE_PYTHON")
        return
    some = sorted(folder.iterdir())[:8]
    code = (  # a model that says No at once stands for the one that it would ask over the network
        "import sys; from langchain_core.language_models.fake_chat_models import FakeListChatModel as Model\n"
        "from logsage.auto_resume_policy.attribution_classes import LRUCache\n"
        "from logsage.auto_resume_policy.error_extraction import return_application_errors as errors\n"
        "for f in sys.argv[1:]: errors(Model(responses=['No']), open(f).readlines(), LRUCache(1000))"
    )
    timed(f"logsage, {len(some)} files", sum(f.stat().st_size for f in some), [python, "-c", code, *map(str, some)])


def joined(ranks: int) -> None:
    """Measure time and memory of joining parts of hosts, one rank of which raised."""
    end, culprit, parts = 1e9, ranks // 2 + 1, []
    lost = "RuntimeError: [1] Connection closed by peer [10.0.0.1]:2000"
    head = ("Traceback (most recent call last):", '  File "/w/a.py", line 5, in main', "    step(batch)")
    for first_of in range(0, ranks, 8):
        streams = []
        for rank in range(first_of, min(first_of + 8, ranks)):
            own, at = rank == culprit, end if rank == culprit else end + 600
            told = [
                TellingLine(900 + n, words, at) for n, words in enumerate((*head, "KeyError: 'x'" if own else lost))
            ]
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
    """Run one measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("loss", "jobs", "speed", "long", "merge"))
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lines", type=int, default=200)
    parser.add_argument("--megabytes", type=float, default=1.0)
    parser.add_argument("--shared", action="store_true", help="one log of 64 ranks")
    options = parser.parse_args()
    if options.what == "loss":
        loss(int(options.megabytes * 1.5e6), options.seed)
    elif options.what == "jobs":
        first(options.ranks, options.seed, options.lines)
    elif options.what == "merge":
        joined(options.ranks)
    else:
        with tempfile.TemporaryDirectory(prefix="dtdebug-") as folder:
            if options.what == "speed":
                speed(options.ranks, options.megabytes, Path(folder))
            else:
                long(options.megabytes, Path(folder), shared=options.shared)


if __name__ == "__main__":
    main()
