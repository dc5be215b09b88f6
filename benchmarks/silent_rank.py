"""Judges triage on jobs in which one rank raises and another had stopped printing half an hour before.

    .venv/bin/python benchmarks/silent_rank.py --seed 1 --jobs 48
    .venv/bin/python benchmarks/silent_rank.py --seed 1 --only 17 --keep /tmp/job   # one of them, to look at

A job is drawn by its number from the seed: the style of its lines, 16 to 64 ranks, one file or several, and how the
other ranks end. A job counts as right if the first line has the exception of the rank that raised it, that rank is the
only first failure, and the silent rank, and no other, is reported as silent, with how long.
"""

# ruff: noqa: E501, PLR0917 - lines of logs as they are printed

from __future__ import annotations

import argparse
import contextlib
import io
import json
import random
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from dtdebug.cli.main import main as main_of_command
from dtdebug.recorded.job_logs import api, render
from dtdebug.recorded.job_logs.part import decode, encode

PER_NODE = 8
_RAISED = (
    ("ValueError", "Expected more than 1 value per channel when training, got input size [1, {n}]"),
    ("KeyError", "'sample_{n}'"),
    ("RuntimeError", "shape '[4, {n}]' is invalid for input of size 4097"),
    ("OSError", "[Errno 5] Input/output error: '/mnt/c4/{n}.tar'"),
    ("AssertionError", "document {n} has no tokens"),
    ("IndexError", "index {n} is out of range"),
    ("json.decoder.JSONDecodeError", "Expecting value: line 1 column {n} (char {n})"),
    ("torch.OutOfMemoryError", "CUDA out of memory. Tried to allocate {n}.00 MiB. GPU 3 has a total capacity of 79.11 GiB of which 61.44 MiB is free."),
)  # fmt: skip
_Line = tuple[float, int, str]


@dataclass
class Drawn:
    """A job, and what is true of it."""

    style: str
    ending: str
    ranks: int
    raiser: int
    silent: int
    exception: str
    words: str
    minutes: float
    linger: float
    """Seconds for which the others printed steps after the exception."""
    last_step: int
    files: list[Path] = field(default_factory=list)


def _day(time: float, form: str) -> str:
    return datetime.fromtimestamp(time, UTC).strftime(form)


def _ms(time: float) -> str:
    return f"{int(time % 1 * 1000):03d}"


def _iso(time: float) -> str:
    return f"{_day(time, '%Y-%m-%dT%H:%M:%S')}.{_ms(time)}Z"


def _space(time: float, mark: str = ",") -> str:
    return f"{_day(time, '%Y-%m-%d %H:%M:%S')}{mark}{_ms(time)}"


def _step_words(r: random.Random, form: int, step: int) -> str:
    loss = 2 + r.random()
    return (
        f"step {step} loss {loss:.4f} lr 1.2e-04",
        f"step={step} loss={loss:.4f} tokens/s={r.randrange(9000, 9900)}",
        f" iteration {step:8d}/  500000 | consumed samples: {step * 512:12d} | elapsed time per iteration (ms): {r.randrange(14800, 15200)}.1 | learning rate: 1.2E-04 | global batch size:   512 | lm loss: {loss:.6E} | loss scale: 1.0 | grad norm: {r.random():.3f} |",
        f"epoch 2 iter {step} loss {loss:.3f} ({r.randrange(14, 16)}.02 s/it)",
    )[form]


# Each style: (form of a line with its time and rank, one file for "all", each "node" or each "rank")
_Form = Callable[[float, int, str], str]
STYLES: dict[str, tuple[_Form, str, bool]] = {
    "iso-rank": (lambda t, n, w: f"{_iso(t)} [rank{n}]: {w}", "all", True),
    "iso-level-rank": (lambda t, n, w: f"{_space(t)} INFO [rank {n}] {w}", "all", False),
    "iso-files": (lambda t, n, w: f"{_iso(t)} {w}", "rank", True),
    "torch": (lambda t, n, w: f"[rank{n}]: {_space(t)} INFO train.py:88 {w}", "all", False),
    "colon": (lambda t, n, w: f"{n}: {_space(t)} {w}", "all", False),
    "srun-l": (lambda t, n, w: f"{n:>2}: [{_space(t)}] {w}", "all", False),
    "tee": (lambda t, n, w: f"[default{n % PER_NODE}]:{_space(t)} INFO: {w}", "node", False),
    "megatron": (lambda t, n, w: f"[{_space(t, '.')}] {w}", "rank", False),
    "loguru": (lambda t, n, w: f"{_space(t, '.')} | INFO     | __main__:train:142 - [rank {n}] {w}", "all", False),
    "json": (lambda t, n, w: json.dumps({"ts": _iso(t), "level": "INFO", "rank": n, "msg": w}), "all", False),
    "pods": (lambda t, n, w: f"[pod/trainer-worker-{n // PER_NODE}/pytorch] {_iso(t)} [rank{n}]: {w}", "all", True),
    "iso-task": (lambda t, n, w: f"{_iso(t)} {n}: {w}", "all", True),
    "iso-fields": (lambda t, n, w: f"{_space(t, '.')} INFO rank={n} {w}", "all", True),
    "kubectl-time": (lambda t, n, w: f"{_iso(t)} [rank{n}]: {_space(t)} INFO {w}", "node", True),
}
"""Form of a step's line, which lines share a file, and whether a traceback's lines carry the time too."""

