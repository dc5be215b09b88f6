"""Checks if this machine can run a lab."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec

from dtdebug_taxonomy.knowledge.labs import Lab

_SECONDS = 10


def what_is_missing(lab: Lab) -> str:
    """Return the missing requirements in a few words; empty if there are none."""
    if not sys.platform.startswith("linux"):
        return "labs run on Linux only"
    if lab.runs != "cpu":
        return {"gpu": "needs GPUs", "cluster": "needs several hosts"}[lab.runs]
    missing = [f"the Python module {name}" for name in lab.needs.modules if find_spec(name) is None]
    missing += [name for name in lab.needs.tools if shutil.which(name) is None]
    missing += [means for name, (means, there) in _LINUX.items() if name in lab.needs.linux and not there()]
    return f"needs {', '.join(missing)}" if missing else ""


def _network_namespaces() -> bool:
    """True if the user may create a network namespace with a network interface in it."""
    card = ("ip", "link", "add", "card0", "type", "veth", "peer", "name", "card1")
    try:
        tried = subprocess.run(
            ["unshare", "--map-root-user", "--net", *card], timeout=_SECONDS, check=False, capture_output=True
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return tried.returncode == 0


def _limits() -> bool:
    """True if the address space can be limited."""
    return find_spec("resource") is not None


_LINUX: dict[str, tuple[str, Callable[[], bool]]] = {
    "netns": ("network namespaces", _network_namespaces),
    "ulimit": ("limits of memory", _limits),
}
