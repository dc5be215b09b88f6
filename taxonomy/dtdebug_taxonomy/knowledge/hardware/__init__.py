"""Reports of the machine below a job: the catalogue of its messages as data, and a parser of the kernel's lines."""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple

import msgspec

Owner = Literal["application", "device", "link", "driver", "host", "storage", "scheduler"]
"""Party that has to act: the program, or the owner of that part of the machine."""
Role = Literal["root", "cascade", "note", "end"]
"""root: may be what failed first; cascade: follows another error; note: no reason to act on its own; end: the job was
ended from outside."""

_XID = re.compile(
    r"NVRM: Xid \((?:PCI:)?(?P<pci>[0-9a-fA-F:.]{5,20})[^)\n]{0,60}\): "
    r"(?P<code>\d{1,4})(?!\d)(?:, pid='?(?P<pid>\d{1,9}))?"
)
_SXID = re.compile(r"SXid \(PCI:(?P<pci>[0-9a-fA-F:.]{5,20})\): (?P<code>\d{1,6})(?!\d), ?(?P<fatal>Non-fatal|Fatal)?")
_SWITCH = re.compile(
    r"detected NVSwitch (?P<fatal>fatal|non-fatal) error (?P<code>\d{1,6}) on (?:fid|NodeId) \d{1,4} "
    r"on NVSwitch pci bus id (?P<pci>[0-9a-fA-F:.]{5,20})"
)
"""SXid in the format of the Fabric Manager's own log."""
_LINK = re.compile(r"\bLink (?P<link>-?\d{1,3})\b")
_LONGEST = 1_000


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Report of the machine."""

    code: str
    """`Xid 79`, `SXid 20034`, `OOM killer`."""
    means: str
    owner: Owner
    role: Role
    action: str
    """Recommended action, in the imperative."""
    url: str
    """Address of the documentation."""
    pci: str = ""
    """Domain, bus and device: `0000:3b:00`."""
    pid: int = 0
    link: int | None = None
    host: str = ""
    time: float | None = None
    """Seconds since the epoch, by the clock of the host."""
    file: str = ""
    line: int = 0
    text: str = ""
    """The line without its prefixes."""
    rank: int | None = None
    """Rank on that device or with that process id."""

    def with_place(self, *, host: str, time: float | None, file: str, line: int, text: str) -> Event:
        """Return the event with the place and time at which it was printed."""
        return msgspec.structs.replace(self, host=host, time=time, file=file, line=line, text=text)


class _Line(NamedTuple):
    code: str
    pattern: re.Pattern[str]
    means: str
    owner: Owner
    role: Role
    action: str
    url: str


class _Catalogue(NamedTuple):
    xid: dict[int, dict[str, str]]
    sxid: dict[int, dict[str, str]]
    urls: tuple[str, str]
    actions: dict[str, str]
    buckets: dict[str, str]
    lines: tuple[tuple[str, _Line], ...]
    """(literal that the line must contain, its entry)."""


@lru_cache(maxsize=1)
def catalogue() -> _Catalogue:
    """Return the whole catalogue, read once."""
    xid, sxid, kernel = (_read(f"{name}.toml") for name in ("xid", "sxid", "kernel"))
    rows = [row for part in (kernel, _read("accelerators.toml"), _read("scheduler.toml")) for row in part["line"]]
    actions = kernel["action"]
    return _Catalogue(
        xid={int(code): row for code, row in xid["code"].items()},
        sxid={int(code): row for code, row in sxid["code"].items()},
        urls=(xid["url"], sxid["url"]),
        actions=actions,
        buckets=kernel["bucket"],
        lines=tuple(
            (
                row["literal"],
                _Line(
                    row["code"], re.compile(row["pattern"]), row["means"], row["owner"], row["role"],
                    actions[row["action"]], row["url"],
                ),
            )
            for row in rows
        ),
    )  # fmt: skip


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath(name).read_text("utf-8"))


def parse_event(line: str) -> Event | None:
    """Return the event that a line of a kernel's log reports, after any prefix; None if it is not a known report."""
    line = line[:_LONGEST]
    if "Xid (" in line:
        return _xid(line)
    if "detected NVSwitch" in line and (found := _SWITCH.search(line)):
        return _of_switch(found, fatal=found["fatal"] == "fatal")
    for literal, known in catalogue().lines:
        if literal in line and (found := known.pattern.search(line)):
            fields = found.groupdict()
            return Event(
                code=known.code,
                means=known.means,
                owner=known.owner,
                role=known.role,
                action=known.action,
                url=known.url,
                pci=bus(fields.get("pci") or ""),
                pid=int(fields.get("pid") or 0),
                host=fields.get("host") or fields.get("host2") or "",
            )
    return None


def _of_switch(found: re.Match[str], *, fatal: bool) -> Event:
    """Return the event of an NVSwitch code."""
    known = catalogue()
    row = known.sxid.get(int(found["code"]))
    return Event(
        code=f"SXid {found['code']}",
        means=f"{row['name'] if row else 'a code that is not in the catalogue'} on an NVSwitch",
        owner="link",
        role="root" if fatal else "note",
        action=known.actions["fabric" if fatal else "none"],
        url=known.urls[1],
        pci=bus(found["pci"]),
    )


def _xid(line: str) -> Event | None:
    """Return the event of an SXid, or of an Xid with or without `PCI:`; None without one."""
    known = catalogue()
    if found := _SXID.search(line):
        row = known.sxid.get(int(found["code"]))
        fatal = found["fatal"] == "Fatal" or (not found["fatal"] and row is not None and row["fatal"] == "always")
        return msgspec.structs.replace(_of_switch(found, fatal=fatal), link=_link(line))
    found = _XID.search(line)
    if found is None:
        return None
    row = known.xid.get(int(found["code"]))
    if row is None:
        return Event(
            code=f"Xid {found['code']}", means="a code that is not in the catalogue", owner="device", role="note",
            action=known.actions["vendor"], url=known.urls[0], pci=bus(found["pci"]), pid=int(found["pid"] or 0),
        )  # fmt: skip
    key = "fix-program" if row["owner"] == "application" else known.buckets[row["action"]]
    minor = row["owner"] == "link" and "Nonfatal" in line
    return Event(
        code=f"Xid {found['code']}",
        means=row["name"],
        owner=row["owner"],  # type: ignore[arg-type]
        role="note" if minor else row["role"],  # type: ignore[arg-type]
        action=known.actions["none" if minor else key],
        url=known.urls[0],
        pci=bus(found["pci"]),
        pid=int(found["pid"] or 0),
        link=_link(line),
    )


def _link(line: str) -> int | None:
    found = _LINK.search(line)
    return int(found["link"]) if found else None


def bus(address: str) -> str:
    """Return a PCI address as domain, bus and device, also from NCCL's form (`3b000`, `10b000`); "" if neither fits."""
    address = address.lower().removeprefix("pci:")
    if ":" not in address:
        if len(address) < 4 or not all(c in "0123456789abcdef" for c in address):
            return ""
        padded = address.zfill(9)
        return f"{padded[-9:-5]}:{padded[-5:-3]}:{padded[-3:-1]}"
    parts = address.split(".")[0].split(":")
    if len(parts) == 2:
        parts = ["0000", *parts]
    return ":".join((parts[0][-4:].zfill(4), *parts[1:3])) if len(parts) >= 3 else ""
