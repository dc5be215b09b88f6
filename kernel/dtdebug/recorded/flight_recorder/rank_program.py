"""One dump reduced to what matching needs: operations, groups, order and progress.

A dump of 2000 entries becomes a few arrays of small numbers, so that thousands of ranks fit into memory and equal
programs compare as bytes.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

from dtdebug_taxonomy.model.ranks import Frame

Sizes = tuple[tuple[int, ...], ...]
BATCH = "coalesced"
"""NCCL's name for a batch of sends and receives."""
P2P = ("send", "recv", "isend", "irecv", BATCH)
PAIRED = (*P2P, "batch_isend_irecv")
"""Calls that name the other side: recorded names, then names on stacks."""
_UNEVEN = (*P2P, "alltoall", "all_to_all", "allgatherv", "all_gather_v", "reduce_scatter_v")
"""Operations whose sizes may differ between the ranks that call them."""
_ROOTED = ("gather", "scatter")
"""Operations in which only the root has the sizes of one side."""
_NONE = ((), ((),), ((0,),))
"""Sizes of a missing tensor: NCCL passes an undefined one, which has the sizes [0]."""


class Symbol(NamedTuple):
    """Identity of a call; the ranks of a group must agree on it."""

    op: str
    inputs: Sizes
    outputs: Sizes
    dtypes: tuple[str, ...]

    def agreed_part(self) -> Symbol:
        """Return the part on which the ranks of a group must agree."""
        if any(word in self.op for word in _UNEVEN):
            return Symbol(self.op, (), (), ())
        if self.op == "gather":
            return self._replace(outputs=(), dtypes=self.dtypes[:1])
        if self.op == "scatter":
            return self._replace(inputs=(), dtypes=self.dtypes[1:])
        return self

    def is_root(self) -> bool:
        """True if the call has the sizes that only the root of a gather or scatter has."""
        return self.op in _ROOTED and (self.outputs if self.op == "gather" else self.inputs) not in _NONE


class DumpedGroup(NamedTuple):
    """A group as described by one dump."""

    name: str
    desc: str
    ranks: tuple[int, ...]
    """Global ranks; empty if the dump does not list them, as on gloo."""
    enqueued: int
    """Sequence number of the latest collective that was begun, 0 for none."""
    completed: int
    counted: bool = False
    """True if the dump has counters of this group; else only its entries show its progress."""


class Open(NamedTuple):
    """An operation that has not ended."""

    position: int
    group: str
    symbol: int
    seq: int
    p2p_seq: int
    started: bool
    peer: int | None
    """Other side of a point-to-point operation, as a rank of the group."""
    created: float
    """Seconds since the epoch."""


class Program:
    """The operations of one rank in the order in which it called them."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.groups: dict[str, DumpedGroup] = {}
        self.names: list[str] = []
        """Group names in order of first use; `order` holds indices into it."""
        self.order = array("H")
        self.symbols = array("I")
        self.seqs = array("I")
        self.sites = array("I")
        self.symbol_table: list[Symbol] = []
        self.site_table: list[tuple[Frame, ...]] = []
        """User frames of each call site, innermost last; empty if the dump has no stacks."""
        self.created = array("d")
        """Times of the latest calls, in seconds since the epoch; the last one belongs to the last call."""
        self.open: list[Open] = []
        self.whole = True
        """True if nothing has dropped out of the ring buffer."""
        self.backend = ""
        self.taken: float | None = None
        """Time when the dump was written, in seconds since the epoch."""
        self.begun = 0
        """Number of operations begun on all groups, by the dump's counters if it has any."""
        self.path = ""
        """Path of the dump."""
        self.parted = False
        """True if threads use separate groups: the order of calls of different threads means nothing."""
        self.bad = 0
        """Number of entries that could not be read."""
        self.active_only = False
        """True if entries of ended operations were left out of the dump, the default of Megatron-LM."""
        self.sizes: dict[str, int] = {}
        """Group -> number of its members, if an all_gather or gather shows it."""
        self.ids: dict[str, int] = {}
        """Group -> local number of the group in this process."""

    def site(self, position: int) -> tuple[Frame, ...]:
        """Return the user's frames of a call."""
        return self.site_table[self.sites[position]] if 0 <= position < len(self.sites) else ()

    def symbol(self, position: int) -> Symbol:
        """Return the call at a position."""
        return self.symbol_table[self.symbols[position]]

    def group(self, position: int) -> str:
        """Return the group name of the call at a position."""
        return self.names[self.order[position]]

    def latest_seq(self, group: str) -> int:
        """Return the sequence number of the latest collective on a group, 0 for none."""
        found = self.groups.get(group)
        return found.enqueued if found else 0

    def time(self, position: int) -> float | None:
        """Return the time of a call in seconds since the epoch, if it is one of the latest."""
        index = position - len(self.order) + len(self.created)
        return self.created[index] or None if 0 <= index < len(self.created) else None
