"""The types of the answer: the contract of `dtdebug doctor --format json`."""

from __future__ import annotations

from typing import Literal

import msgspec

from dtdebug.doctor.facts import VERSION, Severity

State = Literal["ok", "fault", "warning", "unknown"]
AREAS = ("launch", "names", "interfaces", "network", "versions", "code", "hosts", "devices", "partition")


class Remedy(msgspec.Struct, frozen=True, kw_only=True):
    """What to do."""

    text: str = ""
    commands: tuple[str, ...] = ()
    export: dict[str, str] = {}


class HostFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Something that will go wrong."""

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
    """A host in the report."""

    host: str
    node: int | None = None
    came: bool = True
    address: str = ""


class Area(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the report."""

    id: str
    state: State
    text: str = ""


class Unexamined(msgspec.Struct, frozen=True, kw_only=True):
    """What was not looked at."""

    id: str
    why: str


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    """What each host measured of each other one; only of few hosts."""

    hosts: tuple[str, ...] = ()
    milliseconds: tuple[tuple[float | None, ...], ...] = ()
    """By caller and called: a round trip; -1 where the connection or large messages fail, None where none was tried."""
    rates: tuple[tuple[tuple[int, int], float], ...] = ()
    """((sender, receiver), million bytes a second)."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The answer."""

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
    """What pairs carried, where that was measured."""
    hidden: int = 0
    """Findings that are left out: consequences of others, and those beyond the twentieth."""
    forecast: dict[str, str] = {}
    export: dict[str, str] = {}
    """Settings that were measured to help."""
    pinned: dict[str, str] = {}
    """Settings that hold what was measured to work."""
    not_examined: tuple[Unexamined, ...] = ()
    observations: dict[str, str] = {}
    """Answers to the wizard's questions."""
    grounds: dict[str, str] = {}
    """How each of these is known."""
