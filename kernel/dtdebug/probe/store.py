"""Reads the addresses that agents have put into their job's own store, from a process that is no rank.

The store speaks PyTorch's protocol, and this program imports no torch: a short script in the job's own Python reads it.
It only looks: a key that is absent is not waited for. When the store's host has ended, there is nothing to read.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from dtdebug_taxonomy.ranks import MOST_RANKS

TIMEOUT = 30.0
"""Seconds for importing torch and reading."""
_SCRIPT = """
import datetime, json, sys
from torch.distributed import TCPStore
host, port, world, timeout = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
store = TCPStore(host, port, is_master=False, wait_for_workers=False, timeout=datetime.timedelta(seconds=timeout))
names = {}
try:
    names = {key: int(key.rpartition("dtdebug/")[2]) for key in store.list_keys()
             if "dtdebug/" in key and key.rpartition("dtdebug/")[2].isdecimal()}
except Exception:  # before torch 2.9 a store can't list its keys
    for attempt in [None, *range(8)]:
        outer = "" if attempt is None else "/worker/attempt_%d/" % attempt
        for prefix in (outer, outer + "default_pg/", outer + "default_pg/0/"):
            for rank in range(world):
                key = "%sdtdebug/%d" % (prefix, rank)
                if store.check([key]):
                    names[key] = rank
found = {}
for key in sorted(names):  # a later attempt's name sorts after an earlier one's
    found[names[key]] = store.get(key).decode(errors="replace")[:300]
json.dump(found, sys.stdout)
"""


class StoreError(Exception):
    """The store could not be read; the text says why."""


def addresses(
    host: str, port: int, *, python: str = sys.executable, world: int = 1, timeout: float = TIMEOUT
) -> dict[int, str]:
    """`host:port` of the agent of each rank, as the job's store at that place has them.

    Raises:
        StoreError: there is no store any more, it does not answer in time, or that Python has no torch.

    """
    try:
        socket.create_connection((host, port), timeout=min(timeout, 2.0)).close()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise StoreError(f"no store at {host}:{port} any more, the process that kept it has ended: {why}") from error
    command = [python, "-c", _SCRIPT, host, str(port), str(world), str(timeout)]
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, timeout=timeout, stdin=subprocess.DEVNULL, cwd="/"
        )
    except subprocess.TimeoutExpired:
        raise StoreError(f"the store at {host}:{port} did not answer within {timeout:g} s") from None
    except OSError as error:
        raise StoreError(f"{python} can't be started: {error.strerror}") from error
    said = done.stderr.decode(errors="replace").strip().splitlines()
    if done.returncode:
        raise StoreError(f"the store at {host}:{port} can't be read: {said[-1][:200] if said else 'no reason given'}")
    try:
        found = msgspec.json.decode(done.stdout[: 64 << 20], type=dict[int, str])
    except msgspec.MsgspecError as error:
        raise StoreError(f"the store at {host}:{port} holds something else: {error}") from error
    return {rank: text for rank, text in found.items() if 0 <= rank < MOST_RANKS}


def store_address(variables: Mapping[str, str]) -> tuple[str, int] | None:
    """Host and port of the store in the environment of a rank."""
    host, port = variables.get("MASTER_ADDR", ""), variables.get("MASTER_PORT", "")
    return (host, int(port)) if host and port.isdecimal() and int(port) < 65536 else None


def python_of(command: tuple[str, ...], variables: Mapping[str, str]) -> str:
    """The Python that a rank runs, so that its torch is the one that reads the store; else our own."""
    program = command[0] if command else ""
    if Path(program).is_absolute() and "python" in Path(program).name:
        return program
    home = variables.get("VIRTUAL_ENV") or variables.get("CONDA_PREFIX")
    inside = Path(home) / "bin" / "python" if home else None
    return str(inside) if inside is not None and inside.exists() else sys.executable
