"""Entry of a run into a folder that the user named: as the first host of its job, as a further one, or not at all."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from dtdebug.live.hosts.job_plan import plan, ranks_command
from dtdebug.live.hosts.presence import GONE, itself, make, own_file_name, read_hosts, save_host
from dtdebug.live.probe.liveness import living
from dtdebug.privacy.sanitize import clean_command, one_line
from dtdebug.storage.run_folder import Run, RunFolder
from dtdebug_taxonomy.model.hosts import Host

_OVER = 120.0
"""Seconds without an update from any host after which a run is over."""
_OURS = frozenset(("ranks", "flight", "stacks", "errors", "hosts", "token", "ask"))
_PASSING = (".run.json", ".dtdebug-", ".token.", ".ask.")
"""Prefixes of temporary files that another host creates there as it enters."""


def refusal(path: Path, command: Sequence[str]) -> str:
    """Return why a run can't collect into a folder that the user named; empty if it can, as first or further host.

    Raises:
        OSError: the folder can't be read.

    """
    if not path.exists():
        return ""
    if not path.is_dir():
        return "is no folder"
    folder = RunFolder(path)
    run = folder.load_run()
    if run is None:
        foreign = any(p.name not in _OURS and not p.name.startswith(_PASSING) for p in path.iterdir())
        run = folder.load_run() if foreign else None  # another host has entered meanwhile
    if run is None:
        return "is not an empty folder; name a new one" if foreign else ""
    known = read_hosts(folder)
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.started))
    if ranks_command(run.command) != ranks_command(clean_command(command)):
        return f"holds another job ({one_line(' '.join(run.command), 200)}), started {when}; name a new folder"
    job = itself(command).job
    other = next((h for h in known if any(h.job.get(k, v) != v for k, v in job.items())), None)
    if other is not None:
        return f"holds an earlier job, started {when}; name a new folder"
    node, here = plan(command, os.environ).node, socket.gethostname()
    earlier = [h for h in known if h.name == here and h.plan.node == node and _has_ended(h)]
    if earlier or not known or min(h.silent for h in known) > _OVER:
        return f"holds a run that has ended, started {when}; name a new folder"
    return ""


def enter(path: Path, command: Sequence[str]) -> RunFolder:
    """Return the folder for the run on this host, as the job's first or a further one.

    Raises:
        OSError: it can't be written.

    """
    folder = RunFolder(path)
    for part in (folder.ranks, folder.flight, folder.stacks, folder.errors, folder.hosts):
        part.mkdir(mode=0o700, exist_ok=True)
    words = clean_command(command)
    run = Run(command=words, started=time.time(), host=socket.gethostname(), pid=os.getpid())
    save_host(folder, itself(command))
    first = make(path / "run.json", msgspec.json.encode(run))
    return folder if first else RunFolder(path, output=folder.hosts / f"{own_file_name()}.log")


def _has_ended(host: Host) -> bool:
    """True if a run on this host has ended."""
    return host.finished is not None or (host.silent > GONE and not living([host.pid]))
