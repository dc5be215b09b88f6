"""Judges a Kubernetes manifest alone: can its pods connect, and do they get devices?"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from dtdebug.doctor.judge import parallel_sizes
from dtdebug.doctor.judge.findings import finding
from dtdebug.doctor.launch.kubernetes import Manifest, Pods
from dtdebug.doctor.report_types import AREAS, Area, HostFinding, HostRow, Report, UnexaminedArea
from dtdebug.doctor.types import HostReport

_ELSEWHERE = "the pods run elsewhere: start `dtdebug doctor -- COMMAND` in each of them"
_ROWS = 256


def judge(job: Manifest) -> tuple[Report, HostReport]:
    """Return (report, report of the first pod)."""
    first = job.pods[0]
    launch = first.launch
    look = HostReport(host=f"{job.kind} {job.name}", launch=launch)
    found = list(_findings(job))
    sized, was_sized = parallel_sizes.judge(launch)
    found += [finding(p.id, p.text, measured=p.measured, expected=p.expected, severity=p.severity) for p in sized]
    unread = dict.fromkeys((a for a in AREAS if a not in ("launch", "partition")), _ELSEWHERE)
    if not was_sized:
        unread["partition"] = "the command names no sizes"
    names = [f"{job.name}-{p.role.lower() or 'pod'}-{i}" for p in job.pods for i in range(p.number or 1)]
    report = Report(
        backend="nccl" if first.devices else "",
        ranks=launch.ranks,
        hosts=tuple(HostRow(host=name, came=False) for name in names[:_ROWS]),
        findings=tuple(found),
        not_examined=tuple(UnexaminedArea(id=k, why=v) for k, v in sorted(unread.items())),
    )
    return msgspec.structs.replace(report, areas=tuple(_area(a, report, unread, job) for a in AREAS)), look


def _area(name: str, report: Report, unread: dict[str, str], job: Manifest) -> Area:
    severities = {f.severity for f in report.findings if f.area == name}
    worst = next((s for s in ("fault", "warning") if s in severities), None)
    if worst == "fault":
        return Area(id=name, state="fault")
    if worst == "warning":
        return Area(id=name, state="warning")
    if name in unread:
        return Area(id=name, state="unknown", text=f"not looked at: {unread[name]}")
    return Area(id=name, state="ok", text=_line(job) if name == "launch" else f"fits {report.ranks} ranks")


def _line(job: Manifest) -> str:
    launch, pods = job.pods[0].launch, job.number
    ranks = f"; {launch.ranks} rank{'s' * (launch.ranks != 1)}" if launch.ranks else ""
    where = f", which meet at {launch.endpoint}" if launch.endpoint and pods != 1 else ""
    by = launch.launcher if launch.launcher not in ("", "variables") else launch.program
    return f"{job.kind} {job.name}: {_format_pods(pods) if pods else 'pods'} start {by}{where}{ranks}"


def _findings(job: Manifest) -> Iterator[HostFinding]:
    for pods in job.pods:
        yield from _of_pods(job, pods)
    yield from _alike(job)
    launch, started = job.pods[0].launch, job.number
    if launch.launcher == "mpirun" and launch.world and started is not None and job.slots:
        yield from _slots(job, launch.world, started * job.slots)
    if launch.launcher != "torchrun" or started is None or launch.refused or "not known" in " ".join(launch.problems):
        return
    if started < launch.least and not launch.starts:
        yield finding(
            "DR201",
            f"torchrun waits for {launch.least} hosts, and {job.kind} {job.name} starts {_format_pods(started)}",
            measured=_format_pods(started),
            expected=_format_pods(launch.least),
            fix=f"Let the manifest start {_format_pods(launch.least)}, or torchrun wait for {started}",
        )
    elif started > launch.nodes and not (launch.nodes == 1 and job.kind in ("Deployment", "Job")):
        alone = "each of them trains alone" if launch.nodes == 1 else f"{started - launch.nodes} of them have no place"
        yield finding(
            "DR209",
            f"{job.kind} {job.name} starts {_format_pods(started)}, torchrun is for {launch.nodes}: {alone}",
            measured=_format_pods(started),
            expected=_format_pods(launch.nodes),
            fix=f"--nnodes {started}, with an endpoint that all pods reach",
        )


def _of_pods(job: Manifest, pods: Pods) -> Iterator[HostFinding]:
    launch, who = pods.launch, f"{pods.role or job.kind}"
    alone = job.elastic and pods.plain
    for problem in (*launch.refused, *(launch.problems if not alone else ())):
        words = problem.replace("is not known on this host", "is a placeholder that is not filled in")
        yield finding("DR212", f"{who}: {words}", measured=words, expected="a launch command of the job")
    if not pods.known:
        text = f"{who}: the image's own entrypoint starts the ranks, which the manifest does not show"
        yield finding("DR212", text, severity="hint", expected="command: in the container")
    elif alone:
        text = (
            f"{who}: the operator tells elastic pods by PET_ variables where to meet, which torchrun reads and "
            f"{launch.program or 'the command'} does not: each pod trains alone"
        )
        yield finding("DR209", text, expected="torchrun", fix="Start the program by torchrun")
    if launch.per_node and pods.devices is not None and launch.per_node > pods.devices:
        each = f"{pods.devices} device{'s' * (pods.devices != 1)}"
        yield finding(
            "DR601",
            f"{who}: each pod gets {each} for {launch.per_node} ranks",
            measured=each,
            expected=f"at least {launch.per_node}",
        )


def _alike(job: Manifest) -> Iterator[HostFinding]:
    """Yield node ranks that are hard-coded although one template makes several pods, and pods that differ."""
    rows = [(p, p.launch) for p in job.pods if p.launch.launcher == "torchrun" and p.launch.backend == "static"]
    for pods, launch in rows:
        if launch.node is not None and pods.number != 1 and pods.numbered:
            yield finding(
                "DR207",
                f"all {pods.number or ''} pods of {pods.role or job.kind} have --node-rank {launch.node}",
                measured=f"--node-rank {launch.node} in their template",
                expected="a number of its own for each pod",
            )
    for pods, launch in rows[1:]:
        if pods.numbered and rows[0][0].numbered and launch.node == rows[0][1].node:
            yield finding(
                "DR207",
                f"{rows[0][0].role} and {pods.role} both have --node-rank {launch.node}",
                measured=f"{launch.node} twice",
                expected="a number of its own for each pod",
            )
        differ = [name for name in ("nodes", "per_node", "port") if getattr(launch, name) != getattr(rows[0][1], name)]
        if differ:
            said = "; ".join(f"{p.role}: {', '.join(f'{n} {getattr(of, n)}' for n in differ)}" for p, of in rows)
            yield finding("DR208", f"pods are started differently: {said}", measured=said)


def _slots(job: Manifest, world: int, slots: int) -> Iterator[HostFinding]:
    if world > slots:
        yield finding(
            "DR208",
            f"mpirun is to start {world} ranks, and the workers of {job.kind} {job.name} have {slots} slots",
            measured=f"{world} ranks",
            expected=f"at most {slots}: replicas x slotsPerWorker",
        )


def _format_pods(number: int) -> str:
    return f"{number} pod{'s' * (number != 1)}"
