"""Judges names and interfaces, and suggests a setting if one was measured to work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from dtdebug.doctor.host.interfaces import is_loopback
from dtdebug.doctor.judge.findings import finding, fold_names, labels, split_majority
from dtdebug.doctor.judge.forecast import Forecast, Pair
from dtdebug.doctor.judge.matrix import Hosts
from dtdebug.doctor.judge.network import common_interfaces, is_unreached
from dtdebug.doctor.report_types import HostFinding
from dtdebug.doctor.types import HostProblem, HostReport, Severity


def names(came: Hosts) -> Iterator[HostFinding]:
    """Check that all hosts resolve the endpoint to one host, and that exactly one recognises itself."""
    looks, called = [c.look for c in came], labels(came)
    launch = looks[0].launch
    sets = [frozenset(a for a in look.endpoint.addresses if not is_loopback(a)) for look in looks]
    known = [s for s in sets if s]
    if known and not frozenset.intersection(*known):
        most, others = split_majority([" ".join(sorted(s)) for s in sets])
        off = [called[i] for i in others if sets[i]]
        shown = "; ".join(f"{called[i]}: {', '.join(sorted(sets[i]))}" for i in others[:4] if sets[i])
        yield finding(
            "DR104",
            f"{launch.address} leads to different hosts ({shown})",
            hosts=off,
            measured=shown,
            expected=str(most),
        )
    if launch.backend == "c10d" and len(came) > 1:
        mine = [called[i] for i, look in enumerate(looks) if look.takes_itself]
        if len(mine) != 1:
            who = f"{', '.join(mine)} each recognise themselves" if mine else "no host recognises itself"
            leads = "two stores, two worlds" if mine else "all wait for a store that no host opens"
            owner = next((called[i] for i, look in enumerate(looks) if look.owns), called[0])
            yield finding(
                "DR105",
                f"{who} as {launch.address}: {leads}",
                hosts=mine or [owner],
                measured=f"{len(mine)} hosts",
                expected="one host",
                commands=(f"torchrun --rdzv-conf is_host=true ...  # on {owner} alone, is_host=false elsewhere",),
            )


def alone(look: HostReport, *, is_gloo: bool, several: bool) -> Iterator[HostProblem]:
    """Yield problems that one host finds in its own variables."""
    severity: Severity = "fault" if is_gloo and several else "warning"
    given = look.gloo.interface
    wrong = HostProblem(id="DR112", text="", severity=severity, expected="an interface of this host")
    if look.gloo.error and given[:1] in ("^", "="):
        yield HostProblem(
            id="DR113",
            text=f"GLOO_SOCKET_IFNAME={given} is NCCL's notation; gloo takes it for the name of a card",
            measured=given,
            expected="the exact name of one interface",
            severity=severity,
        )
    elif look.gloo.error:
        cards = ", ".join(c.name for c in look.interfaces if c.up and c.addresses and c.name != "lo")
        text = f"GLOO_SOCKET_IFNAME names {given}: {look.gloo.error}"
        yield replace(wrong, text=text, measured=given, expected=f"one of {cards}" if cards else wrong.expected)
    elif look.gloo.why == "GLOO_SOCKET_IFNAME" and not _is_up(look, given):
        yield replace(wrong, text=f"GLOO_SOCKET_IFNAME names {given}, which is down", measured=f"{given} is down")
    if look.nccl.error and look.nccl.why == "NCCL_SOCKET_IFNAME":
        worst: Severity = "warning" if is_gloo else "fault"
        yield replace(wrong, text=f"NCCL_SOCKET_IFNAME: {look.nccl.error}", measured=look.nccl.error, severity=worst)


def _is_up(look: HostReport, name: str) -> bool:
    return next((card.up for card in look.interfaces if card.name == name), True)


def gloo(came: Hosts, forecast: Forecast, *, is_gloo: bool) -> Iterator[HostFinding]:
    """Yield unreachable addresses that gloo will use, with the pairs that will fail."""
    called = labels(came)
    if len(came) < 2:
        return
    by_why: dict[str, list[int]] = {"DR102": [], "DR106": [], "DR111": []}
    for i, c in enumerate(came):
        choice = c.look.gloo
        if choice.error:
            continue
        if choice.why == "GLOO_SOCKET_IFNAME" and is_loopback(choice.address):
            by_why["DR111"].append(i)
        elif choice.why == "fallback" and not any(is_loopback(a) for a in c.look.own.addresses):
            by_why["DR106"].append(i)
        elif is_loopback(choice.address):
            by_why["DR102"].append(i)
        elif is_unreached(came, i, choice.address) and common_interfaces(came, [i]):
            by_why["DR111"].append(i)
    families = {
        ":" in c.look.gloo.address for c in came if c.look.gloo.address and not is_loopback(c.look.gloo.address)
    }
    for name, hosts in by_why.items():
        if hosts:
            yield _addresses(name, hosts, came, forecast, called, is_gloo=is_gloo)
    if len(families) == 2:
        wide = [i for i, c in enumerate(came) if ":" in c.look.gloo.address]
        yield finding(
            "DR114",
            f"{fold_names([called[i] for i in wide])} will take IPv6 addresses, the other hosts IPv4",
            hosts=[called[i] for i in wide],
            pairs=_pairs(called, [p for p in forecast.failing if p.why == "family"]),
            measured=", ".join(came[i].look.gloo.address for i in wide[:4]),
            expected="one family on all hosts",
            export=reached_by_all(came),
            severity="fault" if is_gloo else "warning",
        )


def _addresses(
    name: str, hosts: list[int], came: Hosts, forecast: Forecast, called: list[str], *, is_gloo: bool
) -> HostFinding:
    mine = [p for p in forecast.failing if p.caller in hosts or p.called in hosts]
    who = fold_names([called[i] for i in hosts])
    first = came[hosts[0]].look
    if name == "DR111" and is_loopback(first.gloo.address):
        reason = f"{who}: GLOO_SOCKET_IFNAME names {first.gloo.interface}, the loopback"
    elif name == "DR111":
        reason = f"{who}: peers cannot reach {first.gloo.address} ({first.gloo.interface}), which gloo will take"
    elif name == "DR106":
        leads = first.own.error or ", ".join(first.own.addresses)
        reason = f"{who}: its own name does not resolve to it ({leads})"
    else:
        place = f" ({first.own.place})" if first.own.place else ""
        reason = f"{who}: own name resolves to {first.gloo.address}{place}"
    if mine:
        row = mine[0]
        what = ", itself," if row.why == "itself" else ""
        lead = f"gloo will fail in {len(mine)} of {forecast.pairs} pairs: {called[row.caller]} will call "
        lead += f"{row.address}{what} for {called[row.called]}; "
    else:
        lead = ""
    harm = "" if mine else "; gloo connects nevertheless, since these hosts call the others"
    export = reached_by_all(came)
    return finding(
        name,
        f"{lead}{reason}{harm}",
        hosts=[called[i] for i in hosts],
        pairs=_pairs(called, mine),
        measured=first.gloo.address,
        expected="an address that the others reach",
        export=export,
        commands=_per_host(came, called) if not export else (),
        severity="fault" if mine and is_gloo else "warning" if mine or is_gloo else "hint",
    )


def reached_by_all(came: Hosts) -> dict[str, str]:
    """Return the setting for the interface that all hosts can reach, if its name is the same on all."""
    found = common_interfaces(came, range(len(came)))
    cards = {card for card, _ in found.values()}
    return {"GLOO_SOCKET_IFNAME": cards.pop()} if len(found) == len(came) and len(cards) == 1 else {}


def _per_host(came: Hosts, called: list[str]) -> tuple[str, ...]:
    found = common_interfaces(came, range(len(came)))
    return tuple(f"export GLOO_SOCKET_IFNAME={card}  # on {called[i]}" for i, (card, _) in list(found.items())[:16])


def _pairs(called: list[str], pairs: Sequence[Pair]) -> list[tuple[str, str]]:
    return [(called[p.caller], called[p.called]) for p in pairs]


def nccl(came: Hosts, forecast: Forecast, *, is_gloo: bool) -> Iterator[HostFinding]:
    """Yield interfaces that NCCL will use and that cannot reach each other, if NCCL will be used."""
    called = labels(came)
    bad = [p for p in forecast.failing if p.why != "none"]
    if is_gloo or not bad:
        return
    good = common_interfaces(came, range(len(came)))
    cards = {card for card, _ in good.values()}
    export = {"NCCL_SOCKET_IFNAME": f"={next(iter(cards))}"} if len(good) == len(came) and len(cards) == 1 else {}
    if not export:  # then the network itself is at fault
        return
    hosts = sorted({p.called for p in bad})
    taken = ", ".join(dict.fromkeys(came[i].look.nccl.interface for i in hosts))
    yield finding(
        "DR115",
        f"NCCL will take {taken} on {fold_names([called[i] for i in hosts])}, which the others do not reach",
        hosts=[called[i] for i in hosts],
        pairs=_pairs(called, bad),
        measured=taken,
        severity="fault",
        expected=", ".join(cards),
        export=export,
    )


def pin_settings(came: Hosts) -> dict[str, str]:
    """Return the settings that pin the interface through which all hosts reached each other."""
    found = reached_by_all(came)
    return {**found, "NCCL_SOCKET_IFNAME": f"={found['GLOO_SOCKET_IFNAME']}"} if found else {}
