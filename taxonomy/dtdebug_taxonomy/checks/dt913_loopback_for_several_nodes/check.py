"""Addresses and interfaces that work on one machine only, in jobs of several."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.launching import LOOPBACK, nodes, nodes_of_job
from dtdebug_taxonomy.source.config.document import Config
from dtdebug_taxonomy.source.config.tree import number
from dtdebug_taxonomy.source.shell.launch import LaunchCommand, launches
from dtdebug_taxonomy.source.shell.script import Script, script_of
from dtdebug_taxonomy.source.source import Source, Variable

_NUMBERS = ("--node-rank", "--node_rank", "--machine_rank", "--machine-rank")
_ADDRESSES = ("--rdzv-endpoint", "--master-addr", "--master_addr", "--main_process_ip")


def check(source: Source) -> Iterator[Hit]:
    """Report the address that the nodes get, or that none is given if the default is localhost."""
    script = script_of(source)
    found = list(launches(script)) if script else []
    several = [x for x in found if script and (nodes(script, x) or 0) > 1]
    for launch in several:
        if script:
            yield from _address(script, launch, nodes(script, launch) or 2)
    if isinstance(source, Script) and (several or (nodes_of_job(source) or 0) > 1):
        for variable in source.variables:
            if variable.is_set and not (found and variable.name == "MASTER_ADDR"):  # launchers set it themselves
                yield from _variable(source, variable)
    if isinstance(source, Config):
        yield from _config_hits(source)


def _address(script: Script, launch: LaunchCommand, many: int) -> Iterator[Hit]:
    for name in _ADDRESSES:
        given = launch.options.get(name)
        if given is None or given.value is None:
            continue
        text = script.resolve(given.value.text)
        if LOOPBACK.match(text):
            yield Hit(
                given.value.inner,
                f"Each of the {many} nodes looks for the others at its own {text}: they never meet, and all wait.",
                severity="hint" if _is_for_the_first(script, launch) else None,
            )
        if launch.launcher != "torchrun" or name == "--rdzv-endpoint" or not _dynamic(script, launch):
            return
    if launch.launcher != "torchrun" or not launch.certain or "--standalone" in launch.options:
        return
    if re.search(r"--(master[-_]addr|rdzv[-_]endpoint)\b", script.text) and not {*_ADDRESSES} & launch.options.keys():
        return  # it is given, in a part that is inserted later
    if (
        "PET_" in script.text or "PyTorchJob" in script.text
    ):  # torchrun takes options from variables, which an operator sets
        return
    ignored = " and does not read --master-addr" if "--master-addr" in launch.options else ""
    option = "--rdzv-endpoint" if _dynamic(script, launch) else "--master-addr"
    if not _dynamic(script, launch) and "MASTER_ADDR" in script.assignments:
        ignored = ", and the variable MASTER_ADDR is not what it reads"
    yield Hit(
        launch.place,
        f"torchrun is given no {option}{ignored}: each of the {many} nodes takes localhost and waits there.",
    )


def _is_for_the_first(script: Script, launch: LaunchCommand) -> bool:
    """True if the node's number is written as 0: a file to edit on each node, correct for the first."""
    found = [launch.options.get(name) for name in _NUMBERS]
    return any(n and n.value and script.resolve(n.value.text) == "0" for n in found)


def _dynamic(script: Script, launch: LaunchCommand) -> bool:
    backend = launch.options.get("--rdzv-backend")
    return backend is not None and backend.value is not None and script.resolve(backend.value.text) != "static"


def _variable(script: Script, variable: Variable) -> Iterator[Hit]:
    value = variable.value or ""
    if not variable.value_span:
        return
    if variable.name == "MASTER_ADDR" and LOOPBACK.match(value) and len(script.assignments.get("MASTER_ADDR", ())) == 1:
        yield Hit(
            variable.value_span,
            f"The job has several nodes, and each looks for the master at its own {value}: they never meet.",
        )
    if variable.name in {"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"} and value.lstrip("=") == "lo":
        yield Hit(
            variable.value_span,
            "The interface lo leads to no other machine: the ranks of different nodes can't connect over it.",
        )


def _config_hits(document: Config) -> Iterator[Hit]:
    """Report Accelerate's own file."""
    for root in document.roots:
        address, many = root.get("main_process_ip"), number(root.get("num_machines"))
        if address and many and many > 1 and isinstance(address.value, str) and LOOPBACK.match(address.value):
            yield Hit(
                address.inner,
                f"Each of the {many} machines looks for the main process at its own {address.value}: they never meet.",
            )
