"""Forecasts the peak memory of chosen ranks, and what would change it."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from dtdebug.errors import UsageError
from dtdebug.experiments.collectives import job_program, settings
from dtdebug.experiments.collectives.rehearse import run_ranks
from dtdebug.storage import state_dir

_INSIDE = "dtdebug.experiments.memory.inside.install"
GPUS = {
    "a10": 24, "a100": 80, "a100-40gb": 40, "a100-80gb": 80, "a6000": 48, "b200": 180, "gb200": 186, "h100": 80,
    "h200": 141, "l4": 24, "l40s": 48, "mi250x": 64, "mi300x": 192, "rtx3090": 24, "rtx4090": 24, "rtx5090": 32,
    "t4": 16, "v100": 32, "v100-16gb": 16,
}  # fmt: skip
"""Name -> GiB of memory, which makers call GB; the driver keeps about 1 % of it."""
_SIZE = re.compile(r"(\d{1,5}(?:\.\d{1,2})?)\s?(GiB|GB|G|MiB|MB|M)\Z", re.IGNORECASE)
_CONTEXT = 1 << 30
"""Bytes that CUDA's context, NCCL and the libraries take of a GPU, about."""
_SPARE = 0.05
"""Share of the rest that is left for the allocator's fragments."""
_GROWS = 0.005
"""Share of the peak from which on what a step leaves behind counts: losses that are listed for a report do not."""
_CLASSES = (
    "parameters", "buffers", "gradients", "optimizer", "activations", "gathered", "communication", "temporary",
    "inputs and other",
)  # fmt: skip


class RankPeak(msgspec.Struct, frozen=True, kw_only=True):
    """Peak of one rank, as it wrote it."""

    steps: int
    peak: int
    classes: dict[str, int]
    batch: int = 0
    phase: str = ""
    module: str = ""
    site: tuple[str, int] = ("", 0)
    modules: dict[str, int] = {}
    """Module -> bytes of its activations at the peak."""
    parameters: int = 0
    numbers: int = 0
    sharded: bool = False
    kept: list[tuple[int, str, int]] = []
    """Storages of the second step that the fourth still has: bytes, and the line that made them, the most first."""
    holder: str = ""
    """Variable that holds some of it."""
    layers: dict[str, tuple[int, int]] = {}
    """Name of the longest list of equal layers -> (their number, bytes of their inputs)."""


class Saving(msgspec.Struct, frozen=True, kw_only=True):
    """A change that would lower the peak."""

    what: str
    bytes: int


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """Result."""

    world: int
    peaks: dict[int, RankPeak]
    failed: dict[int, str]
    gpu: int
    """Bytes of the GPU in question; 0 if none was named."""
    savings: tuple[Saving, ...]
    """Changes, the largest effect first, on the rank with the highest peak."""
    largest_batch: int
    """Largest batch of a rank that fits, if memory grows evenly with it; 0 if none does or it is not known."""
    seconds: float

    @property
    def worst(self) -> int:
        """Rank with the highest peak."""
        return max(self.peaks, key=lambda rank: self.peaks[rank].peak)


def growth(peak: RankPeak) -> int:
    """Return the bytes that each step adds; 0 if they are too few to matter."""
    kept = sum(size for size, *_ in peak.kept)
    return kept if kept > peak.peak * _GROWS else 0


def gpu_bytes(text: str) -> int:
    """Return the size of a GPU from a name or a size; raises UsageError."""
    name = text.lower().replace(" ", "").removeprefix("nvidia-").removeprefix("nvidia")
    if name in GPUS:
        return int(GPUS[name] * 0.99 * (1 << 30))
    found = _SIZE.match(text.strip())
    size = float(found[1]) if found else 0.0
    if found is None or not size:
        raise UsageError(f"rehearse --gpu {text}: a size such as 80GiB, or one of {', '.join(GPUS)}")
    unit = found[2].lower()
    each = {"gib": 1 << 30, "g": 1 << 30, "gb": 10**9, "mib": 1 << 20, "m": 1 << 20, "mb": 10**6}[unit]
    return int(size * each)


