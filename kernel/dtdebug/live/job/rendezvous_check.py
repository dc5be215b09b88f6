"""Finds a running job whose launchers have not connected: on this host, and in the other hosts' records."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from dtdebug.live.hosts import launcher_state, presence, rendezvous_verdict
from dtdebug.live.job.conclude import conclude
from dtdebug.live.job.observe import LiveRanks
from dtdebug.storage.run_folder import RunFolder
from dtdebug_taxonomy.model.hosts import Host
from dtdebug_taxonomy.presentation.case_json import Case


def unmet(folder: RunFolder | None, pids: Sequence[int]) -> Case | None:
    """Return the case of a multi-host launcher that has started no rank; None if there is none."""
    here = socket.gethostname()
    known = presence.read_hosts(folder) if folder is not None else []
    run = folder.load_run() if folder is not None else None
    tops = [*pids, *(h.pid for h in known if h.name == here and h.pid and h.finished is None)]
    if run is not None and run.pid and run.host == here and run.finished is None:
        tops.append(run.pid)
    found = next((way for pid in dict.fromkeys(tops) if (way := launcher_state.waiting(pid)) is not None), None)
    if found is None:
        return None
    plan, meeting = found
    own = Host(name=here, plan=plan, addresses=launcher_state.addresses(), meeting=meeting)
    others = [h for h in known if (h.name, h.plan.node) != (here, plan.node) and h.silent < presence.GONE]
    together = [own, *others]
    if not rendezvous_verdict.is_waiting(together):
        return None
    return conclude(None, LiveRanks(verdict=rendezvous_verdict.rendezvous_verdict(together)), hosts=together)
