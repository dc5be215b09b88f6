"""One dump reduced to what matching needs: which operations, on which groups, in which order, how far.

A dump of 2000 entries becomes a few arrays of small numbers, so that thousands of ranks fit into memory and equal
programs compare as bytes.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

from dtdebug_taxonomy.ranks import Frame

Sizes = tuple[tuple[int, ...], ...]
BATCH = "coalesced"
"""What NCCL calls a batch of sends and receives."""
P2P = ("send", "recv", "isend", "irecv", BATCH)
PAIRED = (*P2P, "batch_isend_irecv")
"""Calls that name the other side: those of records, and those of stacks."""
_UNEVEN = (*P2P, "alltoall", "all_to_all", "allgatherv", "all_gather_v", "reduce_scatter_v")
"""Operations whose sizes may differ between the ranks that call them."""
_ROOTED = ("gather", "scatter")
"""Operations where one side's sizes are there on the root alone."""
_NONE = ((), ((),), ((0,),))
"""Sizes of no tensor: NCCL hands in an undefined one, which has the sizes [0]."""


class Symbol(NamedTuple):
    """What identifies a call: the ranks of a group must agree on it."""

    op: str
    inputs: Sizes
    outputs: Sizes
    dtypes: tuple[str, ...]

    def compared(self) -> Symbol:
        """The part on which the ranks of a group must agree."""
        if any(word in self.op for word in _UNEVEN):
            return Symbol(self.op, (), (), ())
        if self.op == "gather":
            return self._replace(outputs=(), dtypes=self.dtypes[:1])
        if self.op == "scatter":
            return self._replace(inputs=(), dtypes=self.dtypes[1:])
        return self

    def is_root(self) -> bool:
        """The call has the sizes that only the root of a gather or scatter has."""
        return self.op in _ROOTED and (self.outputs if self.op == "gather" else self.inputs) not in _NONE


class DumpedGroup(NamedTuple):
    """A group as one dump tells of it."""

    name: str
    desc: str
    ranks: tuple[int, ...]
    """Global ranks; empty where the dump does not tell, as on gloo."""
    enqueued: int
    """Sequence number of the latest collective that was begun, 0 for none."""
    completed: int
    counted: bool = False
    """The dump has counters of this group; else its entries alone say how far it came."""


class Open(NamedTuple):
    """An operation that has not ended."""

    position: int
    group: str
    symbol: int
    seq: int
    p2p_seq: int
    started: bool
    peer: int | None
    """The other side of a point-to-point operation, as a rank of the group."""
    created: float
    """Seconds since the epoch."""


class Program:
    """The operations of one rank in the order in which it called them."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.groups: dict[str, DumpedGroup] = {}
        self.names: list[str] = []
        """Group names in order of first use; `order` counts in it."""
        self.order = array("H")
        self.symbols = array("I")
        self.seqs = array("I")
        self.sites = array("I")
        self.symbol_table: list[Symbol] = []
        self.site_table: list[tuple[Frame, ...]] = []
        """The user's frames of a call, innermost last; empty where the dump has no stacks."""
        self.created = array("d")
        """When each of the latest calls was made, in seconds since the epoch; the last is the last call's."""
        self.open: list[Open] = []
        self.whole = True
        """Nothing has dropped out of the ring buffer."""
        self.backend = ""
        self.taken: float | None = None
        """When the dump was written, in seconds since the epoch."""
        self.begun = 0
        """Operations on all groups that its counters say it has begun, where the dump has counters."""
        self.path = ""
        """The file of the dump."""
        self.parted = False
        """Its threads use groups of their own: the order of their calls among each other means nothing."""
        self.bad = 0
        """Entries that could not be read."""
        self.active_only = False
        """Entries of ended operations were left out of the dump, as Megatron-LM has it by default."""
        self.sizes: dict[str, int] = {}
        """Group -> number of its members, where an all_gather or gather shows it."""
        self.ids: dict[str, int] = {}
        """Group -> the number under which this process knows it."""

    def site(self, position: int) -> tuple[Frame, ...]:
        """The user's frames of a call."""
        return self.site_table[self.sites[position]] if 0 <= position < len(self.sites) else ()

    def symbol(self, position: int) -> Symbol:
        """The call at a position."""
        return self.symbol_table[self.symbols[position]]

    def group(self, position: int) -> str:
        """The name of the group of the call at a position."""
        return self.names[self.order[position]]

    def reached(self, group: str) -> int:
        """Sequence number of the latest collective on a group, 0 for none."""
        found = self.groups.get(group)
        return found.enqueued if found else 0

    def time(self, position: int) -> float | None:
        """When a call was made, in seconds since the epoch, if it is one of the latest."""
        index = position - len(self.order) + len(self.created)
        return self.created[index] or None if 0 <= index < len(self.created) else None
