"""Detects packets that leave by another card than the chosen one, and packets that `rp_filter` drops."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug.doctor.host.interface_choice import bare, matches
from dtdebug.doctor.host.interfaces import is_loopback
from dtdebug.doctor.host.routes import UNANSWERED
from dtdebug.doctor.judge.findings import finding, fold_names, labels
from dtdebug.doctor.judge.forecast import Forecast
from dtdebug.doctor.judge.interfaces import reached_by_all
from dtdebug.doctor.judge.matrix import Hosts
from dtdebug.doctor.report_types import HostFinding
from dtdebug.doctor.types import Choice, HostReport


def astray(came: Hosts, *, is_gloo: bool) -> Iterator[HostFinding]:
    """Yield hosts whose packets carry an address of a different card from the one that a variable names."""
    called = labels(came)
    groups: dict[tuple[str, str], list[tuple[int, int, str]]] = {}
    for j, other in enumerate(came):
        for i, tried in came.tries_at(j, _chosen_interface(other.look, is_gloo=is_gloo).address).items():
            card = _card(came[i].look, tried.source)
            if card and not _means(_chosen_interface(came[i].look, is_gloo=is_gloo), card, is_gloo=is_gloo):
                groups.setdefault((_chosen_interface(came[i].look, is_gloo=is_gloo).given, card), []).append(
                    (i, j, tried.source)
                )
    variable = "GLOO_SOCKET_IFNAME" if is_gloo else "NCCL_SOCKET_IFNAME"
    for (given, card), rows in groups.items():
        i, j, address = rows[0]
        hosts = [called[k] for k in sorted({row[0] for row in rows})]
        peers = [called[k] for k in sorted({row[1] for row in rows})]
        yield finding(
            "DR118",
            f"{fold_names(hosts)}: {variable} is {given}, but packets to {fold_names(peers)} leave with an address of "
            f"{card} ({called[i]} to {called[j]}: {address})",
            hosts=hosts,
            pairs=[(called[a], called[b]) for a, b, _ in rows],
            measured=f"{address} ({card})",
            expected=f"an address of {given.lstrip('=')}",
        )


def find_dropped(came: Hosts, forecast: Forecast) -> Iterator[HostFinding]:
    """Yield hosts that drop packets since their reply would leave by another card; `forecast` is the used library's."""
    called = labels(came)
    harmful = {frozenset((p.caller, p.called)) for p in forecast.failing}
    for j, host in enumerate(came):
        strict = {bare(a): card.name for card in host.look.interfaces if card.strict for a in card.addresses}
        groups: dict[tuple[str, str], list[tuple[int, str]]] = {}
        for address, card in strict.items():
            for i, tried in came.tries_at(j, address).items():
                way = _card(host.look, host.back.ways.get(tried.source, ""))
                if tried.result in UNANSWERED and way not in ("", card):
                    groups.setdefault((card, way), []).append((i, tried.source))
        for (card, way), rows in groups.items():
            callers = [called[i] for i, _ in rows]
            counted = f"; {host.back.dropped} packets counted as dropped for it" if host.back.dropped else ""
            harm = any(frozenset((i, j)) in harmful for i, _ in rows)
            yield finding(
                "DR119",
                f"{called[j]} drops what {fold_names(callers)} sends to its {card}: its own way back, to {rows[0][1]}, "
                f"leads by {way}, and {card} has rp_filter 1",
                hosts=[called[j]],
                pairs=[(name, called[j]) for name in callers],
                measured=f"no answer at {card}, rp_filter 1, the way back leads by {way}{counted}",
                expected=f"the way back by {card}, or rp_filter 2",
                commands=(f"sysctl -w net/ipv4/conf/{card}/rp_filter=2",),
                export=reached_by_all(came),
                severity="fault" if harm else "warning",
            )
    first = came[0]
    cards = [card.name for card in first.look.interfaces if card.strict]
    if len(came) < first.look.launch.least and first.back.dropped and cards:
        yield finding(
            "DR119",
            f"{called[0]} dropped {first.back.dropped} packets for the way they came while it waited for others",
            hosts=[called[0]],
            measured=f"{first.back.dropped} packets; rp_filter 1 at {', '.join(cards)}",
            expected="the way back by the card at which they came, or rp_filter 2",
            severity="warning",
        )


def _chosen_interface(look: HostReport, *, is_gloo: bool) -> Choice:
    return look.gloo if is_gloo else look.nccl


def _means(choice: Choice, card: str, *, is_gloo: bool) -> bool:
    """True if the variable allows the card; always if it is unset or names the loopback."""
    if not choice.given or choice.error or is_loopback(choice.address):
        return True
    names = [name.partition(":")[0] for name in choice.given.split(",")]
    return card in names if is_gloo else matches(card, choice.given)


def _card(look: HostReport, address: str) -> str:
    """Return the card that has an address, without alias label; empty if none or the loopback."""
    found = next((c.name for c in look.interfaces if any(bare(a) == address for a in c.addresses)), "")
    return "" if found == "lo" else found.partition(":")[0]
