"""Types of the hosts' reports: what was started there, how it ended, and what it waits for.

A part that could not be read keeps its default; nothing is guessed.
"""

from __future__ import annotations

import msgspec


class Plan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Job as its launch command describes it."""

    least: int = 1
    """Minimum number of hosts with which the job can begin."""
    most: int = 1
    node: int | None = None
    """Number of this host among the hosts, if the command gives it."""
    per_node: int | None = None
    """Ranks per host."""
    address: str = ""
    """Host of the rendezvous of all launchers."""
    port: int | None = None
    backend: str = ""
    """`static` or `c10d` (or another name) of torchrun's rendezvous; empty if no launcher was recognised."""
    run_id: str = ""

    @property
    def endpoint(self) -> str:
        """Rendezvous of the launchers, `HOST:PORT`."""
        return f"{self.address}:{self.port}" if self.address and self.port else self.address


class WaitingLauncher(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Launcher that has started no rank: what the operating system shows of its connection to the other launchers."""

    pid: int
    seconds: float = 0.0
    """Seconds since its start."""
    place: str = ""
    """Function of torch's rendezvous that its main thread is in; empty if its stack was not read."""
    local: bool = False
    """True if the address of the rendezvous is one of this host."""
    listens: bool = False
    """True if the launcher itself listens at the port."""
    holder: str = ""
    """Another process that listens there instead."""
    connected: bool = False
    peers: tuple[str, ...] = ()
    """Addresses of other hosts with a connection to the port here."""
    trouble: str = ""
    """Reason why it does not reach the address: `h0 does not resolve`, `h0:29500 refuses connections`."""
    unread: str = ""
    """Parts that could not be examined, with the reason."""


class Host(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One `dtdebug run` of a job."""

    name: str
    place: str = ""
    """Base name of its files: two launchers of one job may run on one host."""
    pid: int | None = None
    command: tuple[str, ...] = ()
    """Command without secrets."""
    started: float = 0.0
    """Seconds since the epoch, by the clock of that host."""
    finished: float | None = None
    status: int | None = None
    """Exit status of the command, or minus the signal."""
    plan: Plan = Plan()
    job: dict[str, str] = {}
    """Variables with which a cluster names the job."""
    addresses: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    meeting: WaitingLauncher | None = None
    """Set only while the launcher has started no rank."""
    reports: bool = False
    """True if it reports the results for all hosts."""
    stopped: bool = False
    """True if it is ending its job, which hangs; other hosts' jobs may end as a result before they know the results."""
    silent: float = 0.0
    """Seconds since its last write, by the clock of the file system; 0 in its own file."""

    @property
    def label(self) -> str:
        """Its name, with the number of the node if the command gives it."""
        return self.name if self.plan.node is None else f"{self.name} (node {self.plan.node})"
