"""The types of what is looked at and probed before a run; what follows from it is in `report`.

A part that was not looked at stays at its default, and `unread` says why; nothing here is ever guessed.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from dtdebug.doctor.routes import Back

VERSION = 1
"""Of what hosts send each other, and of the JSON form."""
MOST_HOSTS = 4096
Severity = Literal["fault", "warning", "hint"]


class Launch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a launch command and its variables say of the job on one host."""

    launcher: str = ""
    """`torchrun`, `accelerate launch`, `deepspeed`, `mpirun`, `horovodrun`, `ray`, `variables`; empty if none."""
    nodes: int = 1
    least: int = 1
    """Hosts with which an elastic job can begin."""
    node: int | None = None
    per_node: int | None = None
    """Ranks of a host; None if that is left to the number of devices, or not said."""
    world: int | None = None
    """All ranks, where the command itself says so."""
    address: str = ""
    port: int | None = None
    backend: str = ""
    """`static`, `c10d`: torchrun's rendezvous."""
    run_id: str = ""
    hosts: tuple[str, ...] = ()
    """Names of the hosts by node, from a hostfile or the batch system."""
    hosts_from: str = ""
    program: str = ""
    """The training program as the command names it."""
    arguments: tuple[str, ...] = ()
    configurations: tuple[str, ...] = ()
    """Files that the launcher itself is given."""
    starts: str = ""
    """The program of the command that itself starts the other hosts, `srun`; empty if each host is started alone."""
    problems: tuple[str, ...] = ()
    """What in the command could not be read."""
    refused: tuple[str, ...] = ()
    """What the launcher itself will not take."""

    @property
    def endpoint(self) -> str:
        """Where all meet, `HOST:PORT`."""
        return f"{self.address}:{self.port}" if self.address and self.port else ""

    @property
    def ranks(self) -> int | None:
        """The size of the world, where it is known."""
        return self.world or (self.per_node * self.nodes if self.per_node else None)


class Interface(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A network interface."""

    name: str
    up: bool = False
    mtu: int = 0
    speed: int = 0
    """Mbit/s; 0 if it does not say."""
    addresses: tuple[str, ...] = ()
    """With the length of the prefix, `10.0.0.1/24`; IPv4 first, each family as the kernel lists it."""
    strict: bool = False
    """It takes only what comes by the way that the answer would take (`rp_filter`)."""


class Choice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The interface that a library will take."""

    address: str = ""
    interface: str = ""
    why: str = ""
    """`GLOO_SOCKET_IFNAME`, `own name`, `fallback`, ..."""
    error: str = ""
    """Why it will take none."""
    given: str = ""
    """The value of the variable that chose it."""


class Name(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A name and where it leads on one host."""

    name: str
    addresses: tuple[str, ...] = ()
    error: str = ""
    place: str = ""
    """Line of /etc/hosts that says so."""


class Port(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A port of InfiniBand or RoCE."""

    name: str
    """`mlx5_0:1`."""
    state: str = ""
    """ACTIVE, DOWN, INIT, ..."""
    link: str = ""
    """LinkUp, Polling, Disabled, ..."""
    rate: str = ""
    """`400 Gb/sec (4X NDR)`."""
    layer: str = ""
    """InfiniBand or Ethernet."""


class Board(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A device as its driver describes it; what it did not say stays None."""

    name: str = ""
    used: int | None = None
    """Bytes of its memory in use before the run."""
    pids: tuple[int, ...] = ()
    """Processes that compute on it."""
    pending: bool | None = None
    """Rows of its memory wait to be remapped, at the next reset."""
    failed: bool | None = None
    """Rows could not be remapped."""
    slowed: int | None = None
    """Why its clocks are held down now, as bits of NVML."""
    width: int | None = None
    """Lanes of PCIe in use."""
    width_most: int | None = None
    links: tuple[int, ...] = ()
    """NVLinks, 1 where one is up."""
    mig: bool | None = None


class HostProblem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one host alone can judge: id of a check, and what was measured."""

    id: str
    text: str
    measured: str = ""
    expected: str = ""
    commands: tuple[str, ...] = ()
    export: dict[str, str] = {}
    severity: Severity | None = None


class HostReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one host says of itself."""

    host: str
    boot: str = ""
    """The running kernel and network: two launchers of one host have it alike."""
    version: str = ""
    launch: Launch = Launch()
    interfaces: tuple[Interface, ...] = ()
    own: Name = Name(name="")
    """The host's own name."""
    endpoint: Name = Name(name="")
    takes_itself: bool = False
    """The launcher here takes this host for the one where all meet, by torch's own rule."""
    owns: bool = False
    """An address of the endpoint's name is one of this host, loopback aside."""
    gloo: Choice = Choice()
    nccl: Choice = Choice()
    versions: dict[str, str] = {}
    files: dict[str, str] = {}
    """Program, local modules and configurations: path as imported -> hash."""
    variables: dict[str, str] = {}
    place: str = ""
    """Working directory."""
    container: str = ""
    """What shows that this is a container; empty if nothing does, which proves nothing."""
    devices: tuple[str, ...] | None = None
    """Models; None if not looked at."""
    boards: tuple[Board, ...] = ()
    """The same devices as their driver describes them."""
    driver: str = ""
    fabric: tuple[Port, ...] = ()
    topology: str = ""
    """How devices are connected, by `nvidia-smi topo -m`: the part without names of cards."""
    has_devices: bool = False
    """A driver of devices is there, whether or not it answered."""
    figures: dict[str, float] = {}
    """Bytes of memory, cores, limits, by name."""
    problems: tuple[HostProblem, ...] = ()
    unread: dict[str, str] = {}
    """Area or check -> why it was not looked at."""
    ports: tuple[tuple[str, int], ...] = ()
    """Where this host answers the probes of the others."""
    seconds: float = 0.0


class Try(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, array_like=True):
    """One probe of an address of a peer."""

    node: int
    """Index of the peer in the roster."""
    address: str
    result: str = "ok"
    """ok; or refused, timeout, unreachable, other (somebody else answers), error."""
    milliseconds: float = 0.0
    """Round trip of 64 bytes, the least of five."""
    large: bool | None = None
    """32 KiB came back."""
    passes: int = 0
    """Greatest segment size with which large messages pass where they otherwise do not; bytes."""
    source: str = ""
    """The caller's own address on its packets."""


class Bulk(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, array_like=True):
    """Much data sent to a peer (`--heavy`)."""

    node: int
    """Index of the peer in the roster."""
    rate: float = 0.0
    """Million bytes a second that came; 0 if the connection failed."""
    sent: int = 0
    """Segments, by the kernel's count (TCP_INFO)."""
    again: int = 0
    """Segments that were lost, and so had to be sent again."""


class Meeting(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How this host fared on its way to the endpoint."""

    result: str = ""
    """hub, came, unresolved, refused, timeout, unreachable, other, token, version, taken, none (no endpoint)."""
    words: str = ""
    tries: int = 0
    seconds: float = 0.0
    holder: str = ""


class Came(msgspec.Struct, kw_only=True):
    """A host that came to the endpoint, as the collector knows it."""

    look: HostReport
    node: int | None
    address: str
    """From where it came."""
    offset: float = 0.0
    """Its clock less the collector's, in seconds."""
    tries: list[Try] = []
    back: Back = Back()
    bulk: list[Bulk] = []
    lines: dict[str, list[str]] = {}
    """Hashes of lines of the files that differ."""


class Stranger(NamedTuple):
    """Who came and was not let in."""

    address: str
    why: str
    """token; version: it has another protocol."""
    release: str = ""
    """Of dtdebug, as it says itself, with its protocol."""
