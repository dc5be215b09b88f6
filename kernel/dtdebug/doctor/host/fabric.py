"""Lists InfiniBand and RoCE ports from sysfs and checks them against NCCL_IB_HCA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from dtdebug.doctor.types import HostProblem, Port

HOME = Path("/sys/class/infiniband")
_MOST = 64


def ports(home: Path = HOME) -> tuple[Port, ...]:
    """Return all ports by name; empty without such hardware."""
    return tuple(
        Port(
            name=f"{place.parents[1].name}:{place.name}",
            state=_word(place / "state"),
            link=_word(place / "phys_state"),
            rate=_text(place / "rate"),
            layer=_text(place / "link_layer"),
        )
        for place in (sorted(home.glob("*/ports/*"))[:_MOST] if home.is_dir() else ())
    )


def judge(found: Sequence[Port], variables: Mapping[str, str]) -> list[HostProblem]:
    """Report an HCA that NCCL_IB_HCA names but the host lacks, or a host without an active port."""
    if not found:
        return []
    wanted = variables.get("NCCL_IB_HCA", "")
    names, without, exact = _parse_hca(wanted)
    known = {p.name.partition(":")[0] for p in found}
    missing = [n for n in names if not any(_matches(k, n.partition(":")[0], exact=exact) for k in known)]
    if missing and not without:
        return [
            HostProblem(
                id="DR604",
                text=f"NCCL_IB_HCA names {', '.join(missing)}; this host has {', '.join(sorted(known))}",
                measured=wanted[:200],
                expected=", ".join(sorted(known)),
            )
        ]
    picked = [p for p in found if picks(p, wanted)]
    if picked and all(p.state != "ACTIVE" for p in picked):
        shown = ", ".join(f"{p.name} {p.state} ({p.link})" for p in picked[:4])
        return [
            HostProblem(id="DR605", text=f"no port of InfiniBand is active: {shown}", measured=shown, expected="ACTIVE")
        ]
    return []


def picks(port: Port, wanted: str) -> bool:
    """True if NCCL_IB_HCA selects the port: `^` excludes, `=` is exact, else names are prefixes (NCCL manual)."""
    names, without, exact = _parse_hca(wanted)
    if not names:
        return True
    device, _, number = port.name.partition(":")
    for name in names:
        asked, colon, of = name.partition(":")
        if _matches(device, asked, exact=exact) and (not colon or of == number):
            return not without
    return without


def _parse_hca(text: str) -> tuple[list[str], bool, bool]:
    without = text.startswith("^")
    text = text.removeprefix("^")
    return [w for w in text.removeprefix("=").split(",") if w], without, text.startswith("=")


def _matches(device: str, name: str, *, exact: bool) -> bool:
    return device == name if exact else device.startswith(name)


def _text(path: Path) -> str:
    try:
        with path.open(encoding="ascii", errors="replace") as file:
            return file.read(100).strip()
    except OSError:
        return ""


def _word(path: Path) -> str:
    """Return a sysfs value without its number, `4: ACTIVE` as `ACTIVE`."""
    return _text(path).rpartition(": ")[2]
