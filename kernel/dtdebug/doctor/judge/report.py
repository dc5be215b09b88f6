"""Builds the report: sorted findings, causes before their consequences, and one line per area."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dtdebug.doctor.judge import (
    attendance,
    compare,
    forecast,
    interfaces,
    network,
    parallel_sizes,
    routes,
    throughput,
    wizard_answers,
)
from dtdebug.doctor.judge.findings import finding, fold_names, labels
from dtdebug.doctor.judge.matrix import Hosts
from dtdebug.doctor.report_types import AREAS, Area, HostFinding, HostRow, Matrix, Report, State, UnexaminedArea
from dtdebug.doctor.types import Arrival, HostProblem, HostReport, Meeting, Stranger
from dtdebug_taxonomy.knowledge.preflight import load

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


MOST = 20
_NO_MATRIX = Matrix()
_ORDER = {"fault": 0, "warning": 1, "hint": 2}


def together(
    came: Sequence[Arrival], strangers: Sequence[Stranger], waited: float, more: Sequence[HostFinding] = ()
) -> Report:
    """Return the report for all hosts that arrived."""
    came = Hosts(came)
    looks, called = [c.look for c in came], labels(came)
    is_gloo = uses_gloo(looks)
    gloo, nccl = forecast.gloo(came), forecast.nccl(came)
    several = looks[0].launch.nodes > 1
    elsewhere = attendance.starts_elsewhere(looks[0].launch) if len(came) < 2 else ""
    found = [*more, *interfaces.names(came)]
    found += attendance.judge(came, strangers, waited) if not elsewhere else ()
    for look in looks:
        found += attendance.judge_command(look.launch, look)
    found += interfaces.gloo(came, gloo, is_gloo=is_gloo)
    found += interfaces.nccl(came, nccl, is_gloo=is_gloo)
    found += network.judge(came, gloo, is_gloo=is_gloo)
    found += routes.astray(came, is_gloo=is_gloo)
    found += routes.find_dropped(came, gloo if is_gloo else nccl)
    found += compare.judge(came, is_gloo=is_gloo)
    found += throughput.judge(came)
    found += _group_problems(
        [(n, p) for look, n in zip(looks, called, strict=True) for p in _own(look, is_gloo=is_gloo)]
    )
    found += _devices(looks, called)
    sized, was_sized = parallel_sizes.judge(looks[0].launch)
    found += _group_problems([(called[0], p) for p in sized])
    said = {"gloo": gloo.verdict}
    if not is_gloo:
        said["nccl"] = nccl.verdict
    if len(came) < looks[0].launch.least:  # missing hosts cannot be connected either, however well the others do
        said = dict.fromkeys(said, "fails")
    if len(came) < 2:
        said = {}
    unread = _unread(looks, called)
    if not was_sized:
        unread["partition"] = "the command and its configurations name no sizes"
    if several and len(came) < 2:
        unread["network"] = "no other host reported"
    if elsewhere:
        unread["launch"] = elsewhere
    rows = sorted(attendance.rows(came), key=lambda r: (r.node is None, r.node or 0))
    pinned = interfaces.pin_settings(came) if len(came) > 1 and gloo.verdict == "connects" else {}
    pairs = len({frozenset((i, t.node)) for i, c in enumerate(came) for t in c.tries})
    return _report(
        found,
        looks,
        rows,
        said,
        unread,
        is_gloo=is_gloo,
        pinned=pinned,
        several=several,
        pairs=pairs,
        rates=throughput.throughput_line(came),
        matrix=network.matrix(came),
    )


def alone(look: HostReport, meeting: Meeting) -> Report:
    """Return the report of one host: about itself, or all that it knows if it was rejected."""
    is_gloo, several = uses_gloo([look]), look.launch.nodes > 1
    found = [*attendance.judge_command(look.launch, look)]
    elsewhere = attendance.starts_elsewhere(look.launch)
    if meeting.result not in ("", "none") and not elsewhere:
        found += attendance.outside(look, meeting)
    found += _group_problems([(look.host, p) for p in _own(look, is_gloo=is_gloo)])
    found += _devices([look], [look.host])
    sized, was_sized = parallel_sizes.judge(look.launch)
    found += _group_problems([(look.host, p) for p in sized])
    unread = _unread([look], [look.host])
    if not was_sized:
        unread["partition"] = "the command and its configurations name no sizes"
    if several:
        unread |= dict.fromkeys(("network", "versions", "code"), "this host alone was looked at")
        if elsewhere:
            unread["launch"] = elsewhere
        elif meeting.result not in ("", "none"):
            unread["launch"] = f"this host was not let in at {look.launch.endpoint}"
    elif not look.launch.launcher:
        unread["launch"] = "no launch command"
    unread.setdefault("network", "one host")
    row = HostRow(host=look.host, node=look.launch.node, came=meeting.result in ("", "none", "hub", "came"))
    return _report(found, [look], [row], {}, unread, is_gloo=is_gloo, pinned={}, several=several)


def uses_gloo(looks: Sequence[HostReport]) -> bool:
    """True if no host has a device, so that the job's backend is gloo."""
    return not any(look.devices or (look.has_devices and look.devices is None) for look in looks)


def _own(look: HostReport, *, is_gloo: bool) -> list[HostProblem]:
    return [*interfaces.alone(look, is_gloo=is_gloo, several=look.launch.nodes > 1), *look.problems]


