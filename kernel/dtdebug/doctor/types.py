"""Types of what doctor inspects and probes before a run; conclusions are in `report_types`.

A part that was not inspected stays at its default, and `unread` gives the reason; nothing here is guessed.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

VERSION = 1
"""Version of the hosts' protocol and of the JSON form."""
MOST_HOSTS = 4096
Severity = Literal["fault", "warning", "hint"]


class ReturnRoutes(msgspec.Struct, frozen=True, kw_only=True):
    """A host's routes back to peers that got no answer from it."""

    dropped: int = 0
    """Packets that reverse path filtering has dropped since the meeting began."""
    ways: dict[str, str] = {}
    """Peer's address -> source address of packets to it."""


class Launch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Launch settings from the command and environment variables of one host."""

    launcher: str = ""
    """`torchrun`, `accelerate launch`, `deepspeed`, `mpirun`, `horovodrun`, `ray`, `variables`; empty if unknown."""
    nodes: int = 1
    least: int = 1
    """Number of hosts with which an elastic job can begin."""
    node: int | None = None
    per_node: int | None = None
    """Ranks per host; None if unknown or left to the number of devices."""
    world: int | None = None
    """Total number of ranks, if the command states it."""
    address: str = ""
    port: int | None = None
    backend: str = ""
    """Rendezvous of torchrun: `static` or `c10d`."""
    run_id: str = ""
    hosts: tuple[str, ...] = ()
    """Host names by node, from a hostfile or the batch system."""
    hosts_from: str = ""
    program: str = ""
    """Training program as named in the command."""
    arguments: tuple[str, ...] = ()
    configurations: tuple[str, ...] = ()
    """Configuration files given to the launcher itself."""
    starts: str = ""
    """Program in the command that starts the other hosts, such as `srun`; empty if each host is started separately."""
    problems: tuple[str, ...] = ()
    """Parts of the command that could not be read."""
    refused: tuple[str, ...] = ()
    """Values that the launcher itself would reject."""

    @property
    def endpoint(self) -> str:
        """`HOST:PORT` where all hosts connect, or ""."""
        return f"{self.address}:{self.port}" if self.address and self.port else ""

    @property
    def ranks(self) -> int | None:
        """World size, or None if unknown."""
        return self.world or (self.per_node * self.nodes if self.per_node else None)


class Interface(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A network interface."""

    name: str
    up: bool = False
    mtu: int = 0
    speed: int = 0
    """Mbit/s; 0 if unknown."""
    addresses: tuple[str, ...] = ()
    """Addresses with prefix length, `10.0.0.1/24`; IPv4 first, each family in the kernel's order."""
    strict: bool = False
    """The interface drops packets whose reply would leave by another interface (`rp_filter`)."""


class Choice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Interface and address that a library will use."""

    address: str = ""
    interface: str = ""
    why: str = ""
    """Source of the choice: `GLOO_SOCKET_IFNAME`, `own name`, `fallback`, ..."""
    error: str = ""
    """Reason why the library will not find an interface."""
    given: str = ""
    """Value of the variable that made the choice."""


class Name(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Host name and the addresses to which one host resolves it."""

    name: str
    addresses: tuple[str, ...] = ()
    error: str = ""
    place: str = ""
    """Line of /etc/hosts that defines the name."""


