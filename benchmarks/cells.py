"""What a failed cell costs: the time until its reply, with the extension and without it, kernels by turns.

`python benchmarks/cells.py [ROUNDS [PAUSE]]` prints seconds of the first ordinary error after
`import torch.distributed`, of later ones, and of a cell that passes. In a pause (seconds, as a person makes) before the
first, what a diagnosis needs is loaded.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from jupyter_client.manager import start_new_kernel

LATER, SECONDS = 8, 120
"""Ordinary errors after the first, and cells that pass; bound of one cell."""
IMPORTS = "import torch.distributed"
KINDS = ("first error", "later error", "passing cell")


def seconds_of_cells(home: Path, pause: float, *, loaded: bool) -> dict[str, list[float]]:
    """Return the seconds of each kind of cell in a fresh kernel."""
    environment = {**os.environ, "DTDEBUG_STATE": str(home / "state"), "IPYTHONDIR": str(home / "ipython")}
    manager, client = start_new_kernel(startup_timeout=SECONDS, kernel_name="python3", cwd=str(home), env=environment)

    def cell(source: str) -> float:
        begin = time.perf_counter()
        client.execute_interactive(source, timeout=SECONDS, allow_stdin=False, output_hook=lambda _: None)
        return time.perf_counter() - begin

    try:
        cell(IMPORTS)
        cell("%load_ext dtdebug" if loaded else "pass")
        time.sleep(pause)
        taken: dict[str, list[float]] = {kind: [] for kind in KINDS}
        for number in range(1 + LATER):
            kind = KINDS[1 if number else 0]
            taken[kind].append(cell(f"def f{number}(cfg):\n    return cfg['lr{number}']\nf{number}({{}})"))
            taken[KINDS[2]].append(cell(f"x = {number}"))
        return taken
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def main(rounds: int, pause: float) -> None:
    """Measure and print."""
    all_seconds: dict[bool, dict[str, list[float]]] = {loaded: {k: [] for k in KINDS} for loaded in (False, True)}
    for number in range(2 * rounds):
        loaded = number % 2 == (number // 2) % 2
        with tempfile.TemporaryDirectory() as home:
            for kind, taken in seconds_of_cells(Path(home), pause, loaded=loaded).items():
                all_seconds[loaded][kind] += taken
    print(f"{'median of':<14}{'without':>10}{'with':>10}{'extra':>10}   ({rounds} kernels each, after {pause:g} s)")
    for kind in KINDS:
        without, with_ours = (statistics.median(all_seconds[loaded][kind]) for loaded in (False, True))
        print(f"{kind:<14}{without:>9.3f}s{with_ours:>9.3f}s{with_ours - without:>9.3f}s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4, float(sys.argv[2]) if len(sys.argv) > 2 else 0)
