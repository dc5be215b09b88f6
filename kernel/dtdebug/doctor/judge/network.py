"""Attributes failed probes to a host, a pair, a direction or the whole network, by rows and columns of the matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from statistics import median

from dtdebug.doctor.host.interfaces import is_loopback
from dtdebug.doctor.judge.findings import finding, fold_names, labels
from dtdebug.doctor.judge.forecast import Forecast
from dtdebug.doctor.judge.matrix import Hosts
from dtdebug.doctor.report_types import HostFinding, Matrix
from dtdebug.doctor.types import Severity, Try

_SLOW_TIMES, _SLOW_MORE = 5.0, 5.0
"""Minimum factor, and minimum extra milliseconds, of a slow host's round trips."""
_SHOWN = 6
_FEW = 16
"""With at most this many hosts, ignore a suspect host's own pairs when judging it."""


def judge(came: Hosts, forecast: Forecast, *, is_gloo: bool) -> Iterator[HostFinding]:
    """Yield all findings; a failure that does not affect the library in use is a warning."""
    if len(came) < 2:
        return
    names = labels(came)
    tried = _best(came)
    if not tried:
        return
    failed = {pair for pair, t in tried.items() if t.result != "ok"}
    harmful = {frozenset((p.caller, p.called)) for p in forecast.failing}

    def severity(pairs: set[frozenset[int]]) -> Severity:
        return "fault" if not is_gloo or pairs & harmful else "warning"

    if failed and len(failed) == len(tried) and len(came) > 1:
        every = {frozenset(p) for p in failed}
        words = ", ".join(sorted({_describe_result(tried[p]) for p in failed}))
        port = came[0].look.launch.port
        yield finding(
            "DR305",
            f"all hosts reach port {port}, but none reaches another at an ephemeral port ({words})",
            hosts=names,
            measured=f"{len(failed)} of {len(tried)} connections fail: {words}",
            expected="connections at the ports of net.ipv4.ip_local_port_range",
            severity=severity(every),
        )
        return
    yield from _connection_failures(names, tried, failed, severity)
    yield from _large(came, names, tried, failed)
    yield from _slow(names, tried, failed)


def matrix(came: Hosts, most: int = 64) -> Matrix:
    """Return the round trips of all pairs, for the heat map."""
    if not 1 < len(came) <= most:
        return Matrix()
    tried, names = _best(came), labels(came)
    places = sorted(range(len(came)), key=lambda i: (came[i].node is None, came[i].node or 0, i))
    row = {i: k for k, i in enumerate(places)}

    def cell_value(t: Try | None) -> float | None:
        return None if t is None else t.milliseconds if t.result == "ok" and t.large is not False else -1.0

    return Matrix(
        hosts=tuple(names[i] for i in places),
        milliseconds=tuple(tuple(cell_value(tried.get((i, j))) for j in places) for i in places),
        rates=tuple(((row[i], row[b.node]), b.rate) for i, c in enumerate(came) for b in c.bulk if b.node in row),
    )


def _best(came: Hosts) -> dict[tuple[int, int], Try]:
    """Return (caller, called) -> probe of the called host's best address."""
    found: dict[tuple[int, int], Try] = {}
    for j, other in enumerate(came):
        known = came.addresses(j)
        known.sort(key=lambda address: (address != other.look.gloo.address, address != other.address))
        main = next(
            (a for a in known if any(t.result == "ok" for t in came.tries_at(j, a).values())), (known or [""])[0]
        )
        found.update({(i, j): t for i, t in came.tries_at(j, main).items() if not came.share(i, j)})
    return found


