"""Lists this host's devices by querying NVML in a child process, which a hung driver cannot block for long."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import msgspec

from dtdebug.doctor.host.bounded_calls import answer_of
from dtdebug.doctor.types import Board, HostProblem

_NVIDIA = (Path("/proc/driver/nvidia"), Path("/dev/nvidiactl"))
_AMD = (Path("/dev/kfd"),)
_ASKING = 5.0
"""Seconds to wait for the driver."""
_MOST = 64
_ASK = """
import json, pynvml as n
n.nvmlInit()
def said(name, *arguments):
    try:
        return getattr(n, name)(*arguments)
    except Exception:
        return None
def text(value):
    return value.decode() if isinstance(value, bytes) else value
boards = []
for i in range(n.nvmlDeviceGetCount()):
    h = n.nvmlDeviceGetHandleByIndex(i)
    rows = said('nvmlDeviceGetRemappedRows', h) or (None,) * 4
    memory, mig = said('nvmlDeviceGetMemoryInfo', h), said('nvmlDeviceGetMigMode', h)
    slowed = said('nvmlDeviceGetCurrentClocksEventReasons', h)
    if slowed is None:
        slowed = said('nvmlDeviceGetCurrentClocksThrottleReasons', h)
    links = [said('nvmlDeviceGetNvLinkState', h, k) for k in range(18)]
    boards.append({
        'name': text(n.nvmlDeviceGetName(h)),
        'used': None if memory is None else memory.used,
        'pids': [p.pid for p in said('nvmlDeviceGetComputeRunningProcesses', h) or ()][:16],
        'pending': None if rows[2] is None else bool(rows[2]),
        'failed': None if rows[3] is None else bool(rows[3]),
        'slowed': slowed,
        'width': said('nvmlDeviceGetCurrPcieLinkWidth', h),
        'width_most': said('nvmlDeviceGetMaxPcieLinkWidth', h),
        'links': [int(k) for k in links if k is not None],
        'mig': None if mig is None else bool(mig[0]),
    })
print(json.dumps({'driver': text(said('nvmlSystemGetDriverVersion') or ''), 'boards': boards}))
"""
_SLOW = {0x8: "hardware slowdown", 0x40: "heat", 0x80: "the power supply brakes"}
"""Bits of nvmlClocksEventReasons other than ordinary power saving."""
_USED = 2 << 30
_PAIR = re.compile(r"X|SYS|SOC|NODE|PHB|PXB|PIX|NV\d{1,3}")
"""Kind of connection between two devices; older drivers print SOC for SYS."""


class DriverAnswer(NamedTuple):
    """Devices reported by the driver, or why there are none."""

    boards: tuple[Board, ...] | None = None
    driver: str = ""
    why: str = ""


class _Answer(msgspec.Struct):
    boards: list[Board] = []
    driver: str = ""


def has_some() -> bool:
    """True if an NVIDIA or AMD driver is installed, so that the job will not use gloo."""
    return any(path.exists() for path in (*_NVIDIA, *_AMD))


def devices() -> DriverAnswer:
    """Return all devices with the details from NVML, or their names from nvidia-smi if pynvml is not installed."""
    if not any(path.exists() for path in _NVIDIA):
        why = "devices of AMD are not known to doctor" if has_some() else "no driver of devices on this host"
        return DriverAnswer(why=why)
    by_library = find_spec("pynvml") is not None
    ask = [sys.executable, "-P", "-c", _ASK]
    words = ask if by_library else ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    text, why = answer_of(words, _ASKING, "the driver")
    if why:
        return DriverAnswer(why=why)
    if not by_library:
        names = [line.strip()[:100] for line in text.splitlines() if line.strip()]
        return DriverAnswer(boards=tuple(Board(name=name) for name in names[:_MOST]))
    try:
        said = msgspec.json.decode(text.strip().rpartition("\n")[2], type=_Answer)
    except msgspec.MsgspecError:
        return DriverAnswer(why="NVML gave an answer that could not be read")
    return DriverAnswer(boards=tuple(said.boards[:_MOST]), driver=said.driver[:40])


def topology() -> str:
    """Return the connections between devices, one row per device, or "" if unknown."""
    if not any(path.exists() for path in _NVIDIA):
        return ""
    text, _ = answer_of(["nvidia-smi", "topo", "-m"], _ASKING, "the driver")
    return matrix(text)


def matrix(text: str) -> str:
    """Extract the device columns of `nvidia-smi topo -m`: `X NV18 NV18` for each device."""
    rows = [line.split() for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()]
    named = [
        row for row in rows if row and re.fullmatch(r"GPU\d+", row[0]) and len(row) > 1 and _PAIR.fullmatch(row[1])
    ]
    return "\n".join(" ".join(cell for cell in row[1 : len(named) + 1] if _PAIR.fullmatch(cell)) for row in named)


def judge(boards: Sequence[Board]) -> list[HostProblem]:
    """Return faults of the host's own devices: memory rows to remap, slowed clocks, links down, memory in use."""
    found = []

    def add(number: str, indices: list[int], words: str, expected: str) -> None:
        if indices:
            shown = f"device {', '.join(map(str, indices))}: {words}"
            found.append(HostProblem(id=number, text=shown, measured=words, expected=expected))

    of = dict(enumerate(boards))
    add("DR606", [i for i, b in of.items() if b.failed], "rows of its memory could not be remapped", "a sound device")
    add("DR606", [i for i, b in of.items() if b.pending and not b.failed], "rows wait to be remapped", "a reset device")
    for bit, words in _SLOW.items():
        add(
            "DR607",
            [i for i, b in of.items() if (b.slowed or 0) & bit],
            f"its clocks are held down: {words}",
            "full speed",
        )
    most = max((sum(b.links) for b in boards), default=0)
    add(
        "DR608",
        [i for i, b in of.items() if b.links and sum(b.links) < most],
        f"fewer NVLinks are up than the {most} of the others",
        f"{most} links",
    )
    wide = max((b.width or 0 for b in boards), default=0)
    add(
        "DR608",
        [i for i, b in of.items() if b.width and b.width < min(wide, b.width_most or wide)],
        f"fewer lanes of PCIe than the {wide} of the others",
        f"{wide} lanes",
    )
    busy = {i: b for i, b in of.items() if (b.used or 0) > _USED}
    pids = sorted({p for b in busy.values() for p in b.pids})[:6]
    who = f" (processes {', '.join(map(str, pids))})" if pids else ""
    add("DR609", list(busy), f"more than 2 GiB of its memory is in use before the run{who}", "an idle device")
    return found
