"""Measures how long it takes to locate a hanging cell: from a front end, from a subshell, from a terminal.

    python benchmarks/hang.py

Starts a Jupyter kernel for each way to hang (needs jupyter_client, ipykernel 7 for subshells, torch for the ranks) and
prints median seconds for each channel, after the very first question, for which ranks write dumps with stacks. The
target is about 1 s, whatever the cell does.
"""

from __future__ import annotations

import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty
from typing import Any

import psutil
from jupyter_client.manager import start_new_kernel

from dtdebug.notebook.attach_client import ask_kernel

REPEATS, PATIENCE = 5, 30
JOB = """
import datetime, os, sys
import torch, torch.distributed as dist

def train(rank, store):
    limit = datetime.timedelta(seconds=90)
    place = f"file://{os.path.abspath(store)}"
    dist.init_process_group("gloo", init_method=place, rank=rank, world_size=2, timeout=limit)
    x = torch.ones(4)
    dist.all_reduce(x)
    print(f"begun {rank}", flush=True)
    if rank == 0:
        dist.all_reduce(x)
    dist.barrier()

if __name__ == "__main__":
    train(int(os.environ["RANK"]), sys.argv[1])
"""
STORE = """import datetime, torch.distributed as dist
print("begun", flush=True)
dist.TCPStore("127.0.0.1", 0, 2, True, datetime.timedelta(seconds=90), False).get("nobody")
"""
RANKS = ("begun 0", "begun 1")
WAYS: dict[str, tuple[str, tuple[str, ...]]] = {
    "time.sleep": ("import time\nprint('begun', flush=True)\ntime.sleep(90)", ("begun",)),
    "Python loop": ("print('begun', flush=True)\nwhile True: pass", ("begun",)),
    "TCPStore wait": (STORE, ("begun",)),
    "C call that holds the GIL": (
        "import ctypes, time\nprint('begun', flush=True)\ntime.sleep(.3)\nctypes.PyDLL(None).sleep(60)",
        ("begun",),
    ),
    "mp.spawn, 2 ranks": ("import job, torch.multiprocessing as mp\nmp.spawn(job.train, ('store',), 2)", RANKS),
    "!torchrun, 2 ranks": ("!torchrun --standalone --nproc-per-node 2 job.py store", RANKS),
}


@contextmanager
def kernel(home: Path) -> Iterator[tuple[Any, Any]]:
    """Start a kernel with the extension; it and its ranks are ended at the end."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    (home / "job.py").write_text(JOB)
    environment = {**os.environ, "DTDEBUG_STATE": str(home / "state"), "OMP_NUM_THREADS": "1", "PATH": path}
    manager, client = start_new_kernel(cwd=str(home), env=environment)
    try:
        client.execute_interactive("%load_ext dtdebug", timeout=PATIENCE)
        yield manager, client
    finally:
        family = psutil.Process(manager.provisioner.pid).children(recursive=True)
        group = manager.provisioner.pgid
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
        for process in family:
            with suppress(psutil.Error):
                process.kill()


def begin(client: Any, source: str, signs: tuple[str, ...]) -> None:
    """Run a cell that hangs, up to a few seconds after its signs, because shorter waits don't count as a hang."""
    client.execute(source)
    printed, end = "", time.monotonic() + PATIENCE
    while not all(sign in printed for sign in signs) and time.monotonic() < end:
        with suppress(Empty):
            printed += client.get_iopub_msg(timeout=1)["content"].get("text", "")
    time.sleep(4 if len(signs) > 1 else 0.5)


def reply(channel: Any, request: str) -> dict[str, Any]:
    """Return the content of the reply to a request."""
    while True:
        message = channel(timeout=10)
        if message["parent_header"].get("msg_id") == request:
            content: dict[str, Any] = message["content"]
            return content


def by_message(client: Any) -> str:
    """Send our message on the control channel."""
    request = client.session.msg("dtdebug_request", {"kind": "hang"})
    client.control_channel.send(request)
    return str(reply(client.control_channel.get_msg, request["header"]["msg_id"])["text"])


def by_subshell(client: Any) -> str:
    """Run `%dtdebug hang` in a subshell."""
    made = client.session.msg("create_subshell_request", {})
    client.control_channel.send(made)
    subshell = reply(client.control_channel.get_msg, made["header"]["msg_id"])["subshell_id"]
    content = {"code": "%dtdebug hang", "silent": False, "store_history": False, "user_expressions": {}}
    request = client.session.msg("execute_request", {**content, "allow_stdin": False, "stop_on_error": True})
    request["header"]["subshell_id"] = subshell
    client.shell_channel.send(request)
    return str(reply(client.get_shell_msg, request["header"]["msg_id"])["status"])


def timed(ask: Callable[[], object]) -> str:
    """Return the median seconds of several questions, or a dash if none was answered."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        try:
            if ask() is None:
                return "-"
        except (Empty, KeyError):
            return "-"
        times.append(time.perf_counter() - start)
    return f"{statistics.median(times):.2f}"


def main() -> None:
    """Print the table."""
    head = f"{'the cell hangs in':<28}{'message':>9}{'subshell':>10}{'terminal':>10}{'first':>8}"
    print(f"{head}   first line of the answer")
    for name, (source, signs) in WAYS.items():
        with tempfile.TemporaryDirectory() as folder, kernel(Path(folder)) as (manager, client):
            os.environ["DTDEBUG_STATE"] = str(Path(folder) / "state")
            begin(client, source, signs)
            start = time.perf_counter()
            answer = ask_kernel(manager.connection_file)
            first = time.perf_counter() - start
            outside = timed(lambda file=manager.connection_file: ask_kernel(file))  # type: ignore[misc]
            inside = answer is not None and answer.road == "control channel"
            message = timed(lambda c=client: by_message(c)) if inside else "-"  # type: ignore[misc]
            subshell = timed(lambda c=client: by_subshell(c)) if inside else "-"  # type: ignore[misc]
            line = answer.text.splitlines()[0] if answer else ""
            print(f"{name:<28}{message:>9}{subshell:>10}{outside:>10}{first:>8.2f}   {line[:90]}", flush=True)


if __name__ == "__main__":
    main()