def _connection_failures(
    names: list[str],
    tried: dict[tuple[int, int], Try],
    failed: set[tuple[int, int]],
    severity: Callable[[set[frozenset[int]]], Severity],
) -> Iterator[HostFinding]:
    both = {frozenset(p) for p in failed if (p[1], p[0]) in failed or (p[1], p[0]) not in tried}
    bad, rest = _attribute_pairs(len(names), both, {frozenset(p) for p in tried})
    for host in bad:
        mine = {p for p in both if host in p}
        words = _words(tried, failed, mine)
        yield finding(
            "DR301",
            f"{names[host]} and the other hosts cannot connect to each other, in either direction ({words})",
            hosts=[names[host]],
            pairs=_pairs(names, mine),
            measured=words,
            expected="connections at ports of the kernel's choice",
            severity=severity(mine),
        )
    if rest:
        words = _words(tried, failed, rest)
        said = _pairs(names, rest)
        listed = ", ".join(f"{a} and {b}" for a, b in said[:_SHOWN])
        yield finding(
            "DR301",
            f"{listed}{' ...' if len(said) > _SHOWN else ''} can't connect to each other in either direction ({words})",
            hosts=_hosts(names, rest),
            pairs=said,
            measured=words,
            expected="a connection, as between the other hosts",
            severity=severity(rest),
        )
    one_way = {p for p in failed if frozenset(p) not in both}
    for j in sorted({j for _, j in one_way}):
        callers = {i for i, k in one_way if k == j}
        if len(callers) < 2 or callers != {i for i, k in tried if k == j and frozenset((i, k)) not in both}:
            continue
        calls = {(i, j) for i in callers}
        one_way -= calls
        words = ", ".join(sorted({_describe_result(tried[p]) for p in calls}))
        yield finding(
            "DR302",
            f"no other host can connect to {names[j]} ({words}), while {names[j]} reaches them",
            hosts=[names[j]],
            pairs=[(names[i], names[j]) for i in sorted(callers)],
            measured=words,
            expected="connections in both directions",
            severity=severity({frozenset(p) for p in calls}),
        )
    for i, j in sorted(one_way)[:_SHOWN]:
        yield finding(
            "DR302",
            f"{names[i]} cannot connect to {names[j]} ({_describe_result(tried[i, j])}), "
            f"while {names[j]} reaches {names[i]}",
            hosts=[names[i], names[j]],
            pairs=[(names[i], names[j])],
            measured=_describe_result(tried[i, j]),
            expected="connections in both directions",
            severity=severity({frozenset((i, j))}),
        )


def _large(
    came: Hosts, names: list[str], tried: dict[tuple[int, int], Try], failed: set[tuple[int, int]]
) -> Iterator[HostFinding]:
    lost = {frozenset(p) for p, t in tried.items() if p not in failed and t.large is False}
    if not lost:
        return
    bad, rest = _attribute_pairs(len(names), lost, {frozenset(p) for p in tried if p not in failed})
    passes = max((t.passes for t in tried.values() if t.large is False), default=0)
    measured = "64 bytes come back, 32 KiB do not"
    measured += f"; in segments of {passes} bytes they do" if passes else ""
    mtu = passes + 52
    for group, hosts in [*(({p for p in lost if h in p}, [names[h]]) for h in bad), (rest, _hosts(names, rest))]:
        if group:
            said = (
                fold_names(hosts)
                if len(hosts) == 1
                else ", ".join(f"{a} and {b}" for a, b in _pairs(names, group)[:_SHOWN])
            )
            card = _card(came, names.index(hosts[0]))
            commands = (f"ip link set dev {card} mtu {mtu}",) if passes > 600 and card else ()
            yield finding(
                "DR303",
                f"{said}: 64 bytes pass, 32 KiB do not{f' (segments of {passes} bytes pass)' if passes else ''}",
                hosts=hosts,
                pairs=_pairs(names, group),
                measured=measured,
                expected="messages of any size",
                commands=commands,
            )


def _card(came: Hosts, host: int) -> str:
    """Return the interface through which a host connected, or else the one that gloo uses there."""
    rows = [(a.partition("/")[0], c.name) for c in came[host].look.interfaces for a in c.addresses]
    return next((name for a, name in rows if a == came[host].address), came[host].look.gloo.interface)


