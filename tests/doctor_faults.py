"""Faults for the laboratory of doctor: how to put each in, and what has to be said of it, on which host."""

from typing import NamedTuple

import doctor_lab

SYN = "tcp flags & (syn | ack) == syn"


class Fault(NamedTuple):
    put: object
    """Called with the lab; returns options for the launch."""
    ids: frozenset
    """Any of these is right."""
    hosts: frozenset
    """All of these are named, by whichever host's report."""
    severity: str = "fault"
    net: str = doctor_lab.NET
    gloo: bool = True
    """Real torchrun can be run beside it to compare the forecast."""


FAULTS = {}


def fault(ids, hosts, **more):
    def add(function):
        FAULTS[function.__name__] = Fault(
            function, frozenset(ids.split()), frozenset(h.replace("_", " ") for h in hosts.split()), **more
        )
        return function

    return add


@fault("DR102", "h0 h1 h2 h3")
def loopback_all(lab):
    for i in range(lab.count):
        lab.names(i, own="127.0.1.1")


@fault("DR102", "h2", severity="warning")
def loopback_of_a_caller(lab):
    lab.names(2, own="127.0.1.1")


@fault("DR102", "h2", net="192.168.77")
def loopback_of_one_that_is_called(lab):
    lab.names(2, own="127.0.1.1")


@fault("DR106", "h2", severity="warning")
def own_name_unknown(lab):
    lab.names(2, without=(2,))


@fault("DR101", "h3", gloo=False)
def endpoint_unknown(lab):
    lab.names(3, without=(0,))


@fault("DR204 DR205", "h2", gloo=False)
def endpoint_leads_elsewhere(lab):
    lab.names(2, other={0: f"{lab.net}.99"})


@fault("DR116", "h3", gloo=False)
def card_down(lab):
    lab.at(3, "ip", "link", "set", "eth0", "down")


@fault("DR305", "h0 h1 h2 h3", gloo=False)
def only_the_port_is_open(lab):
    for i in range(lab.count):
        lab.filter(i, f"{SYN} tcp dport != {doctor_lab.PORT} drop")


@fault("DR305", "h0 h1 h2 h3", gloo=False)
def only_the_port_is_open_rejected(lab):
    for i in range(lab.count):
        lab.filter(i, f"{SYN} tcp dport != {doctor_lab.PORT} reject with tcp reset")


@fault("DR302", "h1 h2", severity="warning")
def one_way_harmless(lab):
    lab.filter(2, f"ip saddr {lab.net}.2 {SYN} drop")


@fault("DR302", "h1 h2")
def one_way(lab):
    lab.filter(1, f"ip saddr {lab.net}.3 {SYN} drop")


@fault("DR203", "h1 h2 h3", gloo=False)
def endpoint_rejected(lab):
    lab.filter(0, f"tcp dport {doctor_lab.PORT} reject with tcp reset")


@fault("DR204", "h1 h2 h3", gloo=False)
def endpoint_dropped(lab):
    lab.filter(0, f"tcp dport {doctor_lab.PORT} drop")


@fault("DR303", "h3")
def large_lost(lab):
    lab.at(3, "ip", "link", "set", "eth0", "gso_max_segs", "1")
    lab.filter(3, "meta length > 1400 drop")
    for i in range(3):
        lab.at(i, "ip", "link", "set", "eth0", "gso_max_segs", "1")
        lab.filter(i, f"ip saddr {lab.net}.4 meta length > 1400 drop")


@fault("DR301", "h1 h2")
def pair_apart(lab):
    lab.filter(1, f"ip saddr {lab.net}.3 drop")
    lab.filter(2, f"ip saddr {lab.net}.2 drop")


@fault("DR301", "h3")
def host_apart(lab):
    lab.filter(3, f"{SYN} drop")
    for i in range(1, 3):
        lab.filter(i, f"ip saddr {lab.net}.4 {SYN} drop")
    lab.filter(0, f"ip saddr {lab.net}.4 {SYN} tcp dport != {doctor_lab.PORT} drop")


@fault("DR111", "h2")
def gloo_on_a_network_that_is_cut(lab):
    lab.variables[2]["GLOO_SOCKET_IFNAME"] = "eth1"
    lab.at("hub", "ip", "link", "set", "q2", "nomaster")


