"""What a job does: drawn from its seed, the same on all ranks, so that no two seeds run the same program."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

LAYOUTS = ("world", "tp+dp", "tp+dp+pp", "subgroup")
TENSOR = 2
"""Ranks of a tensor-parallel group."""


@dataclass(frozen=True)
class Plan:
    """Which parts a step has, how large, on which ranks."""

    seed: int
    layout: str
    world: int
    layers: int
    hidden: int
    buckets: tuple[int, ...]
    gradients: str
    loss: bool
    clip: bool
    buffers: int
    """Steps between two broadcasts of the buffers; 0 for none."""
    metrics: str
    log_every: int
    save_every: int
    exchange: bool
    micro_batches: int
    members: tuple[int, ...] = field(default=())
    """Ranks of the sub-group."""

    def stage(self, rank: int) -> int:
        """Pipeline stage of a rank."""
        return rank // (self.world // 2) if self.layout == "tp+dp+pp" else 0

    def groups(self) -> dict[str, list[list[int]]]:
        """The sub-groups of the world by their name."""
        ranks = list(range(self.world))
        if self.layout == "tp+dp":
            return {"tp": _chunks(ranks, TENSOR), "dp": [ranks[i::TENSOR] for i in range(TENSOR)]}
        if self.layout == "tp+dp+pp":
            half = self.world // 2
            data = [ranks[stage + i : stage + half : TENSOR] for stage in (0, half) for i in range(TENSOR)]
            return {"tp": _chunks(ranks, TENSOR), "dp": data, "pp": [[i, i + half] for i in range(half)]}
        if self.layout == "subgroup":
            return {"experts": [list(self.members)]}
        return {}

    def spots(self, rank: int) -> set[str]:
        """The parts that this rank takes part in."""
        parallel = self.layout.startswith("tp")
        last = self.layout != "tp+dp+pp" or self.stage(rank) == 1
        return {
            name
            for name, there in {
                "forward": parallel,
                "gather": parallel and self.layers > 1,
                "gradients": True,
                "loss": self.loss and last,
                "clip": self.clip,
                "buffers": self.buffers > 0,
                "metrics": True,
                "checkpoint": True,
                "experts": self.layout == "subgroup" and rank in self.members,
                "exchange": self.exchange,
            }.items()
            if there
        }


def draw(seed: int, layout: str, world: int, *, exchange: bool = False) -> Plan:
    """The plan of a seed; `exchange` makes sure that there is point-to-point traffic."""
    chance = random.Random(f"plan {seed} {layout} {world}")
    members = sorted(chance.sample(range(world), chance.randint(2, world - 1)))
    return Plan(
        seed=seed,
        layout=layout,
        world=world,
        layers=chance.randint(1, 3),
        hidden=chance.choice((16, 48, 64, 96)),
        buckets=tuple(chance.randint(1, 6000) for _ in range(chance.randint(2, 5))),
        gradients=chance.choice(("all_reduce", "all_reduce", "overlap", "sharded")),
        loss=chance.random() < 0.7,
        clip=chance.random() < 0.6,
        buffers=chance.choice((0, 1, 1, 2)),
        metrics=chance.choice(("all_gather", "gather", "reduce", "objects")),
        log_every=chance.randint(1, 3),
        save_every=chance.randint(2, 5),
        exchange=layout == "tp+dp+pp" or exchange or chance.random() < 0.3,
        micro_batches=chance.randint(1, 3),
        members=tuple(members) if layout == "subgroup" else (),
    )


def _chunks(ranks: list[int], size: int) -> list[list[int]]:
    return [ranks[i : i + size] for i in range(0, len(ranks), size)]
