"""Draws faults of several random hosts: counts which faults are named, and false reports about healthy hosts.

python benchmarks/doctor_random.py [--seed N] [--count N] [--two] [--gloo]; needs root, iproute2 and nft.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import doctor_faults
import doctor_lab
import hosts_lab

SYN = doctor_faults.SYN
Lab = doctor_lab.Lab


MAKERS: list[Callable[[Lab, random.Random], tuple[str, set[str], dict[str, Any]]]] = []


def maker(function: Callable[[Lab, random.Random], tuple[str, set[str], dict[str, Any]]]) -> Any:
    """Register a kind of fault."""
    MAKERS.append(function)
    return function


FREE: set[int] = set()
"""Hosts without a fault so far; h0, where all hosts connect, is never among them."""


def _drawn(r: random.Random, count: int) -> list[int]:
    """Draw hosts without another fault: of two faults on one host, one would hide the other."""
    drawn = r.sample(sorted(FREE), count)
    FREE.difference_update(drawn)
    return drawn


def _host(r: random.Random) -> int:
    return _drawn(r, 1)[0]


def _names(*hosts: int) -> set[str]:
    return {f"h{h}" for h in hosts}


@maker
def route_refused(lab: Lab, r: random.Random) -> Any:
    """Give a host a route to one peer that leads nowhere."""
    a, b = _drawn(r, 2)
    lab.at(a, "ip", "route", "add", r.choice(["unreachable", "prohibit", "blackhole"]), f"{lab.net}.{b + 1}/32")
    return "DR301 DR302", _names(a, b), {}


@maker
def narrow_mask(lab: Lab, r: random.Random) -> Any:
    """Give a host a netmask so narrow that it has no route to the others."""
    h = _host(r)
    lab.at(h, "ip", "address", "flush", "dev", "eth0")
    lab.at(h, "ip", "address", "add", f"{lab.net}.{h + 1}/32", "dev", "eth0")
    return "DR205 DR204", {f"h{h}"}, {}


@maker
def no_address(lab: Lab, r: random.Random) -> Any:
    """Remove the card's address."""
    h = _host(r)
    lab.at(h, "ip", "address", "flush", "dev", "eth0")
    return "DR205 DR204", {f"h{h}"}, {}


@maker
def output_dropped(lab: Lab, r: random.Random) -> Any:
    """Let a host's own filter block connections to one peer."""
    a, b = _drawn(r, 2)
    rules = f"type filter hook output priority 0;\nip daddr {lab.net}.{b + 1} {SYN} drop"
    rules = f"table inet o {{\nchain c {{\n{rules}\n}}\n}}\n"
    path = lab.folder / "of-rules"
    path.write_text(rules)
    lab.at(a, "nft", "-f", path)
    return "DR302", _names(a, b), {}


@maker
def rejected_by_icmp(lab: Lab, r: random.Random) -> Any:
    """Let a host reject all connections except those to the endpoint, by ICMP."""
    h = _host(r)
    lab.filter(h, f"{SYN} reject with icmpx type admin-prohibited")
    return "DR301 DR302 DR111", {f"h{h}"}, {}


@maker
def first_host_is_another(lab: Lab, r: random.Random) -> Any:
    """Make node 0 another host than the endpoint's."""
    h = _host(r)
    return "DR203 DR201 DR105", {f"h{h}", "h0"}, {"launches": {0: {"node": h}, h: {"node": 0}}}


@maker
def number_too_large(lab: Lab, r: random.Random) -> Any:
    """Use a node number outside of the job."""
    h = _host(r)
    return "DR209", {f"h{h}"}, {"launches": {h: {"node": lab.count + 3}}}


@maker
def ids_differ(lab: Lab, r: random.Random) -> Any:
    """Use a different rendezvous id on one host."""
    h = _host(r)
    return "DR208", {f"h{h}"}, {"c10d": True, "launches": {h: {"more": ("--rdzv-id", "other")}}}


@maker
def ranks_differ(lab: Lab, r: random.Random) -> Any:
    """Use a different number of ranks on one host."""
    h = _host(r)
    return "DR208", {f"h{h}"}, {"launches": {h: {"more": ("--nproc-per-node", "2")}}}


@maker
def gloo_on_the_loopback(lab: Lab, r: random.Random) -> Any:
    """Set the variable to lo on all hosts."""
    for variables in lab.variables:
        variables["GLOO_SOCKET_IFNAME"] = "lo"
    return "DR102 DR111 DR112", _names(*range(lab.count)), {}


