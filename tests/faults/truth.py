"""What is true of an injected fault: who, what, where; drawn from a seed."""

from __future__ import annotations

import json
import os
import random
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from training.plan import Plan, draw

FOLDER = Path(__file__).resolve().parent
FAULTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "skip": (
        "skipped",
        ("gradients", "forward", "gather", "loss", "clip", "buffers", "metrics", "checkpoint", "experts"),
    ),
    "extra": ("extra", ("gradients", "forward", "loss", "clip", "buffers", "checkpoint", "experts")),
    "replace": ("replaced", ("forward", "loss", "clip", "buffers", "experts")),
    "swap": ("replaced", ("gradients", "experts")),
    "wrong_size": ("wrong_size", ("gradients", "forward", "buffers", "metrics", "experts")),
    "wrong_dtype": ("wrong_dtype", ("gradients", "forward", "clip", "buffers")),
    "wrong_root": ("wrong_root", ("buffers", "metrics")),
    "exit": ("dead", ("data", "forward", "gradients", "metrics")),
    "return": ("dead", ("loop",)),
    "raise": ("dead", ("data", "forward", "gradients", "metrics")),
    "kill": ("dead", ("data", "forward", "gradients", "metrics")),
    "busy": ("not_arrived", ("data", "forward", "gradients", "metrics")),
    "sleep": ("not_arrived", ("data", "forward", "gradients", "metrics", "checkpoint")),
    "lock": ("not_arrived", ("data", "forward", "gradients", "metrics")),
    "loader": ("not_arrived", ("loader",)),
    "cycle": ("not_arrived", ("exchange",)),
    "gil": ("gil_held", ("data", "forward", "gradients", "metrics")),
    "uneven": ("replaced", ("barrier", "exit")),
    "straggler": ("none", ("data", "forward", "gradients")),
    "running": ("none", ("",)),
    "none": ("none", ("",)),
}
"""Fault -> (kind of the verdict, spots where it can strike)."""
ALWAYS = {"data", "forward", "loop", "loader", "barrier", "exit", ""}
"""Spots that every rank passes when the fault needs no collective."""
CALLED = {"skip", "extra", "replace", "swap", "wrong_size", "wrong_dtype", "wrong_root", "cycle"}
"""Faults in how the rank communicates; the others are in its own code."""


class Seen(NamedTuple):
    """What dumps alone show of a job, and what they don't."""

    dumps: set[int]
    """Ranks that left one."""
    exchanging: set[int]
    """Ranks that stand in a send or a receive, by their own account."""


@dataclass(frozen=True)
class Injection:
    """One job and its fault."""

    fault: str
    layout: str
    world: int
    seed: int
    spot: str
    rank: int
    step: int
    plan: Plan

    @property
    def name(self) -> str:
        """Name of its folder."""
        return f"{self.fault}-{self.layout}-{self.world}-{self.seed}"

    @property
    def kind(self) -> str:
        """What the verdict should call it."""
        if self.fault == "uneven" and self.spot == "exit":
            return "dead"
        return FAULTS[self.fault][0]

    @property
    def culprits(self) -> list[int]:
        """The ranks that the others wait for."""
        if self.kind == "none":
            return []
        if self.fault == "cycle":
            half = self.world // 2
            return sorted([self.rank, self.rank + half if self.layout == "tp+dp+pp" else self.rank + 1])
        return [self.rank]

    def kinds(self, seen: Seen | None = None) -> list[str]:
        """What a verdict may call it; from dumps alone also what they can't tell from it.

        Without the culprit's dump (a rank that gloo aborts, or that is holding the GIL, leaves none) nothing
        but its absence is to be seen; no dump has the root of a broadcast or a reduction, or a send or receive.
        """
        accepted = [self.kind]
        if self.fault == "uneven" and self.spot == "barrier":
            accepted += ["skipped"]
        if seen is None or self.kind == "none":
            return accepted
        if not set(self.culprits) <= seen.dumps or self.kind == "dead":
            accepted += ["not_arrived", "dead"]
        if seen.exchanging & set(self.culprits):
            accepted += ["not_arrived"]
        if self.fault == "wrong_root" and self.where_key() != "gather metrics":
            accepted += ["fabric"]
        return list(dict.fromkeys(accepted))

    @property
    def own(self) -> bool:
        """Whether it strikes in the rank's own code, of which the flight recorder knows nothing."""
        return self.fault not in CALLED

    @property
    def endless(self) -> bool:
        """Whether the job is to go on until it is ended."""
        return self.fault in ("running", "straggler")

    def describe(self) -> dict[str, object]:
        """All of it, for a file beside the records."""
        where = self.where()
        return {
            "kind": self.kind,
            "kinds": self.kinds(),
            "culprits": self.culprits,
            "where": {"file": where[0], "line": where[1]} if where else None,
            "stragglers": [self.rank] if self.fault == "straggler" else [],
        } | {name: getattr(self, name) for name in ("fault", "spot", "rank", "world", "layout", "seed")}

    def where_key(self) -> str:
        """The marker of the line in which the fault shows."""
        if self.fault in ("none", "running", "straggler"):
            return ""
        if self.fault == "cycle":
            return "cycle exchange" if self.layout == "tp+dp+pp" else "cycle borders"
        if self.fault == "uneven":
            return f"uneven {self.spot}"
        if self.own:
            return self.fault
        if self.spot == "buffers" and self.fault in ("skip", "wrong_root", "wrong_size", "wrong_dtype"):
            return "buffers"
        if self.spot == "gradients" and self.fault != "swap":
            return f"{self.plan.gradients} gradients"
        if self.spot == "metrics":
            return f"{self.plan.metrics} metrics"
        return f"{self.fault} {self.spot}"

    def where(self) -> tuple[str, int] | None:
        """File and line of that marker."""
        key = self.where_key()
        return markers()[key] if key else None