def usable(gpu: int) -> int:
    """Return the bytes of a GPU that tensors can take."""
    return int(max(0, gpu - _CONTEXT) * (1 - _SPARE))


def forecast(
    command: Sequence[str], world: int, *, ranks: Sequence[int] = (), per_host: int = 8, timeout: float = 300.0,
    gpu: int = 0,
) -> Forecast:  # fmt: skip
    """Run the chosen ranks until their second step, without data.

    Raises:
        UsageError: the program is missing, or no rank came so far.

    """
    words = job_program.of(command)
    script = job_program.script(words)
    if script is not None and not script.is_file():
        raise UsageError(f"rehearse: {script}: no such file")
    chosen = tuple(ranks) or tuple(sorted({0, min(1, world - 1), world // 2, world - 1}))
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="dtdebug-memory-") as place:
        folder = Path(place)
        variables = settings.job_variables(folder, [_INSIDE], {}) | {"CUDA_VISIBLE_DEVICES": ""}
        ends = run_ranks(words, chosen, folder, variables, world=world, per_host=max(1, per_host), timeout=timeout)
        peaks = {rank: peak for rank in chosen if (peak := _read(folder / f"memory-{rank}.json")) is not None}
    failed = {rank: ends.get(rank) or "it made fewer than two optimizer steps" for rank in chosen if rank not in peaks}
    if not peaks:
        raise UsageError(f"rehearse --memory: rank {chosen[0]}: {failed[chosen[0]]}")
    worst = peaks[max(peaks, key=lambda rank: peaks[rank].peak)]
    return Forecast(
        world=world, peaks=peaks, failed=failed, gpu=gpu,
        savings=tuple(sorted(_savings(worst, world), key=lambda s: -s.bytes)),
        largest_batch=_largest_batch(worst, usable(gpu)) if gpu else 0, seconds=round(time.monotonic() - begun, 1),
    )  # fmt: skip


def _read(path: Path) -> RankPeak | None:
    with suppress(OSError, ValueError):
        return msgspec.json.decode(state_dir.read_start(path, 1 << 24), type=RankPeak)
    return None


def of_batch(peak: RankPeak) -> int:
    """Return the bytes that grow with the batch."""
    growing = peak.classes.get("activations", 0) + peak.classes.get("inputs and other", 0)
    return growing + (peak.classes.get("temporary", 0) if peak.phase in ("forward", "backward") else 0)


def _largest_batch(peak: RankPeak, room: int) -> int:
    """Return the largest batch of a rank that fits, if all that comes of samples grows evenly."""
    if not peak.batch:
        return 0
    growing = of_batch(peak)
    return int((room - (peak.peak - growing)) * peak.batch // growing) if growing and room > peak.peak - growing else 0


def _savings(peak: RankPeak, world: int) -> Iterator[Saving]:
    classes = peak.classes
    state = classes.get("optimizer", 0)
    if state:
        yield Saving(what="the optimizer's state on the CPU (offload)", bytes=state)
    if not peak.sharded and world > 1:
        whole = sum(classes.get(name, 0) for name in ("parameters", "gradients", "optimizer"))
        largest = classes.get("parameters", 0) // max(2, max((number for number, _ in peak.layers.values()), default=2))
        yield Saving(
            what=f"sharding over all {world} ranks (fully_shard)", bytes=max(0, whole - whole // world - 2 * largest)
        )
        if state:
            yield Saving(what=f"only the optimizer sharded over {world} ranks (ZeRO-1)", bytes=state - state // world)
    for layers, (number, kept) in peak.layers.items():
        inside: dict[str, int] = {}
        for module, size in peak.modules.items():
            if module.startswith(f"{layers}."):
                key = module[len(layers) + 1 :].partition(".")[0]
                inside[key] = inside.get(key, 0) + size
        spared = sum(inside.values()) - max(inside.values(), default=0) - kept
        if spared > 0:
            yield Saving(what=f"activation checkpointing of the {number} {layers.rpartition('.')[2]}", bytes=spared)


def by_class(peak: RankPeak) -> list[tuple[str, int]]:
    """Return the classes of memory at the peak, in their order."""
    return [(name, peak.classes[name]) for name in _CLASSES if peak.classes.get(name)]
