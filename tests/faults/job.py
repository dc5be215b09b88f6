"""A rank of a training-like gloo job in which one thing may go wrong; started by torchrun or by the injector."""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from training import loop, mesh
from training.plan import LAYOUTS, draw
from training.trouble import Trouble

OWN = str(Path(loop.__file__).resolve().parent)
"""Folder of the code that a fault can strike in."""
TICK = 0.02


class Witness:
    """Writes where this rank stands when it stops, is asked, fails or ends; and its flight recorder if wanted."""

    def __init__(self, folder: Path, rank: int, patience: float, *, flight: bool) -> None:
        self._folder, self._rank, self._patience, self._flight = folder, rank, patience, flight
        self._lock = threading.Lock()
        self._stands = False
        self._main = threading.main_thread().ident

    def start(self) -> None:
        """Begins to watch from a thread of its own."""
        threading.Thread(target=self._watch, daemon=True).start()

    def testify(self, failed: Exception | None = None) -> None:
        """Writes the stack of the main thread, or where it failed; and the dump once.

        A rank that stood still fails when the job is ended: then where it stood remains.
        """
        if failed is None:
            stack = traceback.extract_stack(sys._current_frames()[self._main or 0])
        else:
            stack = traceback.extract_tb(failed.__traceback__)
        places = [(frame.filename, frame.lineno) for frame in stack if frame.filename.startswith(OWN)]
        with self._lock:
            if failed is None or not self._stands:
                _write(self._folder / "stacks" / f"{self._rank}.json", json.dumps(places).encode())
            if self._flight and not (self._folder / f"rank_{self._rank}").exists():
                _write(self._folder / f"rank_{self._rank}", _recorder()(True, True, False))

    def _watch(self) -> None:
        empty = status = _recorder()(False, False, False)
        since = time.monotonic()
        while not (self._folder / "dump").exists():
            now = _recorder()(False, False, False)
            if now != status or now == empty:
                status, since, self._stands = now, time.monotonic(), False
            elif not self._stands and time.monotonic() - since > self._patience:
                self._stands = True
                self.testify()
            time.sleep(TICK)
        self.testify()


def main(argv: list[str] | None = None) -> None:
    """Trains for some steps."""
    options = _parser().parse_args(argv)
    timeout = timedelta(seconds=options.timeout)
    dist.init_process_group("gloo", timeout=timeout)
    rank, world = dist.get_rank(), dist.get_world_size()
    plan = draw(options.seed, options.layout, world, exchange=options.fault == "cycle")
    fired = options.witness and options.witness / "fired"
    trouble = Trouble(options.fault, options.spot, options.step, me=rank == options.rank, fired=fired)
    job = mesh.build(rank, plan, trouble, timeout)
    torch.manual_seed(options.seed)
    if options.witness is None:
        loop.train(job, options.steps)
        return
    witness = Witness(options.witness, rank, options.patience, flight=options.flight)
    witness.start()
    try:
        loop.train(job, options.steps)
        if not (trouble.me and options.fault == "return"):
            witness.testify()
    except Exception as error:
        witness.testify(error)
        raise


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fault", default="none")
    parser.add_argument("--spot", default="")
    parser.add_argument("--rank", type=int, default=-1)
    parser.add_argument("--step", type=int, default=3)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--layout", choices=LAYOUTS, default="world")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=60.0, help="of the groups, in seconds")
    parser.add_argument("--witness", type=Path, help="folder in which each rank writes where it stands")
    parser.add_argument("--patience", type=float, default=1.0, help="seconds without progress before it does so")
    parser.add_argument("--flight", action="store_true", help="writes the dumps of the flight recorder there, too")
    return parser


def _recorder() -> Callable[[bool, bool, bool], bytes]:
    recorder: Callable[[bool, bool, bool], bytes] = torch._C._distributed_c10d._dump_fr_trace  # type: ignore[attr-defined]
    return recorder


def _write(path: Path, content: bytes) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_bytes(content)
    partial.rename(path)


if __name__ == "__main__":
    main()
