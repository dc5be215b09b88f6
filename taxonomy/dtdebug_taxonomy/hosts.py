"""The types of what each host of a job says of itself: what was started there, how it ended, and whom it waits for.

A part that could not be read stays at its default; nothing here is ever guessed.
"""

from __future__ import annotations

import msgspec


class Plan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a launch command says of its job."""

    least: int = 1
    """Hosts with which the job can begin."""
    most: int = 1
    node: int | None = None
    """Which of the hosts this one is, where the command says so."""
    per_node: int | None = None
    """Ranks of a host."""
    address: str = ""
    """Host where all launchers meet."""
    port: int | None = None
    backend: str = ""
    """`static` or `c10d` (or another name) of torchrun's rendezvous; empty where no launcher was recognised."""
    run_id: str = ""

    @property
    def endpoint(self) -> str:
        """Where the launchers meet, `HOST:PORT`."""
        return f"{self.address}:{self.port}" if self.address and self.port else self.address


class WaitingLauncher(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A launcher that has started no rank: what the operating system shows of its way to the other launchers."""

    pid: int
    seconds: float = 0.0
    """How long it has run."""
    place: str = ""
    """Function of torch's rendezvous in which its main thread is; empty where its stack was not read."""
    local: bool = False
    """The address where all meet is one of this host."""
    listens: bool = False
    """The launcher itself listens at the port."""
    holder: str = ""
    """Another process that listens there in its place."""
    connected: bool = False
    peers: tuple[str, ...] = ()
    """Addresses of other hosts from which somebody is connected to the port here."""
    trouble: str = ""
    """Why it does not reach the address: `h0 does not resolve`, `h0:29500 refuses connections`."""
    unread: str = ""
    """What could not be looked at, with the reason."""


class Host(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One `dtdebug run` of a job."""

    name: str
    place: str = ""
    """What its files are called: two launchers of one job may run on one host."""
    pid: int | None = None
    command: tuple[str, ...] = ()
    """Without secrets."""
    started: float = 0.0
    """Seconds since the epoch, by the clock of that host."""
    finished: float | None = None
    status: int | None = None
    """Exit status of the command, or minus the signal."""
    plan: Plan = Plan()
    job: dict[str, str] = {}
    """Variables by which a cluster names the job."""
    addresses: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    meeting: WaitingLauncher | None = None
    """Only while the launcher has started no rank."""
    reports: bool = False
    """It says for all hosts what is found."""
    stopped: bool = False
    """It ends its job, which hangs; those of other hosts may end of that before they have seen what is found."""
    silent: float = 0.0
    """Seconds since it wrote last, by the clock of the file system; 0 in its own file."""

    @property
    def label(self) -> str:
        """Its name, with the number of the node where the command says it."""
        return self.name if self.plan.node is None else f"{self.name} (node {self.plan.node})"