def in_one_network(lab, pinned, strict=()):
    """Both cards of all hosts, each answering for its own address alone; of strict hosts also only by its own way."""
    for i, variables in enumerate(lab.variables):
        lab.at("hub", "ip", "link", "set", f"q{i}", "master", "br0")
        lab.at(i, "ip", "address", "flush", "dev", "eth1")
        lab.at(i, "ip", "address", "add", f"{lab.net}.{i + 101}/24", "dev", "eth1")
        conf = "cd /proc/sys/net/ipv4/conf; for i in all eth0 eth1"
        lab.at(i, "sh", "-ec", f"{conf}; do echo 1 > $i/arp_ignore; echo {int(i in strict)} > $i/rp_filter; done")
        variables.update({"GLOO_SOCKET_IFNAME": pinned, "NCCL_SOCKET_IFNAME": f"={pinned}"})


@fault("DR118", "h0 h1 h2 h3", severity="warning")
def sent_by_another_card(lab):
    in_one_network(lab, "eth1")


@fault("DR119", "h2")
def way_back_by_another_card(lab):
    in_one_network(lab, "eth1", strict=(2,))


@fault("DR119", "h2")
def way_back_past_the_router(lab):
    """The others come by a router to a card of h2, which would answer by the card that it has in their network."""
    lab.at("hub", "ip", "address", "add", f"{lab.net}.254/24", "dev", "br0")
    lab.at("hub", "ip", "address", "add", f"{doctor_lab.SECOND}.254/24", "dev", "br1")
    lab.at("hub", "sh", "-ec", "echo 1 > /proc/sys/net/ipv4/ip_forward")
    for i, variables in enumerate(lab.variables):
        variables["GLOO_SOCKET_IFNAME"] = "eth1" if i == 2 else "eth0"
        if i == 2:
            lab.at(i, "sh", "-ec", "for i in all eth1; do echo 1 > /proc/sys/net/ipv4/conf/$i/rp_filter; done")
        else:
            lab.at(i, "ip", "address", "flush", "dev", "eth1")
            lab.at(i, "ip", "route", "add", f"{doctor_lab.SECOND}.0/24", "via", f"{lab.net}.254")


@fault("DR113", "h0 h1 h2 h3")
def notation_of_nccl(lab):
    for variables in lab.variables:
        variables["GLOO_SOCKET_IFNAME"] = "^lo,docker"


@fault("DR112", "h1")
def no_such_card(lab):
    lab.variables[1]["GLOO_SOCKET_IFNAME"] = "ens5"


@fault("DR207", "h1 h2", gloo=False)
def number_twice(lab):
    return {"launches": {2: {"node": 1}}}


@fault("DR207", "h0 h1", gloo=False)
def first_number_missing(lab):
    return {"launches": {0: {"node": 1}}}


@fault("DR105", "h2", gloo=False)
def first_number_elsewhere(lab):
    return {"launches": {0: {"node": 2}, 2: {"node": 0}}}


@fault("DR208", "h3", gloo=False)
def other_size(lab):
    return {"launches": {3: {"nodes": 3}}}


@fault("DR201", "node_3", gloo=False)
def absent(lab):
    return {"leave": (3,)}


@fault("DR203", "h2", gloo=False)
def other_port(lab):
    return {"launches": {2: {"port": 29501}}}


@fault("DR202 DR206", "h0", gloo=False)
def port_taken(lab):
    job = lab.start(
        0,
        "python3",
        "-c",
        f"import socket,time\ns=socket.create_server(('',{doctor_lab.PORT}))\nprint('on',flush=True)\ntime.sleep(60)",
    )
    job.stdout.readline()


@fault("DR402", "h1", gloo=False)
def code_differs(lab):
    path = lab.copy(1) / "train.py"
    path.write_text(path.read_text().replace("range(5)", "range(4)"))


@fault("DR402", "h2", gloo=False)
def module_differs(lab):
    (lab.folder / "model.py").write_text("WIDTH = 4\nDEPTH = 2\n")
    (lab.folder / "train.py").write_text("import model\n" + doctor_lab.PROGRAM)
    (lab.copy(2) / "model.py").write_text("WIDTH = 4\nDEPTH = 3\n")


@fault("DR407", "h3", gloo=False)
def program_missing(lab):
    (lab.copy(3) / "train.py").unlink()


