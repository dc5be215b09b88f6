"""Starts a job of several hosts on this one, one torchrun agent per host.

The command is `python -m dtdebug.experiments.isolate.local_agents N ...`.

The first agent that fails decides the exit status; the others are terminated then, as on a cluster.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

_LOOK, _PATIENCE = 0.2, 30.0
"""Seconds between two polls, and seconds for the other agents to end."""
_GPUS = Path("/proc/driver/nvidia/gpus")


def agents_command(launch: Sequence[str], options: Sequence[str], agents: int) -> list[str]:
    """Return the command that starts the agents: `launch` up to torchrun, then `options`."""
    return [
        sys.executable,
        "-P",
        "-m",
        "dtdebug.experiments.isolate.local_agents",
        str(agents),
        str(len(launch)),
        *launch,
        *options,
    ]


def fits(agents: int, ranks: int) -> bool:
    """True if each rank can have its own GPU, or if there are no GPUs."""
    found = gpu_count()
    return not found or found >= agents * ranks


def gpu_count() -> int:
    """Return the number of NVIDIA GPUs on this host."""
    try:
        return len(list(_GPUS.iterdir()))
    except OSError:
        return 0


def main(words: Sequence[str]) -> int:
    """Run the agents and return the exit status of the first that failed."""
    number, split = int(words[0]), int(words[1])
    launch, options = words[2 : 2 + split], words[2 + split :]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    agents = []
    signal.signal(signal.SIGTERM, _end)
    try:
        for rank in range(number):
            given = ["--nnodes", str(number), "--node-rank", str(rank), "--master-addr", "127.0.0.1"]
            place = [*launch, *given, "--master-port", str(port), *options]
            agents.append(subprocess.Popen(place, env=_environment(rank, number)))
        return _wait(agents)
    finally:
        for agent in agents:
            if agent.poll() is None:
                agent.terminate()
        for agent in agents:
            try:
                agent.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                agent.kill()


def _wait(agents: Sequence[subprocess.Popen[bytes]]) -> int:
    failed, until = 0, 0.0
    while any(agent.poll() is None for agent in agents):
        failed = failed or next((agent.returncode for agent in agents if agent.returncode), 0)
        if failed:
            until = until or time.monotonic() + _PATIENCE
            if time.monotonic() > until:
                break
        time.sleep(_LOOK)
    failed = failed or next((agent.returncode for agent in agents if agent.returncode), 0)
    return 128 - failed if failed < 0 else failed


def _environment(rank: int, number: int) -> dict[str, str]:
    """Return an environment in which an agent sees only its share of the GPUs, as if it were a separate host."""
    found = gpu_count()
    if not found:
        return dict(os.environ)
    each = found // number
    mine = range(rank * each, (rank + 1) * each)
    return os.environ | {"CUDA_VISIBLE_DEVICES": ",".join(map(str, mine))}


def _end(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