ENDINGS = ("watchdog", "watchdog-soon", "closed", "launcher", "cut")


def draw(seed: int, number: int) -> tuple[Drawn, dict[str, list[str]]]:
    """Return the job of this number, and the lines of its files by name."""
    r = random.Random(seed * 1_000_003 + number)
    style = list(STYLES)[(number + seed) % len(STYLES)]
    ending = ENDINGS[(number * 3 + seed) % len(ENDINGS)]
    ranks = r.choice((16, 24, 32, 48, 64))
    raiser, silent = r.sample(range(ranks), 2)
    kind, words = r.choice(_RAISED)
    words = words.format(n=r.randrange(1000, 99999))
    pace, minutes, before = r.choice((7.5, 10.0, 15.0)), r.uniform(26, 38), r.uniform(8, 30)
    begin = datetime(2026, 1 + seed % 12, 1 + number % 28, r.randrange(24), r.randrange(60), tzinfo=UTC).timestamp()
    first_step = r.choice((1, r.randrange(2000, 9000)))
    linger = r.choice((0.0, 0.0, 45.0, 240.0))
    quiet_from, end = begin + before * 60, begin + (before + minutes) * 60
    stop = end - linger
    form, noise = r.randrange(4) if style != "megatron" else 2, r.random() < 0.5
    lines: list[_Line] = []
    last = first_step
    put_step = STYLES[style][0]
    for rank in range(ranks):
        step, time = first_step, begin
        while time < end:
            at = time + r.random() * 0.4
            if (rank == silent and at > quiet_from) or (rank == raiser and at > stop):
                break
            lines.append((at, rank, put_step(at, rank, _step_words(r, form, step))))
            if noise and r.random() < 0.04:
                lines.append((at + 0.5, rank, put_step(at + 0.5, rank, f"loader: opened shard {r.randrange(9999)}")))
            last = max(last, step)
            step, time = step + 1, time + pace
    job = Drawn(style, ending, ranks, raiser, silent, kind.rpartition(".")[2], words, minutes, linger, last)
    lines += _error(job, stop + 0.6, raiser, kind, words, r)
    lines += _others(job, end, r)
    lines.sort(key=lambda row: row[0])
    by_file: dict[str, list[str]] = {}
    for _, rank, text in lines:
        by_file.setdefault(_name(style, rank, ranks), []).append(text)
    return job, by_file


def _name(style: str, rank: int, ranks: int) -> str:
    share = STYLES[style][1]
    if share == "rank":
        return f"rank_{rank:03d}.log"
    return f"node-{rank // PER_NODE:02d}.log" if share == "node" else f"train-{ranks}.log"


def _mark(style: str, time: float, rank: int, text: str) -> str:
    """Return a line of standard error as the launcher or collector of this style prefixes it."""
    if style == "json":
        return STYLES[style][0](time, rank, text)
    if STYLES[style][2]:
        return STYLES[style][0](time, rank, text) if style != "kubectl-time" else f"{_iso(time)} [rank{rank}]: {text}"
    lead = {
        "colon": f"{rank}: ", "srun-l": f"{rank:>2}: ", "tee": f"[default{rank % PER_NODE}]:", "megatron": "",
    }.get(style, f"[rank{rank}]: ")  # fmt: skip
    return f"{lead}{text}"


def _error(job: Drawn, time: float, rank: int, kind: str, words: str, r: random.Random) -> list[_Line]:
    frames = [
        "Traceback (most recent call last):",
        '  File "/workspace/src/train.py", line 412, in <module>',
        "    main(cfg)",
        f'  File "/workspace/src/{r.choice(("engine", "data", "model"))}.py", line {r.randrange(20, 900)}, in run',
        "    batch = self._next(batch)",
        f"{kind}: {words}",
    ]
    if job.style == "json":
        record = {
            "ts": _iso(time),
            "level": "ERROR",
            "rank": rank,
            "msg": "training failed",
            "exc_info": "\n".join(frames),
        }
        return [(time, rank, json.dumps(record))]
    return [(time + n / 1e4, rank, _mark(job.style, time, rank, row)) for n, row in enumerate(frames)]