@maker
def families_differ(lab: Lab, r: random.Random) -> Any:
    """Let one host's own name resolve to IPv6."""
    h = _host(r)
    for i in range(lab.count):
        lab.at(i, "ip", "address", "add", f"fd77::{i + 1}/64", "dev", "eth0", "nodad")
    lab.names(h, own=f"fd77::{h + 1}")
    return "DR114", {f"h{h}"}, {}


@maker
def jumbo_on_one(lab: Lab, r: random.Random) -> Any:
    """Let one card and its peers send frames that the switch does not accept."""
    h = _host(r)
    for i in range(lab.count):
        lab.at(i, "ip", "link", "set", "eth0", "mtu", "9000", "gso_max_segs", "1")
        if i != h:
            lab.at("hub", "ip", "link", "set", f"p{i}", "mtu", "9000", "gso_max_segs", "1")
    lab.at("hub", "ip", "link", "set", f"p{h}", "gso_max_segs", "1")
    return "DR303", {f"h{h}"}, {}


@maker
def way_back(lab: Lab, r: random.Random) -> Any:
    """Put both cards of all hosts into one network; one host accepts only packets by the route of its answer."""
    h = _host(r)
    doctor_faults.in_one_network(lab, "eth1", strict=(h,))
    return "DR119", {f"h{h}"}, {}


@maker
def configuration_differs(lab: Lab, r: random.Random) -> Any:
    """Change the configuration that the program receives."""
    h = _host(r)
    (lab.folder / "config.yaml").write_text("lr: 0.1\nwidth: 4\n")
    (lab.copy(h) / "config.yaml").write_text("lr: 0.1\nwidth: 8\n")
    return "DR402", {f"h{h}"}, {"arguments": ("--config", "config.yaml")}


@maker
def batch(lab: Lab, r: random.Random) -> Any:
    """Use a batch size for another number of hosts."""
    for place in set(lab.places):
        (place / "ds.json").write_text(
            f'{{"train_batch_size": {8 * (lab.count + 1)}, "train_micro_batch_size_per_gpu": 8}}'
        )
    return "DR701", {"h0"}, {"arguments": ("--deepspeed", "ds.json")}


@maker
def world_in_the_shell(lab: Lab, r: random.Random) -> Any:
    """Set variables of communication on only one host."""
    h = _host(r)
    lab.variables[h]["TORCH_DISTRIBUTED_DEBUG"] = "INFO"
    return "DR403", {f"h{h}"}, {}


@maker
def first_host_absent(lab: Lab, r: random.Random) -> Any:
    """Do not start the host of the endpoint."""
    return "DR203", {"h1", "h2"}, {"leave": (0,)}


@maker
def two_absent(lab: Lab, r: random.Random) -> Any:
    """Do not start two of the hosts."""
    a, b = _drawn(r, 2)
    return "DR201", {f"node {a}", f"node {b}"}, {"leave": (a, b)}


@maker
def harmless_udp(lab: Lab, r: random.Random) -> Any:
    """Occupy the port by UDP, which does not affect TCP."""
    job = lab.start(
        0,
        "python3",
        "-c",
        "import socket,time\ns=socket.socket(2,2)\ns.bind(('',29500))\nprint(1,flush=True)\ntime.sleep(60)",
    )
    job.stdout.readline()
    return "", set(), {}


@maker
def harmless_debugging(lab: Lab, r: random.Random) -> Any:
    """Set NCCL_DEBUG on one host."""
    lab.variables[_host(r)]["NCCL_DEBUG"] = "INFO"
    return "", set(), {}


@maker
def harmless_small_mtu(lab: Lab, r: random.Random) -> Any:
    """Set an MTU of 1280 on all cards."""
    for i in range(lab.count):
        lab.at(i, "ip", "link", "set", "eth0", "mtu", "1280")
    return "", set(), {}


@maker
def harmless_order(lab: Lab, r: random.Random) -> Any:
    """Number the hosts in another order."""
    numbers = list(range(1, lab.count))
    r.shuffle(numbers)
    return "", set(), {"launches": {i + 1: {"node": n} for i, n in enumerate(numbers)}}


@maker
def harmless_route(lab: Lab, r: random.Random) -> Any:
    """Add a default route, and a filter for another port."""
    for i in range(lab.count):
        lab.at(i, "ip", "route", "add", "default", "via", f"{lab.net}.{(i + 1) % lab.count + 1}")
        lab.filter(i, "tcp dport 22 drop", "udp dport 53 drop")
    return "", set(), {}