@cache
def markers() -> dict[str, tuple[str, int]]:
    """Every `# fault:` comment of the job -> its file and line."""
    found: dict[str, tuple[str, int]] = {}
    for path in sorted(FOLDER.rglob("*.py")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if path.parent.name == "training" and (mark := re.search(r"# fault: (.+)", line)):
                found |= dict.fromkeys(mark[1].split(", "), (str(path), number))
    return found


def inject(fault: str, layout: str, world: int, seed: int) -> Injection | None:
    """Draws who fails where, and when; None where this fault can't strike in this job."""
    chance = random.Random(f"fault {fault} {layout} {world} {seed}")
    plan = draw(seed, layout, world, exchange=fault == "cycle")
    ranks = list(range(world))
    chance.shuffle(ranks)
    for rank in ranks:
        spots = [spot for spot in FAULTS[fault][1] if _possible(plan, fault, spot, rank)]
        if spots:
            return Injection(fault, layout, world, seed, chance.choice(spots), rank, chance.randint(1, 6), plan)
    return None


def program(injection: Injection, witness: Path) -> list[str]:
    """The script and its arguments."""
    return [
        str(FOLDER / "job.py"), "--fault", injection.fault, "--spot", injection.spot, "--rank", str(injection.rank),
        "--step", str(injection.step), "--steps", str(100_000 if injection.endless else 30),
        "--layout", injection.layout, "--seed", str(injection.seed), "--witness", str(witness),
        "--patience", "30" if injection.kind == "none" else "1",
    ]  # fmt: skip


def environment() -> dict[str, str]:
    """One thread for each rank, and no warnings."""
    return os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", "TORCH_CPP_LOG_LEVEL": "ERROR"}


def stood(witness: Path) -> dict[int, tuple[str, int]]:
    """File and line where each rank stood by its own account."""
    found = {}
    for path in (witness / "stacks").glob("*.json"):
        if places := json.loads(path.read_text()):
            found[int(path.stem)] = (str(places[-1][0]), int(places[-1][1]))
    return found


def seen(folder: Path) -> Seen:
    """What there is in a folder of dumps."""
    dumps = {int(path.name.removeprefix("rank_")) for path in folder.glob("rank_*")}
    return Seen(dumps, {rank for rank, (file, _) in stood(folder).items() if file.endswith("pipeline.py")})


def _possible(plan: Plan, fault: str, spot: str, rank: int) -> bool:
    if fault == "cycle":
        return plan.stage(rank) == 0 and (plan.layout == "tp+dp+pp" or rank % 2 == 0)
    if spot == "checkpoint" and fault == "sleep":
        return rank == 0
    if fault not in CALLED and spot in ALWAYS:
        return True
    if spot not in plan.spots(rank):
        return False
    if spot == "metrics" and fault in ("wrong_size", "wrong_root"):
        rooted = plan.metrics in ("gather", "reduce")
        return rooted if fault == "wrong_root" else plan.metrics != "objects"
    return not (fault == "swap" and spot == "gradients" and "dp" not in plan.groups())
