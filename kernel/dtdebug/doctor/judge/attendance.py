"""Judges arrivals: hosts that reached the endpoint, missing hosts, and launch settings that differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from dtdebug.doctor.host.interfaces import is_loopback, own_addresses
from dtdebug.doctor.judge.findings import finding, fold_names, labels, split_majority
from dtdebug.doctor.report_types import HostFinding, HostRow
from dtdebug.doctor.types import Arrival, HostReport, Launch, Meeting, Severity, Stranger


def starts_elsewhere(launch: Launch) -> str:
    """Explain why missing hosts are expected: the command starts the other hosts and doctor ran here only; else ""."""
    if not launch.starts:
        return ""
    if launch.starts == "srun":
        return "srun starts the other hosts: put srun first: `srun dtdebug doctor -- COMMAND`"
    if launch.starts == "ray":
        return "Ray starts the ranks: `dtdebug doctor --via ray -- COMMAND` has all nodes of its cluster meet"
    where = launch.hosts_from if "/" in launch.hosts_from or "." in launch.hosts_from else "HOSTFILE"
    return f"{launch.starts} starts the other hosts: `dtdebug doctor --hosts {where} --via ssh -- COMMAND`"


def rows(came: Sequence[Arrival]) -> list[HostRow]:
    """Return all hosts of the job; for missing hosts, only what is known."""
    called = labels(came)
    if len(came) < 2 and starts_elsewhere(came[0].look.launch):
        return [HostRow(host=called[0], node=came[0].node, address=came[0].address)]
    found = [HostRow(host=n, node=c.node, address=c.address) for n, c in zip(called, came, strict=True)]
    launch = came[0].look.launch
    short = {c.look.host.partition(".")[0] for c in came}
    if launch.hosts:
        missing = [(i, h) for i, h in enumerate(launch.hosts[: launch.nodes]) if h.partition(".")[0] not in short]
        if len(missing) == launch.nodes - len(came):
            return found + [HostRow(host=h, node=i, came=False) for i, h in missing]
    nodes = [c.node for c in came]
    if None not in nodes:
        left = [i for i in range(launch.nodes) if i not in nodes]
        if len(came) == launch.nodes:  # all arrived: a node number is used twice, and no host is missing
            left = []
        return found + [HostRow(host=f"node {i}", node=i, came=False) for i in left[: launch.nodes - len(came)]]
    return found + [HostRow(host="?", came=False) for _ in range(max(0, launch.nodes - len(came)))]


def judge(came: Sequence[Arrival], strangers: Sequence[Stranger], waited: float) -> Iterator[HostFinding]:
    """Yield findings about the launch from the hosts that arrived."""
    launch, called = came[0].look.launch, labels(came)
    nodes = [c.node for c in came]
    if launch.backend in ("static", "env") or all(n is not None for n in nodes):
        twice = [n for n, count in Counter(n for n in nodes if n is not None).items() if count > 1]
        for node in twice:
            mine = [called[i] for i, n in enumerate(nodes) if n == node]
            lost = sorted(set(range(launch.nodes)) - {n for n in nodes if n is not None})
            also = f"; node {', '.join(map(str, lost))} is missing" if lost else ""
            yield finding(
                "DR207",
                f"{' and '.join(mine)} both say that they are node {node}{also}",
                hosts=mine,
                measured=f"node {node} twice",
                expected=f"0 to {launch.nodes - 1} once each",
            )
    missing = [r for r in rows(came) if not r.came]
    if missing or came[0].node != 0:  # all may reach node 0 by an address that is not its own
        yield from _first_elsewhere(came, called)
    unlike = [s for s in strangers if s.why == "version"]
    if len(missing) > len(unlike):
        known = [r.host for r in missing if r.host != "?"]
        who = fold_names(known) if len(known) == len(missing) else f"{len(missing)} of {launch.nodes} hosts"
        source = f" (from {launch.hosts_from})" if launch.hosts_from and launch.hosts else ""
        elastic = len(came) >= launch.least < launch.nodes
        yield finding(
            "DR201",
            f"{who}{source} did not reach {launch.endpoint}{f' in {waited:.0f} s' if waited else ''}",
            hosts=known,
            measured=f"{len(came)} of {launch.nodes} hosts reported: {fold_names(called)}",
            expected=f"{launch.nodes} hosts",
            severity="hint" if elastic else "fault",
        )
    for stranger in unlike:
        yield finding(
            "DR213",
            f"a host came from {stranger.address} with dtdebug {stranger.release}: {called[0]} can't talk with it",
            hosts=[],
            measured=f"{stranger.address}: {stranger.release}; {called[0]}: {came[0].look.version}",
            expected="the same dtdebug on all hosts",
            severity="fault",
        )
    for stranger in strangers:
        if stranger.why == "token":
            yield finding(
                "DR210",
                f"a host reported from {stranger.address} with a different token",
                hosts=[],
                measured=f"{stranger.address}: token",
                expected="the same DTDEBUG_DOCTOR_TOKEN on all hosts",
            )
    yield from _alike(came, called)
    local = Counter((c.look.boot, c.look.host) for c in came if c.look.boot)
    if launch.launcher == "torchrun" and any(n > 1 for n in local.values()) and Counter(nodes).most_common(1)[0][1] > 1:
        mine = [n for n, c in zip(called, came, strict=True) if local[c.look.boot, c.look.host] > 1]
        yield finding(
            "DR211",
            f"torchrun is started {max(local.values())} times on one host",
            hosts=mine,
            measured=f"{max(local.values())} launchers",
            expected="one for each host",
        )


def _first_elsewhere(came: Sequence[Arrival], called: list[str]) -> Iterator[HostFinding]:
    """Report a node 0 that is not the host of the endpoint."""
    launch = came[0].look.launch
    for c, name in zip(came, called, strict=True):
        if c.node != 0 or launch.backend == "c10d" or c.look.owns or c.look.takes_itself:
            continue
        yield finding(
            "DR105",
            f"{name} is node 0, and {launch.address} is another host: the others go there",
            hosts=[name],
            measured=", ".join(c.look.endpoint.addresses[:2]),
            expected=f"an address of {name}",
            fix=f"Give {launch.address} the number 0, or name {name} as the endpoint",
        )


_ALIKE = (
    ("nodes", "--nnodes"),
    ("per_node", "--nproc-per-node"),
    ("backend", "--rdzv-backend"),
    ("run_id", "--rdzv-id"),
    ("launcher", "launcher"),
    ("program", "program"),
)


def _alike(came: Sequence[Arrival], called: list[str]) -> Iterator[HostFinding]:
    for field, option in _ALIKE:
        values = [getattr(c.look.launch, field) for c in came]
        if field == "per_node" and came[0].look.launch.launcher in ("mpirun", "deepspeed", "horovodrun"):
            continue
        most, others = split_majority(values)
        if others:
            shown = "; ".join(f"{called[i]}: {values[i]}" for i in others[:4])
            harmless = field in ("program", "launcher") or (field == "per_node" and None in values)
            yield finding(
                "DR208",
                f"{option} is {shown}{'' if len(others) == len(values) else f'; {most} on the others'}",
                hosts=[called[i] for i in others],
                measured=shown,
                expected=str(most),
                severity="warning" if harmless else "fault",
            )


def outside(look: HostReport, meeting: Meeting) -> Iterator[HostFinding]:
    """Yield what a rejected host knows about the reason."""
    launch, name = look.launch, [look.host]
    where = launch.endpoint
    tries = f"{meeting.tries} tr{'y' if meeting.tries == 1 else 'ies'} in {meeting.seconds:.0f} s"
    if meeting.result == "unresolved":
        yield finding(
            "DR101",
            f"{launch.address} does not resolve on {look.host} ({meeting.words})",
            hosts=name,
            measured=meeting.words,
            expected="an address of the first host",
        )
        return
    if meeting.result == "taken":
        holder = f": {meeting.holder} holds it" if meeting.holder else ""
        yield finding(
            "DR202",
            f"port {launch.port} is taken on {look.host}{holder}",
            hosts=name,
            measured=meeting.holder,
            expected="a free port",
        )
        return
    if (
        launch.nodes > 1
        and look.endpoint.addresses
        and all(is_loopback(a) for a in look.endpoint.addresses)
        and not look.takes_itself
    ):
        yield finding(
            "DR103",
            f"{launch.address} is {look.endpoint.addresses[0]} on {look.host}: it calls itself",
            hosts=name,
            measured=look.endpoint.addresses[0],
            expected="an address of the first host",
        )
    down = _down(look)
    if down and meeting.result in ("unreachable", "timeout", "error"):
        yield finding(
            "DR116",
            f"{look.host}: {down} is down, and {launch.address} is in its network",
            hosts=name,
            measured=f"{down} is down; {meeting.words}",
            expected="an interface that is up",
            commands=(f"ip link set {down} up",),
        )
        return
    kind = {"refused": "DR203", "timeout": "DR204", "unreachable": "DR205", "error": "DR205", "token": "DR210"}
    texts = {
        "refused": f"{where} refuses connections: nothing listens there, or a filter rejects",
        "timeout": f"{where} does not answer: a filter drops packets, the host is down, or the route is wrong",
        "unreachable": f"there is no route from {look.host} to {where}",
        "error": f"{where} can't be reached",
        "token": f"{where} has a different token than {look.host}",
        "version": f"{where} has an incompatible version of dtdebug",
    }
    number = "DR213" if meeting.result == "version" else kind.get(meeting.result, "DR206")
    text = texts.get(meeting.result, f"{where} answers, but not as dtdebug doctor does")
    yield finding(
        number,
        f"{text} (seen on {look.host})",
        hosts=name,
        measured=f"{meeting.words}; {tries}",
        expected="the first host of the job",
        severity="fault",
    )


def _down(look: HostReport) -> str:
    """Return the name of an interface that is down in the endpoint's network, or ""."""
    import ipaddress

    for card in look.interfaces:
        for written in card.addresses if not card.up else ():
            try:
                network = ipaddress.ip_interface(written).network
                if any(ipaddress.ip_address(a) in network for a in look.endpoint.addresses):
                    return card.name
            except ValueError:
                continue
    return ""


def judge_command(launch: Launch, look: HostReport) -> Iterator[HostFinding]:
    """Yield findings from the command alone."""
    name = [look.host]
    for words in (*launch.refused, *launch.problems):
        severity: Severity = "fault" if words in launch.refused else "warning"
        yield finding(
            "DR212", words, hosts=name, measured=words, expected="a launch command of the job", severity=severity
        )
    if launch.nodes > 1:
        if launch.node is not None and launch.node >= launch.nodes:
            yield finding(
                "DR209",
                f"{look.host} is node {launch.node} of {launch.nodes}",
                hosts=name,
                measured=str(launch.node),
                expected=f"0 to {launch.nodes - 1}",
            )
        ours = own_addresses(look.interfaces)
        if (
            look.endpoint.addresses
            and all(is_loopback(a) for a in look.endpoint.addresses)
            and (launch.address in ("localhost", "127.0.0.1", "::1") or launch.node not in (0, None))
            and ours
        ):
            yield finding(
                "DR103",
                f"{launch.address} is {look.endpoint.addresses[0]} on {look.host}; the job has {launch.nodes} hosts",
                hosts=name,
                measured=look.endpoint.addresses[0],
                expected="an address that all hosts reach",
            )
