"""Examines one host before it meets the others."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

from dtdebug.doctor.host import (
    bounded_calls,
    dcgm,
    devices,
    fabric,
    interface_choice,
    interfaces,
    resources,
    software,
    throughput,
    torch_import,
)
from dtdebug.doctor.types import HostProblem, HostReport, Launch
from dtdebug.live.probe.deadline_threads import begin
from dtdebug.privacy.sanitize import one_line
from dtdebug_taxonomy import __version__

T = TypeVar("T")


class Extra(NamedTuple):
    """Optional checks that take more than a moment."""

    heavy: bool = False
    torch: bool = False
    command: tuple[str, ...] = ()


_NOTHING = Extra()
_LIMIT = 6.0
"""Seconds to wait for one part of the examination."""


def examine_host(launch: Launch, variables: Mapping[str, str], more: Extra = _NOTHING) -> HostReport:
    """Return this host's report within a fraction of a second; a probe that raises is reported as unread."""
    began = time.monotonic()
    unread: dict[str, str] = {}

    def run_probe(what: str, probe: Callable[[], T], limit: float = _LIMIT) -> T | None:
        try:  # in a thread: a hung file system must not block the examination
            return begin([probe], time.monotonic() + 1.0)[0].result(timeout=limit)
        except TimeoutError:
            unread[what] = f"no answer in {limit:g} s: a file system or resolver hangs"
            return None
        except Exception as error:
            unread[what] = f"internal error: {type(error).__name__}: {one_line(str(error), 200)}"
            return None

    cards = run_probe("interfaces", interfaces.interfaces) or ()
    own = interfaces.resolve(socket.gethostname())
    endpoint = interfaces.resolve(launch.address)
    resources_seen = run_probe("hosts", lambda: resources.resource_problems(launch, variables))
    problems, figures, why = resources_seen or ([], {}, {})
    unread |= why
    home = Path(launch.program).parent
    if bounded_calls.folder_answers(home):
        files, reason = run_probe("code", lambda: software.hashed_files(launch.program, launch.arguments)) or ({}, "")
    else:
        files, reason = {}, f"{home} does not answer"
        words = f"no answer in {bounded_calls.FOLDER_LIMIT:g} s"
        text = f"{home}, where the program is, does not answer"
        problems.append(HostProblem(id="DR508", text=text, measured=words, expected="a folder that can be read"))
    if reason:
        unread["code"] = reason
    if reason.endswith(software.MISSING) and "$" not in launch.program:
        problems.append(
            HostProblem(
                id="DR407",
                text=f"{reason} (looked for in {Path.cwd()})",
                measured=reason,
                expected="the program of the launch command",
            )
        )
    if launch.nodes == 1:
        problems += run_probe("launch", lambda: resources.port(launch)) or ()
    loaded: dict[str, str] = {}
    if more.heavy:
        rates_seen = run_probe("speed", lambda: throughput.rates(variables.get("TMPDIR", "/tmp")), 15.0)  # noqa: S108
        figures |= rates_seen[0] if rates_seen else {}
        if rates_seen and rates_seen[1]:
            unread["speed"] = rates_seen[1]
    if more.torch:
        wrong, loaded = run_probe("torch", lambda: torch_import.torch(more.command, variables), 200.0) or ([], {})
        problems += wrong
    seen = run_probe("devices", devices.devices) or devices.DriverAnswer()
    if seen.why:
        unread["devices"] = seen.why
    fabric_seen = run_probe("fabric", fabric.ports) or ()
    if more.heavy and seen.boards:
        wrong, why_not = run_probe("diagnostics", dcgm.run_diagnostics, dcgm.LIMIT + 5.0) or ([], "")
        problems += wrong
        if why_not:
            unread["diagnostics"] = f"DCGM: {why_not}"
    problems += [*devices.judge(seen.boards or ()), *fabric.judge(fabric_seen, variables)]
    return HostReport(
        host=socket.gethostname(),
        boot=_boot(),
        version=__version__,
        launch=launch,
        interfaces=cards,
        own=own,
        endpoint=endpoint,
        takes_itself=bool(launch.address) and bool(run_probe("names", lambda: interfaces.takes_itself(launch.address))),
        owns=bool(set(endpoint.addresses) & interfaces.own_addresses(cards)),
        gloo=interface_choice.gloo(cards, own, variables),
        nccl=interface_choice.nccl(cards, variables),
        versions=(run_probe("versions", software.versions) or {}) | loaded,
        files=files,
        variables=run_probe("variables", lambda: software.variables_to_compare(variables)) or {},
        place=str(Path.cwd()),
        container=resources.container(variables),
        devices=tuple(b.name for b in seen.boards) if seen.boards is not None else None,
        boards=seen.boards or (),
        driver=seen.driver,
        fabric=fabric_seen,
        topology=run_probe("topology", devices.topology) or "",
        has_devices=devices.has_some(),
        figures=figures,
        problems=tuple(problems),
        unread=unread,
        seconds=round(time.monotonic() - began, 3),
    )


def _boot() -> str:
    """Return an id of the kernel and network namespace: two launchers on one host share it."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:  # noqa: PTH123
            return f"{file.read(64).strip()}/{os.stat('/proc/self/ns/net').st_ino}"  # noqa: PTH116
    except OSError:
        return ""
