"""Measures the cost of dtdebug: start-up, a passing cell, a diagnosis, memory.

    python benchmarks/cost.py

Prints medians, each next to the project's own target.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from dtdebug_taxonomy.knowledge.loader import Knowledge, load
from dtdebug_taxonomy.text.pattern_matcher import Matcher, index_of

REPEATS = 7
LINE = "step {n}: loss {l:.4f} grad_norm {g:.3f} lr 1e-4 tokens/s {t}\n"
FAILURE = (
    "[rank3]: Traceback (most recent call last):\n"
    '[rank3]:   File "/job/train.py", line 88, in <module>\n'
    "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
)


def median(action: Callable[[], object], repeats: int = REPEATS) -> float:
    """Return the median seconds of an action."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        action()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def log(size: int) -> str:
    """Write a training log of about this size in bytes that fails in the middle."""
    lines, written, n = [], 0, 0
    while written < size:
        n += 1
        lines.append(LINE.format(n=n, l=1 / n, g=n % 7 / 3, t=n * 37 % 1000))
        written += len(lines[-1])
    return "".join([*lines[: n // 2], FAILURE, *lines[n // 2 :]])


def in_process(code: str) -> float:
    """Return the seconds that a piece of code reports from a fresh interpreter (median)."""
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(REPEATS)
    ]
    return statistics.median(float(run.stdout.split()[-1]) for run in runs)


IMPORT = """
import sys, time
begin = time.perf_counter()
import dtdebug
from dtdebug.notebook.extension import Extension
spent = time.perf_counter() - begin
assert not [m for m in ("torch", "msgspec", "rich", "IPython") if m in sys.modules]
print(spent)
"""

LOADING = """
import time
from dtdebug_taxonomy.knowledge.loader import load
begin = time.perf_counter()
load()
print(time.perf_counter() - begin)
"""

HOOK = """
import time
from types import SimpleNamespace
from dtdebug.notebook.extension import Extension
shell = SimpleNamespace(user_ns={}, events=None)
extension = Extension(shell)
result = SimpleNamespace(error_in_exec=None, error_before_exec=None, info=SimpleNamespace(raw_cell="pass"))
n = 100_000
begin = time.perf_counter()
for _ in range(n):
    extension.before(None)
    extension.after(result)
print((time.perf_counter() - begin) / n)
"""

MEMORY = """
import re, sys
from dtdebug.cli.main import main

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])

before = peak()
sys.stdout = open("/dev/null", "w")
main(["diagnose", sys.argv[1]])
print((peak() - before) / 1024, file=sys.stderr)
"""


def memory(path: Path) -> float:
    """Return the MiB that a diagnosis of a file adds to the peak of its process."""
    run = subprocess.run([sys.executable, "-c", MEMORY, str(path)], capture_output=True, text=True, check=True)
    return float(run.stderr.split()[-1])


def row(what: str, figure: str, target: str) -> None:
    """Print one line of the table."""
    print(f"{what:<46}{figure:>14}   {target}", flush=True)


def matching(knowledge: Knowledge) -> None:
    """Compare the matcher with its peer: every pattern searched for with the standard library, in the same text."""
    rows = [(e.id, p) for e in knowledge.evidence.values() for p in e.text]
    compiled = [re.compile(p, re.IGNORECASE | re.MULTILINE) for _, p in rows]
    matcher, text = Matcher(index_of(rows)), log(200_000)
    ours = median(lambda: list(matcher.hits(text)))
    peer = median(lambda: [p.search(text) for p in compiled], 1)
    row(
        f"{len(rows):,} patterns over 200,000 bytes", f"{ours * 1000:.1f} ms", f"{peer / ours:.0f} times faster than re"
    )


def main() -> None:
    """Print the table."""
    from dtdebug_taxonomy.diagnosis.diagnose import diagnose

    row("what", "median", "target")
    row("import of the extension", f"{in_process(IMPORT) * 1000:.1f} ms", "60 ms, no torch")
    row("hook on a passing cell", f"{in_process(HOOK) * 1e6:.2f} us", "5 us")
    row("load the knowledge (once per process)", f"{in_process(LOADING) * 1000:.0f} ms", "")
    knowledge = load()
    with tempfile.TemporaryDirectory() as folder:
        from dtdebug.cli.main import _snapshot

        path = Path(folder) / "train.log"
        for size, target in ((2_000, "5 ms"), (200_000, "20 ms"), (20_000_000, "500 ms")):
            path.write_text(log(size), encoding="utf-8")
            spent = median(lambda: diagnose(knowledge, _snapshot(str(path), "")))
            row(f"read and diagnose {size:,} bytes", f"{spent * 1000:.1f} ms", target)
        matching(knowledge)
        for size in (2_000, 20_000_000, 200_000_000):
            path.write_text(log(size), encoding="utf-8")
            row(f"peak memory added by {size:,} bytes", f"{memory(path):.0f} MiB", "bounded")


if __name__ == "__main__":
    main()