class Port(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """InfiniBand or RoCE port."""

    name: str
    """Device and port, `mlx5_0:1`."""
    state: str = ""
    """ACTIVE, DOWN, INIT, ..."""
    link: str = ""
    """LinkUp, Polling, Disabled, ..."""
    rate: str = ""
    """`400 Gb/sec (4X NDR)`."""
    layer: str = ""
    """InfiniBand or Ethernet."""


class Board(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Device as its driver describes it; what the driver did not report stays None."""

    name: str = ""
    used: int | None = None
    """Bytes of device memory in use before the run."""
    pids: tuple[int, ...] = ()
    """Processes that compute on the device."""
    pending: bool | None = None
    """Memory rows will be remapped at the next reset."""
    failed: bool | None = None
    """Memory rows could not be remapped."""
    slowed: int | None = None
    """Reasons why the clocks are held down now, as NVML bits."""
    width: int | None = None
    """PCIe lanes in use."""
    width_most: int | None = None
    links: tuple[int, ...] = ()
    """State of each NVLink: 1 if it is up."""
    mig: bool | None = None


class HostProblem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Fault that one host can judge alone: id of the check, and the measurement."""

    id: str
    text: str
    measured: str = ""
    expected: str = ""
    commands: tuple[str, ...] = ()
    export: dict[str, str] = {}
    severity: Severity | None = None


class HostReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One host's report about itself."""

    host: str
    boot: str = ""
    """Id of the running kernel and network; two launchers on one host share it."""
    version: str = ""
    launch: Launch = Launch()
    interfaces: tuple[Interface, ...] = ()
    own: Name = Name(name="")
    """The host's own name, resolved."""
    endpoint: Name = Name(name="")
    takes_itself: bool = False
    """By torch's own rule, the launcher takes this host for the one where all hosts connect."""
    owns: bool = False
    """The endpoint's name resolves to a non-loopback address of this host."""
    gloo: Choice = Choice()
    nccl: Choice = Choice()
    versions: dict[str, str] = {}
    files: dict[str, str] = {}
    """Path as imported -> hash, for the program, local modules and configurations."""
    variables: dict[str, str] = {}
    place: str = ""
    """Working directory."""
    container: str = ""
    """Sign that this is a container; empty proves nothing."""
    devices: tuple[str, ...] | None = None
    """Device models; None if not inspected."""
    boards: tuple[Board, ...] = ()
    """The same devices as described by their driver."""
    driver: str = ""
    fabric: tuple[Port, ...] = ()
    topology: str = ""
    """Connections between devices, from `nvidia-smi topo -m`, without network cards."""
    has_devices: bool = False
    """A device driver is installed, even if it did not answer."""
    figures: dict[str, float] = {}
    """Name -> value of memory in bytes, cores and limits."""
    problems: tuple[HostProblem, ...] = ()
    unread: dict[str, str] = {}
    """Area or check -> reason why it was not inspected."""
    ports: tuple[tuple[str, int], ...] = ()
    """(address, port) pairs where this host answers the other hosts' probes."""
    seconds: float = 0.0


class Try(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, array_like=True):
    """One probe of a peer's address."""

    node: int
    """Index of the peer in the roster."""
    address: str
    result: str = "ok"
    """`ok`, or `refused`, `timeout`, `unreachable`, `other` (a different machine answers), `error`."""
    milliseconds: float = 0.0
    """Round trip of 64 bytes; the minimum of five."""
    large: bool | None = None
    """True if 32 KiB came back."""
    passes: int = 0
    """Largest segment size in bytes with which large messages pass, if they do not pass otherwise."""
    source: str = ""
    """The caller's own address on its packets."""


class Bulk(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, array_like=True):
    """Bulk transfer to a peer (`--heavy`)."""

    node: int
    """Index of the peer in the roster."""
    rate: float = 0.0
    """Million bytes per second received; 0 if the connection failed."""
    sent: int = 0
    """Segments sent, by the kernel's count (TCP_INFO)."""
    again: int = 0
    """Segments that were lost and sent again."""


class Meeting(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Result of this host's attempt to reach the endpoint."""

    result: str = ""
    """hub, came, unresolved, refused, timeout, unreachable, other, token, version, lost, taken, none (no endpoint)."""
    words: str = ""
    tries: int = 0
    seconds: float = 0.0
    holder: str = ""


class Arrival(msgspec.Struct, kw_only=True):
    """Host that reached the endpoint, as the collector knows it."""

    look: HostReport
    node: int | None
    address: str
    """Address from which the host connected."""
    offset: float = 0.0
    """Its clock minus the collector's, in seconds."""
    tries: list[Try] = []
    back: ReturnRoutes = ReturnRoutes()
    bulk: list[Bulk] = []
    lines: dict[str, list[str]] = {}
    """File that differs between hosts -> hashes of its lines."""


class Stranger(NamedTuple):
    """Host that connected and was rejected."""

    address: str
    why: str
    """`token`, or `version` for an incompatible protocol."""
    release: str = ""
    """dtdebug release and protocol that the host reports."""
