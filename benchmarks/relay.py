"""Measures the cost of relaying a job's output, next to the same job alone and through `cat`, alternating.

    python benchmarks/relay.py [MEGABYTES]

A flood of whole lines, 10,000 lines a second written one by one, and a flood while the state directory is on a disk
where each write takes 2 s (a library that is loaded before libc: needs a C compiler).
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TURNS = 3
LIMIT = 300
FLOOD = (
    "import os\nline = b'step 100: loss 0.1234 grad_norm 1.234 lr 1e-4\\n'\nblock = line * (65536 // len(line))\n"
    "for _ in range({megabytes} * 10**6 // len(block)): os.write(1, block)"
)
LINES = (
    "import os, time\nbegin = time.perf_counter()\nfor n in range(50_000):\n"
    "    os.write(1, b'step %d: loss 0.1234\\n' % n)\n"
    "    if n % 100 == 0: time.sleep(max(0, begin + n / 10_000 - time.perf_counter()))"
)
SLOW = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
ssize_t write(int fd, const void *data, size_t size) {
    static ssize_t (*real)(int, const void *, size_t);
    char link[64], path[4096];
    if (!real) real = dlsym(RTLD_NEXT, "write");
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    const char *slow = getenv("SLOW_BELOW");
    if (n > 0 && slow && !strncmp(path, slow, strlen(slow))) sleep(2);
    return real(fd, data, size);
}
"""


def seconds(command: list[str], environment: dict[str, str]) -> float:
    """Return the seconds from the start of the command to the end of its output, which is discarded."""
    begin = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, start_new_session=True) as job:
        assert job.stdout is not None
        while os.read(job.stdout.fileno(), 1 << 20):
            pass
        spent = time.perf_counter() - begin
        assert job.wait(LIMIT) == 0
    return spent


def ways(code: str, environment: dict[str, str]) -> tuple[float, float, float]:
    """Return the seconds alone, through `cat`, and with dtdebug."""
    job, plain = [sys.executable, "-c", code], os.environ.copy()
    ours = [sys.executable, "-m", "dtdebug", "run", "--", *job]
    return seconds(job, plain), seconds(["sh", "-c", '"$@" | cat', "sh", *job], plain), seconds(ours, environment)


def row(what: str, code: str, environment: dict[str, str], megabytes: float) -> None:
    """Print one line of the table."""
    turns = [ways(code, environment) for _ in range(TURNS)]
    alone, cat, ours = (statistics.median(times) for times in zip(*turns, strict=True))
    print(
        f"{what:<42}{alone:8.2f} s alone{cat:8.2f} s through cat{ours:8.2f} s with dtdebug"
        f"  {megabytes / ours:8,.0f} MB/s  worst {max(o - a for a, _, o in turns):+.2f} s, "
        f"load {os.getloadavg()[0]:.0f}",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    with tempfile.TemporaryDirectory() as folder:
        state = os.environ | {"DTDEBUG_STATE": f"{folder}/state"}
        row("nothing printed", "pass", state, 0)
        row(f"{megabytes:,} MB in whole lines", FLOOD.format(megabytes=megabytes), state, megabytes)
        row("10,000 lines a second for 5 s", LINES, state, 50_000 * 22 / 1e6)
        library = Path(folder) / "slow.so"
        compiler = ["cc", "-shared", "-fPIC", "-o", str(library), "-x", "c", "-"]
        subprocess.run(compiler, input=SLOW, text=True, check=True, timeout=LIMIT)
        slow = state | {"LD_PRELOAD": str(library), "SLOW_BELOW": f"{folder}/state"}
        row(f"{megabytes:,} MB, 2 s for each write to disk", FLOOD.format(megabytes=megabytes), slow, megabytes)


if __name__ == "__main__":
    main()
