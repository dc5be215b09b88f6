"""Types of the report: the contract of `dtdebug doctor --format json`."""

from __future__ import annotations

from typing import Literal

import msgspec

from dtdebug.doctor.types import VERSION, Severity

State = Literal["ok", "fault", "warning", "unknown"]
AREAS = ("launch", "names", "interfaces", "network", "versions", "code", "hosts", "devices", "partition")


class Remedy(msgspec.Struct, frozen=True, kw_only=True):
    """Suggested fix."""

    text: str = ""
    commands: tuple[str, ...] = ()
    export: dict[str, str] = {}


class HostFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Problem found before the run."""

    id: str
    area: str
    severity: Severity
    text: str
    hosts: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    measured: str = ""
    expected: str = ""
    symptom: tuple[str, ...] = ()
    fix: Remedy = Remedy()


class HostRow(msgspec.Struct, frozen=True, kw_only=True):
    """Host in the report."""

    host: str
    node: int | None = None
    came: bool = True
    address: str = ""


class Area(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the report."""

    id: str
    state: State
    text: str = ""


class UnexaminedArea(msgspec.Struct, frozen=True, kw_only=True):
    """Area that was not examined, and why."""

    id: str
    why: str


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    """Measurements between each two hosts, if there are few."""

    hosts: tuple[str, ...] = ()
    milliseconds: tuple[tuple[float | None, ...], ...] = ()
    """Round trips by caller and called; -1 if the connection or large messages fail, None if not tried."""
    rates: tuple[tuple[tuple[int, int], float], ...] = ()
    """((sender, receiver), million bytes per second)."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `dtdebug doctor`."""

    v: int = VERSION
    seconds: float = 0.0
    backend: str = ""
    ranks: int | None = None
    hosts: tuple[HostRow, ...] = ()
    areas: tuple[Area, ...] = ()
    findings: tuple[HostFinding, ...] = ()
    pairs: int = 0
    """Pairs of hosts that were tried, in at least one direction."""
    matrix: Matrix = Matrix()
    rates: str = ""
    """Throughput of the pairs, if measured."""
    hidden: int = 0
    """Number of omitted findings: consequences of others, and those beyond the twentieth."""
    forecast: dict[str, str] = {}
    export: dict[str, str] = {}
    """Settings that were measured to help."""
    pinned: dict[str, str] = {}
    """Settings that pin what was measured to work."""
    not_examined: tuple[UnexaminedArea, ...] = ()
    observations: dict[str, str] = {}
    """Answers to the wizard's questions."""
    grounds: dict[str, str] = {}
    """Source of each observation."""
