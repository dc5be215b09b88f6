"""Text of an area's line: the result if all is well, or why it was not inspected."""

from __future__ import annotations

from dtdebug.doctor.report_types import Report
from dtdebug.doctor.types import HostReport

_SHOWN = ("python", "torch", "torch (imported)", "nccl (loaded)", "deepspeed", "accelerate")
_SAID = {
    "connects": "connects",
    "fails": "will fail for a fault in another part",
    "unknown": "not all pairs were tried",
}


def line(area: str, report: Report, look: HostReport) -> str:
    """Return the short text for an area."""
    why = next((u.why for u in report.not_examined if u.id == area), "")
    if area == "partition":
        return why or "batch and parallel sizes agree with the ranks"
    if area == "devices":
        return (
            f"not looked at: {why}"
            if why
            else f"{len(look.devices or ())} x {', '.join(sorted(set(look.devices or ())))}"
        )
    many = sum(r.came for r in report.hosts) > 1
    if why and area in ("launch", "versions"):
        return f"not looked at: {why}"
    if area == "launch":
        return _launch(report, look)
    if area == "interfaces":
        return _interfaces(report, look)
    if area == "names":
        if not look.launch.address:
            return f"{look.host} is {', '.join(look.own.addresses[:2]) or 'no address'}; no endpoint to resolve"
        return f"{look.launch.address} is {', '.join(look.endpoint.addresses[:2])}"
    if area == "network":
        count = sum(r.came for r in report.hosts)
        return (
            f"not looked at: {why or 'one host'}"
            if count < 2
            else f"{report.pairs} of {count * (count - 1) // 2} pairs tried; all connect, 32 KiB pass{report.rates}"
        )
    if area == "versions":
        shown = [f"{k} {v}" for k, v in look.versions.items() if k in _SHOWN]
        rest = f" and {len(look.versions) - len(shown)} more are the same" if many and not why else ""
        return f"{', '.join(shown)}{rest}"
    if area == "code":
        return (
            f"not looked at: {why}"
            if why
            else f"{look.launch.program} and {max(0, len(look.files) - 1)} more files{' are the same' if many else ''}"
        )
    return "shared memory, limits, disk" + ("; clocks" if many else "")


def models(look: HostReport) -> str:
    """Return the number and models of a host's devices."""
    return f"{len(look.devices or ())} x {', '.join(sorted(set(look.devices or ())))}"


def _launch(report: Report, look: HostReport) -> str:
    launch = look.launch
    if not launch.launcher:
        return "no launch command; this host alone"
    came = sum(r.came for r in report.hosts)
    ranks = (
        f"; {launch.ranks} rank{'s' * (launch.ranks != 1)}" if launch.ranks else "; the number of ranks is not known"
    )
    if launch.nodes < 2:
        return f"{launch.launcher}, one host{ranks}"
    return f"{came} of {launch.nodes} hosts reached {launch.endpoint}{ranks}"


def _interfaces(report: Report, look: HostReport) -> str:
    shown = f"gloo: {look.gloo.interface or look.gloo.error} {look.gloo.address}"
    if report.forecast:
        shown += f", {_SAID.get(report.forecast['gloo'], '')}"
    if "nccl" in report.forecast:
        shown += f"; nccl: {look.nccl.interface or look.nccl.error}, {report.forecast['nccl']}"
    return shown