def _group_problems(rows: Sequence[tuple[str, HostProblem]]) -> list[HostFinding]:
    """Merge the same problem on several hosts into one finding."""
    groups: dict[tuple[str, str], list[tuple[str, HostProblem]]] = {}
    for name, problem in rows:
        groups.setdefault((problem.id, problem.text), []).append((name, problem))
    found = []
    for (number, text), members in groups.items():
        p, hosts = members[0][1], [name for name, _ in members]
        head = f"{fold_names(hosts)}: " if not number.startswith("DR7") else ""
        found.append(
            finding(
                number,
                f"{head}{text}",
                hosts=hosts,
                measured=p.measured,
                expected=p.expected,
                severity=p.severity,
                commands=p.commands,
                export=p.export,
            )
        )
    return found


def _devices(looks: Sequence[HostReport], called: Sequence[str]) -> list[HostFinding]:
    found = []
    for look, name in zip(looks, called, strict=True):
        wanted = look.launch.per_node
        if look.devices is not None and wanted and 0 < len(look.devices) < wanted:
            found.append(
                finding(
                    "DR601",
                    f"{name} has {len(look.devices)} device{'s' * (len(look.devices) != 1)} for {wanted} ranks",
                    hosts=[name],
                    measured=str(len(look.devices)),
                    expected=f"at least {wanted}",
                )
            )
        elif "driver gave no answer" in look.unread.get("devices", ""):
            found.append(
                finding("DR603", f"{name}: {look.unread['devices']}", hosts=[name], measured=look.unread["devices"])
            )
    return found


def _unread(looks: Sequence[HostReport], called: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    groups: dict[tuple[str, str], list[str]] = {}
    for look, name in zip(looks, called, strict=True):
        for what, why in look.unread.items():
            groups.setdefault((what, why), []).append(name)
    for (what, why), hosts in groups.items():
        words = why if len(hosts) == len(looks) else f"{fold_names(hosts)}: {why}"
        found[what] = f"{found[what]}; {words}" if what in found else words
    return found


def _report(
    found: Sequence[HostFinding],
    looks: Sequence[HostReport],
    rows: Sequence[HostRow],
    said: dict[str, str],
    unread: dict[str, str],
    *,
    is_gloo: bool,
    pinned: dict[str, str],
    several: bool,
    pairs: int = 0,
    rates: str = "",
    matrix: Matrix = _NO_MATRIX,
) -> Report:
    kept = _causes(sorted(found, key=lambda f: _ORDER[f.severity]))
    hidden = len(found) - len(kept[:MOST])
    kept = kept[:MOST]
    look = looks[0]
    backend = "gloo" if is_gloo else "nccl"
    known = wizard_answers.observations(kept, rows, looks, several=several)
    draft = Report(
        backend=backend,
        ranks=look.launch.ranks,
        hosts=tuple(rows),
        findings=tuple(kept),
        hidden=hidden,
        pairs=pairs,
        rates=rates,
        matrix=matrix,
        forecast=said,
        export={k: v for f in kept for k, v in f.fix.export.items()},
        pinned=pinned,
        not_examined=tuple(UnexaminedArea(id=k, why=v) for k, v in sorted(unread.items())),
        observations={k: v for k, (v, _) in known.items()},
        grounds={k: why for k, (_, why) in known.items()},
    )
    hidden_areas = {f.area for f in found if f not in kept and f.severity == "fault"}
    areas = tuple(_area(a, draft, look, unread, follows=a in hidden_areas) for a in AREAS)
    return msgspec.structs.replace(draft, areas=areas)


def _causes(found: Sequence[HostFinding]) -> list[HostFinding]:
    """Drop duplicates and findings that follow from another one on the same hosts."""
    kept: list[HostFinding] = []
    known = load()
    for f in found:
        above = [
            g for g in found if g is not f and f.id in known[g.id].hides and _ORDER[g.severity] <= _ORDER[f.severity]
        ]
        if any(_follows(f, g) for g in above):
            continue
        if all((f.id, f.text) != (k.id, k.text) for k in kept):
            kept.append(f)
    return kept


def _follows(f: HostFinding, cause: HostFinding) -> bool:
    """True if one finding explains the other: for pairs, only if the cause covers them all."""
    if f.pairs and cause.pairs:
        return {frozenset(p) for p in f.pairs} <= {frozenset(p) for p in cause.pairs}
    either = not f.hosts or not cause.hosts or f.id in ("DR201", "DR111")
    return either or bool(set(f.hosts) & set(cause.hosts))


def _area(area: str, draft: Report, look: HostReport, unread: dict[str, str], *, follows: bool) -> Area:
    """Return an area's line; `follows`: a fault of this area is hidden because a shown one explains it."""
    state = _state(area, draft.findings, unread)
    text = line(area, draft, look)
    if state == "ok" and follows:
        return Area(id=area, state="fault", text=f"{text}; that follows from a fault in another part")
    return Area(id=area, state=state, text=text)


def _state(area: str, found: Sequence[HostFinding], unread: dict[str, str]) -> State:
    mine = [f.severity for f in found if f.area == area]
    if "fault" in mine:
        return "fault"
    if "warning" in mine:
        return "warning"
    if area in unread:
        return "unknown"
    return "ok"