def _others(job: Drawn, end: float, r: random.Random) -> list[_Line]:
    """Return how the ranks end that neither raised nor went silent; the silent one never prints again."""
    rest = [rank for rank in range(job.ranks) if rank not in (job.raiser, job.silent)]
    lines: list[_Line] = []
    if job.ending.startswith("watchdog"):
        wait = 600 if job.ending == "watchdog" else 60
        seq = r.randrange(2000, 90000)
        for rank in rest:
            time = end + wait + r.random() * 2
            late = f"Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType=ALLREDUCE, NumelIn=51380224, NumelOut=51380224, Timeout(ms)={wait}000) ran for {wait}0{r.randrange(10, 99)} milliseconds before timing out."
            glog = f"[E{_day(time, '%m%d %H:%M:%S')}.{_ms(time)}000000 ProcessGroupNCCL.cpp:632] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] "
            lines += [
                (time, rank, _mark(job.style, time, rank, glog + late)),
                (
                    time + 0.1,
                    rank,
                    _mark(
                        job.style, time, rank, "terminate called after throwing an instance of 'c10::DistBackendError'"
                    ),
                ),
            ]
    elif job.ending == "closed":
        for rank in rest:
            time = end + 1.5 + r.random()
            words = f"[../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.7]:{r.randrange(20000, 60000)}"
            lines += _error(job, time, rank, "RuntimeError", words, r)
    elif job.ending == "launcher":
        host = job.raiser // PER_NODE
        text = f"srun: error: node-{host:02d}: task {job.raiser}: Exited with exit code 1"
        lines.append((end + 4, job.raiser, text))
    return lines


def write(job: Drawn, files: dict[str, list[str]], folder: Path) -> None:
    """Write the files of a job."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in files.items():
        job.files.append(folder / name)
        job.files[-1].write_text("\n".join(lines) + "\n")


def judge(job: Drawn, folder: Path) -> list[str]:
    """Return what is wrong in the answers of triage and of the plain command."""
    paths = [str(folder)] if len(job.files) > 1 else [str(job.files[0])]
    found = api.job_of(decode(encode(api.read_part(paths, 1)), "part"))
    _, diagnosis, is_found = api.conclude(found)
    row = next(
        (line for line in render.to_text(found, diagnosis, 0.0).split("\n") if f"stopped   rank {job.silent} " in line),
        "",
    )
    text = _printed(paths)
    wrong = []

    def check(what: str, good: bool, saw: object) -> None:
        if not good:
            wrong.append(f"{what}: {str(saw)[:200]}")

    check("found", is_found, "")
    check("ranks", found.ranks == job.ranks, found.ranks)
    check(
        "first", [r.rank for r in found.first] == [job.raiser], ([r.rank for r in found.first][:4], "not", job.raiser)
    )
    first_line = " ".join(text.split("\n")[:3])
    check("first line", f"ank {job.raiser} " in first_line and job.words[:24] in first_line, first_line)
    rows = {s.rank: s for s in found.silent}
    check("silent", set(rows) == {job.silent}, (sorted(rows)[:6], "not", job.silent))
    for name, words in (("row", row), ("answer", " ".join(text.split()))):
        said = re.search(rf"rank {job.silent} has printed nothing for (\d+) min", words)
        check(f"how long ({name})", said is not None and abs(int(said[1]) - job.minutes) < 2, words)
        check(f"steps ({name})", f"{job.last_step:,}" in words or f"{job.last_step - 1:,}" in words, words)
    check("against", "look there" not in text and "against it" not in text, text)
    return wrong


def _printed(paths: list[str]) -> str:
    """Return what the plain command prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        main_of_command(paths)
    return out.getvalue()


def main() -> None:
    """Run the jobs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=48)
    parser.add_argument("--only", type=int)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    bad: Counter[str] = Counter()
    wrong = 0
    numbers = range(options.jobs) if options.only is None else [options.only]
    for number in numbers:
        job, files = draw(options.seed, number)
        folder = options.keep or Path(tempfile.mkdtemp())
        try:
            write(job, files, folder)
            faults = judge(job, folder)
        finally:
            if options.keep is None:
                shutil.rmtree(folder)
        if faults:
            wrong += 1
            print(
                f"{number:3d} {job.style:15} {job.ending:14} {job.linger:4.0f} {job.ranks:3} raises {job.raiser} silent {job.silent}"
            )
            for fault in faults:
                print(f"      {fault}", flush=True)
            bad.update({fault.partition(":")[0] for fault in faults})
    print(f"seed {options.seed}: {len(numbers) - wrong} of {len(numbers)} jobs right; wrong: {dict(bad)}")


if __name__ == "__main__":
    main()
