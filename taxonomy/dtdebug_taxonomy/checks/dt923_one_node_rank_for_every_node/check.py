"""Node ranks that are the same on every node that runs the script."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.launching import nodes
from dtdebug_taxonomy.source.shell.launch import launches
from dtdebug_taxonomy.source.shell.script import Script

_OPTIONS = ("--node-rank", "--node_rank", "--machine_rank")
_NUMBERED = re.compile(r"(node|rank|host|machine|worker)[_-]?\d|(master|head|worker|slave|first|second)[^/]{0,40}$")
"""Names of scripts for one particular node."""
_SET = re.compile(r"(^|[\s;])[A-Za-z_]\w*=[\"']?\Z")


def check(script: Script) -> Iterator[Hit]:
    """Report the value if the script starts one node of several."""
    found = [x for x in launches(script) if not x.before and not x.command.branch]
    if len(found) != 1 or found[0].launcher not in {"torchrun", "accelerate launch"}:
        return
    launch = found[0]
    many = nodes(script, launch)
    given = next((launch.options[name] for name in _OPTIONS if name in launch.options), None)
    if many is None or many < 2 or given is None or given.value is None:
        return
    backend = launch.options.get("--rdzv-backend")
    text = given.value.text
    if not text.isdecimal() or _NUMBERED.search(script.path):
        return
    start = given.value.inner.start
    if _SET.search(script.text, max(0, start - 80), start):
        return  # a variable meant to be set on each node
    if backend is not None and backend.value is not None and backend.value.text != "static":
        return
    yield Hit(
        given.value.inner,
        f"The same script on each of the {many} nodes claims node {text}: they take each other's ranks, or wait for a "
        "node that never comes. Give it as an argument, or by a variable of the batch system.",
    )