APART = (
    {"gloo_on_the_loopback", "families_differ"},  # with the variable the own name is not asked
    {"gloo_on_the_loopback", "way_back"},
    {"families_differ", "way_back"},
    {"jumbo_on_one", "way_back"},  # the one changes the card that the other takes away
    {"ids_differ", "first_host_is_another"},  # c10d gives the numbers itself
    {"ids_differ", "number_too_large"},
    {"ids_differ", "two_absent"},  # and nobody knows the number of who is absent
)
"""Pairs of faults that cancel each other: together they are one fault."""


def _second(first: Callable[..., Any], lab: Lab, r: random.Random, launch: dict[str, Any]) -> tuple[str, set[str], str]:
    """Add another fault, on other hosts: (ids, hosts, name); its launch is merged into the first one's."""
    others = [m for m in MAKERS if m is not first and not m.__name__.startswith(("harmless", "first_host_absent"))]
    make = r.choice([m for m in others if {m.__name__, first.__name__} not in APART])
    ids, named, more = make(lab, r)
    for host, change in more.pop("launches", {}).items():
        launch.setdefault("launches", {}).setdefault(host, {}).update(change)
    for name in ("leave", "arguments"):
        if added := more.pop(name, ()):
            launch[name] = (*launch.get(name, ()), *added)
    launch.update(more)
    return ids, named, make.__name__


def _said(ids: str, named: set[str], findings: list[dict[str, Any]]) -> tuple[bool, bool]:
    """Return (one of the hosts is named, the cause is named for one of them)."""
    causes = [f for f in findings if f["id"] in ids.split() and named & set(f["hosts"])]
    return bool(named & {h for f in findings for h in f["hosts"]}), bool(causes)


def main() -> int:
    """Draw and run; print a line each, then the totals."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=len(MAKERS))
    parser.add_argument("--two", action="store_true", help="two faults in each")
    parser.add_argument("--gloo", action="store_true", help="run the job too where it can, and compare the forecast")
    parser.add_argument("--most", type=int, default=5, help="hosts")
    options = parser.parse_args()
    if why := hosts_lab.can_be_made() or doctor_lab.can_filter():
        print(why)
        return 2
    r = random.Random(options.seed)
    order = MAKERS * (options.count // len(MAKERS)) + r.sample(MAKERS, options.count % len(MAKERS))
    hosts, causes, clean, forecasts = [], [], [], []
    for make in order:
        alone = not options.two or make.__name__ == "first_host_absent"  # then nobody meets, and no pair is tried
        size = r.choice(range(3 if alone else 5, options.most + 1))
        FREE.clear()
        FREE.update(range(1, size))
        with (
            tempfile.TemporaryDirectory() as folder,
            Lab(folder, count=size, net=r.choice([doctor_lab.NET, "192.168.77"])) as lab,
        ):
            ids, named, launch = make(lab, r)
            second = _second(make, lab, r, launch) if ids and not alone else None
            began = time.monotonic()
            found = lab.doctors(**launch)
            seconds = time.monotonic() - began
            forecast = found[min(found)][0].get("forecast", {}).get("gloo", "")
            truth = ""
            if options.gloo and forecast and not ({"leave", "launches"} & set(launch)):
                truth = "connects" if lab.gloo(seconds=60) else "fails"
                forecasts.append(forecast == truth)
        every = [f for report, _ in found.values() for f in report["findings"]]
        faults = [f for f in every if f["severity"] == "fault"]
        if not ids:
            clean.append(not faults)
            mark = "ok " if clean[-1] else "BAD"
        else:
            faults_said = [_said(ids, named, every)]
            if second is not None:
                faults_said.append(_said(*second[:2], every))
                named, ids = named | second[1], f"{ids} + {second[2]}: {second[0]}"
            hosts.append(all(host for host, _ in faults_said))
            causes.append(all(cause for _, cause in faults_said))
            mark = "ok " if hosts[-1] and causes[-1] else "BAD"
        said = f"{forecast} {truth}" if truth else ""
        print(
            f"{mark} {make.__name__:24} {size} hosts {seconds:5.1f} s  meant {sorted(named)} {ids} {said}", flush=True
        )
        for row in sorted({(f["id"], f["severity"], f["text"][:170]) for f in every}):
            print("       ", *row, flush=True)
        for report, _ in found.values():
            if report.get("printed"):
                print("        PRINTED", report["printed"][-500:], flush=True)
    print(
        f"host {sum(hosts)}/{len(hosts)}  cause {sum(causes)}/{len(causes)}  without a fault {sum(clean)}/{len(clean)}"
        f"  forecast {sum(forecasts)}/{len(forecasts)}"
    )
    return 0 if all((*hosts, *causes, *clean)) else 1


if __name__ == "__main__":
    sys.exit(main())
