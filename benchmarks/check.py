"""Measures lines per second of `dtdebug check` over a large tree, next to `ruff check` in the same run.

python benchmarks/check.py [FOLDER ...]    default: the installed packages, copied until a million lines are there
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

WANTED = 1_000_000


def main(folders: list[str]) -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as scratch:
        roots = [Path(f) for f in folders] or [_tree(Path(scratch))]
        files = [f for root in roots for f in root.rglob("*.py")]
        lines = sum(f.read_bytes().count(b"\n") for f in files)
        concerned = sum(b"distributed" in f.read_bytes() for f in files)
        print(f"{len(files)} files, {lines:,} lines; {concerned} files say `distributed`; {os.cpu_count()} cores")
        ours = _timed([sys.executable, "-m", "dtdebug", "check", "--no-cache", "--format", "json", *map(str, roots)])
        one = _timed(
            [
                sys.executable,
                "-m",
                "dtdebug",
                "check",
                "--no-cache",
                "--jobs",
                "1",
                "--format",
                "json",
                *map(str, roots),
            ]
        )
        again = [sys.executable, "-m", "dtdebug", "check", "--format", "json", *map(str, roots)]
        state = {**os.environ, "DTDEBUG_STATE": str(Path(scratch) / "state")}
        _timed(again, state)
        warm = _timed(again, state)
        peer = _timed([sys.executable, "-m", "ruff", "check", "--no-cache", "--isolated", "--quiet", *map(str, roots)])
    print(f"dtdebug check          {ours:6.1f} s  {lines / ours:10,.0f} lines/s")
    print(f"dtdebug check --jobs 1 {one:6.1f} s  {lines / one:10,.0f} lines/s")
    print(f"unchanged files        {warm:6.1f} s  {lines / warm:10,.0f} lines/s")
    print(
        f"ruff check             {peer:6.1f} s  {lines / peer:10,.0f} lines/s; dtdebug: {ours / peer:.1f} times as long"
    )
    print(f"largest process        {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024:.0f} MiB")


def _tree(scratch: Path) -> Path:
    """Copy the installed packages repeatedly until there are enough lines."""
    packages = Path(sysconfig.get_path("purelib"))
    root, lines, copy = scratch / "tree", 0, 0
    while lines < WANTED:
        for name in ("torch", "ray", "distributed", "jupyterlab", "IPython", "hypothesis"):
            if (packages / name).is_dir() and lines < WANTED:
                target = root / f"{name}{copy}"
                shutil.copytree(
                    packages / name, target, ignore=shutil.ignore_patterns("*.so*", "*.h", "static", "bin", "lib")
                )
                lines += sum(f.read_bytes().count(b"\n") for f in target.rglob("*.py"))
        copy += 1
    return root


def _timed(command: list[str], environment: dict[str, str] | None = None) -> float:
    begin = time.perf_counter()
    subprocess.run(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, timeout=600, env=environment
    )
    return time.perf_counter() - begin


if __name__ == "__main__":
    main(sys.argv[1:])
