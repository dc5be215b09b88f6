"""Programs of distributed jobs for synthetic flight-recorder dumps: what each rank calls, in which group."""

from __future__ import annotations

import dataclasses
import random
from typing import Any, NamedTuple

UNDEFINED = ((0,),)
"""The sizes of a tensor that is none."""


class Call(NamedTuple):
    """A call of a collective, or a batch of sends and receives, by one rank."""

    op: str
    group: str
    line: int
    inputs: tuple[tuple[int, ...], ...] = ((1024,),)
    outputs: tuple[tuple[int, ...], ...] = ((1024,),)
    dtype: str = "Float"
    peer: int | None = None
    """Root, or the other side of a send or receive, as a global rank."""
    batch: tuple[Call, ...] = ()
    function: str = "train_step"

    @property
    def signature(self) -> tuple[Any, ...]:
        """What must be the same on all ranks; splits of all_to_all may differ."""
        sizes = () if self.op in ("all_to_all", "gather", "scatter") else (self.inputs, self.outputs)
        root = self.peer if self.op in ("gather", "scatter", "broadcast") else None
        return self.op, sizes, self.dtype, root


@dataclasses.dataclass
class Job:
    """The groups of a job and what each rank calls."""

    groups: dict[str, tuple[str, tuple[int, ...]]]
    """uid -> (description, global ranks)."""
    programs: dict[int, list[Call]]

    @property
    def ranks(self) -> range:
        return range(len(self.programs))


def collective(op: str, group: str, line: int, size: int = 1024, members: int = 1, **more: Any) -> Call:
    """A collective over tensors of one dimension."""
    match op:
        case "_all_gather_base":
            return Call(op, group, line, ((size,),), ((size * members,),), **more)
        case "_reduce_scatter_base":
            return Call(op, group, line, ((size * members,),), ((size,),), **more)
        case _:
            return Call(op, group, line, ((size,),), ((size,),), **more)


def gather(group: str, line: int, rank: int, root: int, members: int, size: int = 64) -> Call:
    """A gather: only its root has outputs, the others hand in an undefined tensor."""
    outputs = ((size,),) * members if rank == root else UNDEFINED
    return Call("gather", group, line, ((size,),), outputs, peer=root, function="log_metrics")


def one_group(world: int = 8, steps: int = 10, final: Call | None = None) -> Job:
    """Only the default group: sharded data parallelism with some logging, perhaps a final call."""
    programs = {}
    for rank in range(world):
        calls = [collective("broadcast", "0", 31, 4096, peer=0, function="main")]
        for step in range(steps):
            calls += [
                collective("_all_gather_base", "0", 52, 2048, world),
                collective("_reduce_scatter_base", "0", 58, 2048, world),
                collective("all_reduce", "0", 61, 1),
            ]
            if step % 3 == 2:
                calls.append(gather("0", 73, rank, 0, world))
        programs[rank] = [*calls, final] if final else calls
    return Job({"0": ("default_pg", tuple(range(world)))}, programs)


def three_d(world: int = 16, steps: int = 5, tp: int = 8, layers: int = 3) -> Job:
    """World, tensor-parallel and data-parallel groups."""
    groups = {"0": ("default_pg", tuple(range(world)))}
    for first in range(0, world, tp):
        groups[str(len(groups))] = ("mesh_tp", tuple(range(first, first + tp)))
    for first in range(tp):
        groups[str(len(groups))] = ("mesh_dp", tuple(range(first, world, tp)))
    mine = {(desc, rank): uid for uid, (desc, ranks) in groups.items() for rank in ranks}
    programs = {}
    for rank in range(world):
        in_tp, in_dp = mine["mesh_tp", rank], mine["mesh_dp", rank]
        step = [collective("all_reduce", in_tp, 40 + layer, 8192 + layer) for layer in range(layers)]
        step += [collective("all_reduce", in_dp, 0, 65536), collective("all_reduce", "0", 57, 1)]
        programs[rank] = step * steps
    return Job(groups, programs)