def _slow(names: list[str], tried: dict[tuple[int, int], Try], failed: set[tuple[int, int]]) -> Iterator[HostFinding]:
    """Compare a host's round trips with those of the pairs without it: a plain median would hide one of four hosts."""
    times: dict[frozenset[int], float] = {}
    for p, t in tried.items():
        if p not in failed and t.milliseconds:
            key = frozenset(p)
            times[key] = min(times.get(key, t.milliseconds), t.milliseconds)
    of = dict[int, list[float]]()
    for pair, milliseconds in times.items():
        for host in pair:
            of.setdefault(host, []).append(milliseconds)
    every = median(times.values()) if times else 0.0
    for host, mine in of.items():
        others = [t for p, t in times.items() if host not in p] if len(names) <= _FEW else [every]
        if len(mine) < 2 or not others:
            continue
        usual = median(others)
        if min(mine) > _SLOW_TIMES * usual and min(mine) > usual + _SLOW_MORE:
            yield finding(
                "DR304",
                f"{names[host]}: a round trip takes {median(mine):.1f} ms, {usual:.1f} ms between the others",
                hosts=[names[host]],
                measured=f"{median(mine):.1f} ms",
                expected=f"{usual:.1f} ms as elsewhere",
            )


def _attribute_pairs(
    count: int, bad: set[frozenset[int]], every: set[frozenset[int]]
) -> tuple[list[int], set[frozenset[int]]]:
    """Return (hosts whose pairs are all bad, remaining bad pairs)."""
    left, found = set(bad), list[int]()
    if count < 3:
        return [], left
    while left:
        host = max(range(count), key=lambda h: sum(h in p for p in left))
        mine = {p for p in every if host in p and not any(o in p for o in found)}
        if len(mine) < 2 or not mine <= left:
            break
        found.append(host)
        left -= mine
    return found, {p for p in left if not any(h in p for h in found)}


def _pairs(names: list[str], pairs: set[frozenset[int]]) -> list[tuple[str, str]]:
    return [(names[a], names[b]) for a, b in sorted(tuple(sorted(p)) for p in pairs)]


def _hosts(names: list[str], pairs: set[frozenset[int]]) -> list[str]:
    return [names[i] for i in sorted({h for p in pairs for h in p})]


def _words(tried: dict[tuple[int, int], Try], failed: set[tuple[int, int]], pairs: set[frozenset[int]]) -> str:
    return ", ".join(sorted({_describe_result(tried[p]) for p in failed if frozenset(p) in pairs}))


_WORDS = {
    "timeout": "no answer: a filter drops, or the route is wrong",
    "refused": "refused: a filter rejects",
    "unreachable": "no route to the host",
    "other": "another machine answers",
    "error": "the connection fails",
}


def _describe_result(tried: Try) -> str:
    return _WORDS.get(tried.result, tried.result)


def is_unreached(came: Hosts, host: int, address: str) -> bool:
    """True if no host that tried the address reached it."""
    rows = came.tries_at(host, address).values()
    return bool(rows) and all(t.result != "ok" for t in rows)


def common_interfaces(came: Hosts, hosts: Iterable[int]) -> dict[int, tuple[str, str]]:
    """Return host -> (interface, address) that all callers reached, preferring the one through which it connected."""
    found: dict[int, tuple[str, str]] = {}
    for host in hosts:
        look = came[host].look
        mine = [(card.name, a.partition("/")[0]) for card in look.interfaces if card.up for a in card.addresses]
        mine = [(n, a) for n, a in mine if not is_loopback(a)]
        mine.sort(key=lambda row: row[1] != came[host].address)
        for name, address in mine:
            rows = came.tries_at(host, address).values()
            if rows and all(t.result == "ok" and t.large is not False for t in rows):
                found[host] = (name, address)
                break
    return found