@fault("DR403", "h2", severity="fault", gloo=False)
def debugging_on_one(lab):
    lab.variables[2]["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"


@fault("DR401", "h2", gloo=False)
def other_torch(lab):
    place = lab.folder / "of-packages" / "torch-2.9.1.dist-info"
    place.mkdir(parents=True)
    (place / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.9.1\n")
    lab.variables[2]["PYTHONPATH"] = str(place.parent)


@fault("DR105", "h0", gloo=False)
def nobody_takes_itself(lab):
    return {"c10d": True, "at": f"{doctor_lab.SECOND}.1"}


@fault("DR103", "h1 h2 h3", gloo=False)
def endpoint_is_the_loopback(lab):
    return {"at": "localhost"}


@fault("DR702", "h0", gloo=False)
def sizes_do_not_divide(lab):
    return {"arguments": ("--tensor-model-parallel-size", "3")}


@fault("DR210", "h1", gloo=False)
def other_token(lab):
    for i, variables in enumerate(lab.variables):
        variables["DTDEBUG_DOCTOR_TOKEN"] = "one" if i == 1 else "two"


@fault("DR503", "h1", severity="warning", gloo=False)
def few_files(lab):
    lab.before[1] = "ulimit -n 100"


@fault("DR502", "h1", gloo=False)
def little_shared_memory(lab):
    lab.before[1] = "mount -t tmpfs -o size=16m none /dev/shm"


@fault("DR505", "h1", gloo=False)
def full_disk(lab):
    place = lab.folder / "of-checkpoints"
    place.mkdir()
    lab.before[1] = f"mount -t tmpfs -o size=1m none {place}"
    return {"arguments": ("--output_dir", place)}


@fault("DR301", "h0 h1 h2 h3", gloo=False)
def two_islands(lab):
    for i, (a, b) in enumerate(((3, 4), (3, 4), (1, 2), (1, 2))):
        rules = [f"ip saddr {lab.net}.{n} {SYN} tcp dport != {doctor_lab.PORT} drop" for n in (a, b)]
        lab.filter(i, *rules)


def healthy_plain(lab):
    return {}


def healthy_c10d(lab):
    return {"c10d": True}


def healthy_docker(lab):
    for i in range(lab.count):
        for card, address in (
            ("docker0", "172.17.0.1/16"),
            ("virbr0", "192.168.122.1/24"),
            ("wg0", f"10.99.0.{i + 1}/24"),
        ):
            lab.at(i, "ip", "link", "add", card, "type", "bridge")
            lab.at(i, "ip", "address", "add", address, "dev", card)
            lab.at(i, "ip", "link", "set", card, "up")


def healthy_ipv6(lab):
    for i in range(lab.count):
        lab.at(i, "ip", "address", "add", f"fd77::{i + 1}/64", "dev", "eth0", "nodad")
        lab.names(i, other={j: f"fd77::{j + 1}" for j in range(lab.count)}, own=f"fd77::{i + 1}")


def healthy_jumbo(lab):
    for i in range(lab.count):
        lab.at("hub", "ip", "link", "set", f"p{i}", "mtu", "9000")
        lab.at(i, "ip", "link", "set", "eth0", "mtu", "9000")


def healthy_many_addresses(lab):
    for i in range(lab.count):
        for k in range(12):
            lab.at(i, "ip", "address", "add", f"10.88.{k}.{i + 1}/24", "dev", "eth1")


def healthy_by_address(lab):
    return {"at": f"{lab.net}.1"}


def healthy_pinned(lab):
    for variables in lab.variables:
        variables.update({"GLOO_SOCKET_IFNAME": "eth1", "NCCL_SOCKET_IFNAME": "=eth1"})


def healthy_loopback_pinned(lab):
    """Own names lead to the loopback, and the variable that fixes it is set."""
    for i, variables in enumerate(lab.variables):
        lab.names(i, own="127.0.1.1")
        variables["GLOO_SOCKET_IFNAME"] = "eth0"


def healthy_strict_in_one_network(lab):
    """What comes in at eth0 is answered by eth0."""
    in_one_network(lab, "eth0", strict=range(lab.count))


def healthy_strict_pinned(lab):
    """Each card has its own network."""
    healthy_pinned(lab)
    for i in range(lab.count):
        lab.at(i, "sh", "-ec", "for i in all eth0 eth1; do echo 1 > /proc/sys/net/ipv4/conf/$i/rp_filter; done")


def healthy_second_card_down(lab):
    for i in range(lab.count):
        lab.at(i, "ip", "link", "set", "eth1", "down")


HEALTHY = {name: value for name, value in list(globals().items()) if name.startswith("healthy_")}