def pipeline(stages: int = 4, replicas: int = 2, steps: int = 3, micro: int = 3, *, batched: bool = False) -> Job:
    """Stages that run different programs and pass tensors on; replicas of a stage share a group."""
    world = stages * replicas
    groups = {"0": ("default_pg", tuple(range(world)))}
    for replica in range(replicas):
        groups[str(len(groups))] = ("PIPELINE_MODEL_PARALLEL_GROUP", tuple(range(replica, world, replicas)))
    for stage in range(stages):
        ranks = tuple(range(stage * replicas, (stage + 1) * replicas))
        groups[str(len(groups))] = ("DATA_PARALLEL_GROUP", ranks)

    def transfer(op: str, rank: int, peer: int, line: int) -> Call:
        shape = ((4, 128, 512),)
        call = Call(op, str(1 + rank % replicas), line, shape, shape, "BFloat16", peer, function="schedule")
        return call._replace(op="coalesced", inputs=(), outputs=(), peer=None, batch=(call,)) if batched else call

    programs = {}
    for rank in range(world):
        stage, calls = rank // replicas, []
        for _ in range(steps):
            for _ in range(micro):
                calls += [transfer("recv", rank, rank - replicas, 81)] if stage else []
                calls += [transfer("send", rank, rank + replicas, 84)] if stage < stages - 1 else []
            for _ in range(micro):
                calls += [transfer("recv", rank, rank + replicas, 88)] if stage < stages - 1 else []
                calls += [transfer("send", rank, rank - replicas, 91)] if stage else []
            calls += [collective("all_reduce", str(1 + replicas + stage), 95, 10_000 + stage)] * (1 + (stage == 0))
            calls.append(collective("all_reduce", "0", 99, 1))
        programs[rank] = calls
    return Job(groups, programs)


def ring(world: int = 8, steps: int = 3, hops: int = 3) -> Job:
    """Ring attention: each rank passes blocks on to the next in batches of a send and a receive."""
    groups = {"0": ("default_pg", tuple(range(world))), "1": ("cp", tuple(range(world)))}
    shape = ((2, 256, 128),)
    programs = {}
    for rank in range(world):
        there = Call("send", "1", 66, shape, shape, "BFloat16", (rank + 1) % world, function="attend")
        here = Call("recv", "1", 66, shape, shape, "BFloat16", (rank - 1) % world, function="attend")
        hop = Call("coalesced", "1", 66, (), (), batch=(there, here), function="attend")
        programs[rank] = [*[hop] * hops, collective("all_reduce", "0", 71, 2048)] * steps
    return Job(groups, programs)


def experts(world: int = 8, steps: int = 5, size: int = 4, seed: int = 0) -> Job:
    """Expert-parallel groups that exchange tokens in uneven splits, and data-parallel ones across them."""
    draw = random.Random(seed)
    groups = {"0": ("default_pg", tuple(range(world)))}
    for first in range(0, world, size):
        groups[str(len(groups))] = ("ep", tuple(range(first, first + size)))
    for first in range(size):
        groups[str(len(groups))] = ("expert_dp", tuple(range(first, world, size)))
    mine = {(desc, rank): uid for uid, (desc, ranks) in groups.items() for rank in ranks}
    programs: dict[int, list[Call]] = {rank: [] for rank in range(world)}
    for _ in range(steps):
        for first in range(0, world, size):
            splits = [[draw.randrange(1, 90) for _ in range(size)] for _ in range(size)]
            for i in range(size):
                sent, got = sum(splits[i]), sum(row[i] for row in splits)
                uid = mine["ep", first + i]
                programs[first + i] += [
                    Call("all_to_all", uid, 46, ((sent, 512),), ((got, 512),), "BFloat16"),
                    Call("all_to_all", uid, 49, ((got, 512),), ((sent, 512),), "BFloat16"),
                ]
        for rank, calls in programs.items():
            calls.append(collective("all_reduce", mine["expert_dp", rank], 0, 4096))
            calls.append(collective("all_reduce", "0", 57, 256))
    return Job(groups, programs)


def sub_groups(steps: int = 8) -> Job:
    """Two halves of eight ranks that do different work, and an evaluation by one rank of each."""
    groups = {
        "0": ("default_pg", tuple(range(8))),
        "1": ("actors", (0, 1, 2, 3)),
        "2": ("learners", (4, 5, 6, 7)),
        "3": ("evaluators", (0, 4)),
    }
    programs = {}
    for rank in range(8):
        calls = []
        for step in range(steps):
            if rank < 4:
                calls.append(collective("all_reduce", "1", 33, 128))
            else:
                calls += [collective("_all_gather_base", "2", 38, 256, 4), collective("all_reduce", "2", 39, 512)]
            if rank in (0, 4):
                calls.append(collective("broadcast", "3", 44, 16, peer=0))
            if step % 2:
                calls.append(collective("all_reduce", "0", 50, 1))
        programs[rank] = calls
    return Job(groups, programs)
