"""Draws curves of trainings by seed, healthy ones and ones with a planted fault, and counts hits and false alarms.

    python benchmarks/curves.py [--seed 1] [--count 200] [--shapes first|second] [--show]
    python benchmarks/curves.py --speed      # 100 MB of a TensorBoard file; curves' share of the time of `triage`

Each curve is printed in the form of a trainer and read back from the text, so that reading is measured too. `first`
shapes are those that the thresholds were set on, `second` ones were drawn afterwards and nothing was set on them.
"""

from __future__ import annotations

import argparse
import math
import random
import resource
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from dtdebug.recorded.curves.event_files import masked_crc
from dtdebug.recorded.curves.judge import findings
from dtdebug.recorded.curves.read import read_curves, read_printed

Row = dict[str, float]
"""Values of one step."""


def base(r: random.Random, count: int, *, start: float, floor: float, power: float, noise: float) -> list[float]:
    """A power law with noise in proportion."""
    found = []
    for step in range(count):
        level = floor + (start - floor) * (1 + step / 5) ** -power
        found.append(level * (1 + noise * r.gauss(0, 1)))
    return found


def healthy_first(r: random.Random, shape: int, count: int) -> list[Row]:
    """Ten shapes of a healthy training."""
    start, floor = r.uniform(2, 11), r.uniform(0.05, 2)
    noise = r.uniform(0.002, 0.05)
    loss = base(r, count, start=start, floor=floor, power=r.uniform(0.3, 1.2), noise=noise)
    rate = [1e-3 * min(1.0, (i + 1) / 20) * (0.5 + 0.5 * math.cos(math.pi * i / count)) for i in range(count)]
    if shape == 1:  # very noisy
        loss = [value * math.exp(r.gauss(0, 0.35)) for value in loss]
    elif shape == 2:  # heavy tails
        loss = [value * (1 + 0.05 * abs(r.gauss(0, 1) / max(0.2, abs(r.gauss(0, 1))))) for value in loss]
    elif shape == 3:  # cyclic learning rate
        period = count // 4
        rate = [1e-3 * (1 - (i % period) / period) for i in range(count)]
        loss = [value * (1 + 0.25 * (1 - (i % period) / period)) for i, value in enumerate(loss)]
    elif shape == 4:  # slow start, then a fall
        wait = count // 4
        loss = [start * (1 + 0.01 * r.gauss(0, 1)) for _ in range(wait)] + loss[: count - wait]
    elif shape == 5:  # a tuned model: short fall, then flat and noisy
        loss = [1.4 * (1 + 0.1 * r.gauss(0, 1)) * (1 + 0.3 * math.exp(-i / 5)) for i in range(count)]
    elif shape == 6:  # harder data later
        loss = [value * (1.0 if i < count // 2 else 1.12) for i, value in enumerate(loss)]
    elif shape == 7:  # steps of a decayed rate
        loss = [value * (0.6 if i > count // 2 else 1) for i, value in enumerate(loss)]
    elif shape == 8:  # small bumps that heal
        at = r.randrange(count // 2, count - 20)
        loss = [value * (1 + 0.3 * math.exp(-abs(i - at) / 4)) for i, value in enumerate(loss)]
    elif shape == 9:  # near nothing at the end
        loss = [max(1e-4, value - floor) for value in loss]
    return _rows(r, loss, rate)


def healthy_second(r: random.Random, shape: int, count: int) -> list[Row]:
    """Ten other shapes."""
    start, floor = r.uniform(0.7, 12), r.uniform(0.01, 3)
    start = max(start, floor * 1.3)
    loss = base(r, count, start=start, floor=floor, power=r.uniform(0.2, 1.6), noise=r.uniform(0.001, 0.12))
    rate = [3e-4 * min(1.0, (i + 1) / 50) for i in range(count)]
    if shape == 0:  # noise that grows as the loss falls
        loss = [value * (1 + 0.2 * i / count * r.gauss(0, 1)) for i, value in enumerate(loss)]
    elif shape == 1:  # outliers now and then
        loss = [value * (r.uniform(1.2, 2.2) if r.random() < 0.03 else 1) for value in loss]
    elif shape == 2:  # warm-up hump
        loss = [value * (1 + 0.8 * math.exp(-(((i - 10) / 5) ** 2))) for i, value in enumerate(loss)]
    elif shape == 3:  # saw of epochs
        period = max(10, count // 6)
        loss = [value * (1.08 - 0.08 * (i % period) / period) for i, value in enumerate(loss)]
    elif shape == 4:  # autocorrelated noise
        x = 0.0
        for i, value in enumerate(loss):
            x = 0.95 * x + r.gauss(0, 0.02)
            loss[i] = value * math.exp(x)
    elif shape == 5:  # sudden insight
        at = r.randrange(count // 3, 2 * count // 3)
        loss = [(start if i < at else 0.3 * start) * (1 + 0.05 * r.gauss(0, 1)) - 0.1 * i / count for i in range(count)]
    elif shape == 6:  # a weak signal in noise
        loss = [1.0 + 0.4 * r.gauss(0, 1) ** 2 - 0.2 * i / count for i in range(count)]
    elif shape == 7:  # a loss that is negative
        loss = [value - start for value in loss]
    elif shape == 8:  # slightly worse at the end
        loss = [value * (1 + 0.1 * max(0, i - 0.8 * count) / (0.2 * count)) for i, value in enumerate(loss)]
    elif shape == 9:  # two-phase data
        loss = [value * (1.2 if (i // 37) % 2 else 1.0) for i, value in enumerate(loss)]
    return _rows(r, loss, rate)


def _rows(r: random.Random, loss: Sequence[float], rate: Sequence[float]) -> list[Row]:
    pace, wobble = r.uniform(0.05, 8), r.choice((0.01, 0.05, 0.15))
    saves = r.choice((0, 25, 60))
    rows = []
    for i, value in enumerate(loss):
        took = pace * (1 + wobble * abs(r.gauss(0, 1))) * (3 if i < 2 else 1)
        took *= 2.5 if saves and i and i % saves == 0 else 1
        norm = max(0.01, 0.3 * abs(value) + 0.2) * math.exp(r.gauss(0, 0.2))
        rows.append({"loss": value, "lr": rate[i], "norm": norm, "time": took})
    return rows


def _nan(r: random.Random, rows: list[Row], second: bool) -> str:
    at = r.randrange(len(rows) // 3, len(rows) - 5)
    if r.random() < 0.5:
        for back in range(1, 6):
            rows[at - back]["loss"] *= 1 + 8 / back**2
            rows[at - back]["norm"] *= 1 + 60 / back**2
    for row in rows[at:]:
        row["loss"] = row["norm"] = math.nan if not second or r.random() < 0.9 else math.inf
    return f"not_finite {at}"


def _diverge(r: random.Random, rows: list[Row], second: bool) -> str:
    at = r.randrange(len(rows) // 3, int(len(rows) * 0.75))
    top = max(abs(row["loss"]) for row in rows[:10])
    goal = r.uniform(0.9, 3) * top + abs(rows[at]["loss"]) * 0.5
    fast = r.uniform(2, 15)
    for i, row in enumerate(rows[at:]):
        share = 1 - math.exp(-i / fast) if not second else min(1.0, i / (3 * fast))
        row["loss"] += (goal - rows[at]["loss"]) * share if i else 0
    return f"diverges {at}"


def _spike(r: random.Random, rows: list[Row], second: bool) -> str:
    at = r.randrange(len(rows) // 3, len(rows) - 10)
    size = r.uniform(3, 10)
    for i in range(r.choice((1, 2, 4) if not second else (1, 3))):
        rows[at + i]["loss"] = abs(rows[at + i]["loss"]) * size + 1
    return f"spike {at}"


def _stuck(r: random.Random, rows: list[Row], second: bool) -> str:
    level = math.log(r.choice((2, 10, 100, 1000, 32000)))
    noise = r.choice((0.001, 0.01, 0.03)) if not second else r.uniform(0, 0.02)
    for row in rows:
        row["loss"] = level * (1 + noise * r.gauss(0, 1))
    return "does_not_move 0"


def _zero(r: random.Random, rows: list[Row], second: bool) -> str:
    at = 0 if r.random() < 0.5 else r.randrange(len(rows) // 4, len(rows) // 2)
    for row in rows[at:]:
        row["lr"] = 0.0
    return f"zero_rate {at}"


def _slow(r: random.Random, rows: list[Row], second: bool) -> str:
    at = r.randrange(len(rows) // 4, 3 * len(rows) // 4)
    factor = r.uniform(1.5, 3) if not second else r.uniform(1.35, 4)
    for row in rows[at:]:
        row["time"] *= factor
    return f"slower {at}"


def _creep(r: random.Random, rows: list[Row], second: bool) -> str:
    total = r.uniform(0.8, 3)
    for i, row in enumerate(rows):
        row["time"] *= 1 + total * i / len(rows)
    return "drifts|slower -1"


def _repeat(r: random.Random, rows: list[Row], second: bool) -> str:
    at = r.randrange(len(rows) // 3, len(rows) // 2)
    length = min(len(rows) - at, r.randrange(12, 40))
    for i in range(length):
        rows[at + i]["loss"] = rows[i]["loss"]
    return f"repeats {at}"


def _scale(r: random.Random, rows: list[Row], second: bool) -> str:
    at = r.randrange(len(rows) // 3, len(rows) // 2)
    for i, row in enumerate(rows):
        row["scale"] = 65536.0 if i < at else max(1.0, 65536.0 / 2 ** (i - at + 1))
    return "scale_at_floor -1"


def _warm(r: random.Random, rows: list[Row]) -> None:
    """The healthy search for a loss scale: NaN norms and skipped steps at first."""
    fall = r.randrange(4, 18)
    for i, row in enumerate(rows):
        row["scale"] = float(2 ** (32 - min(i, fall)))
        if i < fall:
            row["norm"] = r.choice((math.nan, math.inf))
            row["loss"] = rows[0]["loss"] if r.random() < 0.5 else math.nan


FAULTS: tuple[Callable[[random.Random, list[Row], bool], str], ...] = (
    _nan, _diverge, _spike, _stuck, _zero, _slow, _creep, _repeat, _scale,
)  # fmt: skip


def megatron(i: int, row: Row) -> str:
    """A line of Megatron-LM."""
    scale = f" loss scale: {row['scale']:.1f} |" if "scale" in row else ""
    return (
        f" iteration {i + 1:8d}/  100000 | consumed samples: {i * 64:12d} | elapsed time per iteration (ms): "
        f"{row['time'] * 1000:.1f} | learning rate: {row['lr']:.3E} | lm loss: {row['loss']:.6E} |{scale} grad norm: "
        f"{row['norm']:.3f} | number of skipped iterations:   0 | number of nan iterations:   0 |"
    )


def hugging_face(i: int, row: Row) -> str:
    """A line of the Hugging Face Trainer."""
    scale = f", 'loss_scale': {row['scale']}" if "scale" in row else ""
    return (
        f"{{'loss': {row['loss']:.4f}, 'grad_norm': {row['norm']}, 'learning_rate': {row['lr']!r}{scale}, "
        f"'step_time': {row['time']:.4f}, 'epoch': {(i + 1) / 100:.2f}}}"
    )


def titan(i: int, row: Row) -> str:
    """A line of torchtitan, with its colours."""
    scale = f"  loss_scale: {row['scale']:g}" if "scale" in row else ""
    return (
        f"[rank0]:2025-03-01 10:{i // 60 % 60:02d}:{i % 60:02d},123 - root - INFO - \x1b[31mstep: {i + 1:2d}  \x1b[32m"
        f"loss: {row['loss']:7.4f}  \x1b[33mgrad_norm: {row['norm']:7.4f}  lr: {row['lr']:.4e}  memory: 10.00GiB"
        f"(12.0%)  \x1b[34mtps: {8192 / row['time']:,.0f}{scale}"
    )


def plain(i: int, row: Row) -> str:
    """A line of a plain loop."""
    scale = f" loss_scale={row['scale']:g}" if "scale" in row else ""
    return (
        f"epoch {i // 1000} step {i} loss={row['loss']:.5f} lr={row['lr']:.6g} grad_norm={row['norm']:.3f} "
        f"step_time={row['time']:.4f}{scale}"
    )


def json_lines(i: int, row: Row) -> str:
    """A line of JSON."""
    scale = f', "loss_scale": {row["scale"]}' if "scale" in row else ""
    return (
        f'{{"step": {i}, "train/loss": {row["loss"]:.6f}, "train/lr": {row["lr"]}, "train/grad_norm": '
        f'{row["norm"]:.4f}, "time/step": {row["time"]:.5f}{scale}}}'
    )


def bar(i: int, row: Row) -> str:
    """A state of a bar of tqdm."""
    scale = f", loss_scale={row['scale']:g}" if "scale" in row else ""
    return (
        f"\rTraining:  10%|█         | {i + 1}/100000 [00:{i % 60:02d}<09:59, {row['time']:5.2f}s/it, loss="
        f"{row['loss']:.4f}, lr={row['lr']:.3e}, grad_norm={row['norm']:.2f}{scale}]"
    )


FORMS = (megatron, hugging_face, titan, plain, json_lines, bar)


def draw(seed: int, number: int, *, faulty: bool, second: bool) -> tuple[str, str, int]:
    """Return the text of one training, the kind of its fault, and the place of it."""
    r = random.Random(f"{seed}/{number}/{faulty}/{second}")
    count = r.randrange(120, 900)
    rows = (healthy_second if second else healthy_first)(r, number % 10, count)
    kind, at = "", -1
    if faulty:
        told = FAULTS[number % len(FAULTS)](r, rows, second)
        kind, _, place = told.partition(" ")
        at = int(place)
    elif r.random() < 0.15:
        _warm(r, rows)
    form = r.choice(FORMS)
    return "\n".join(form(i, row) for i, row in enumerate(rows)) + "\n", kind, at


def quality(seed: int, count: int, *, second: bool, show: bool) -> None:
    """Print hits and false alarms."""
    spikes = 0
    alarms, hits, dated, missed = Counter[str](), Counter[str](), 0, Counter[str]()
    places = 0
    for number in range(count):
        text, _, _ = draw(seed, number, faulty=False, second=second)
        found = findings(read_printed(text, "log").curves)
        spikes += any(not row.grave for row in found)
        if any(row.grave for row in found):
            alarms[found[0].kind] += 1
            if show:
                print(f"false alarm, shape {number % 10}, #{number}: {[f.says for f in found]}")
    extra = 0
    for number in range(count):
        text, kind, at = draw(seed, number, faulty=True, second=second)
        found = findings(read_printed(text, "log").curves)
        right = [row for row in found if row.kind in kind.split("|")]
        extra += len(found) > len(right)
        if not right:
            missed[kind] += 1
            if show:
                print(f"missed {kind} at {at}, #{number}: {[f.says for f in found]} {text.splitlines()[3][:150]!r}")
            continue
        hits[kind] += 1
        if at >= 0 and kind in ("slower", "not_finite", "spike"):
            places += 1
            lines = text.replace("\r", "\n").splitlines()
            line = right[0].line - 1
            dated += abs(line - at) <= 3
            if show and abs(line - at) > 3:
                print(f"date of {kind} off: {line} for {at}, #{number}: {lines[at][:80]!r}")
    shapes = "second" if second else "first"
    total = sum(hits.values())
    print(f"seed {seed}, {shapes} shapes: {sum(alarms.values())} of {count} healthy curves raise a false alarm", end="")
    print(f" {dict(alarms)}" if alarms else "", f"({spikes} have a spike, which is no fault)")
    print(f"  {total} of {count} planted faults are found; missed: {dict(missed)}; with another finding: {extra}")
    print(f"  dated to within 3 steps: {dated} of {places}")


def event_file(path: Path, size: int) -> None:
    """Write a TensorBoard file of scalars, three tags a step, and now and then something large."""
    r = random.Random(7)
    tags = (b"train/loss", b"train/grad_norm", b"train/lr")

    def framed(data: bytes) -> bytes:
        head = struct.pack("<Q", len(data))
        return head + struct.pack("<I", masked_crc(head)) + data + b"\0\0\0\0"

    def varint(value: int) -> bytes:
        out = b""
        while value > 127:
            out += bytes([value & 127 | 128])
            value >>= 7
        return out + bytes([value])

    with path.open("wb") as file:
        file.write(framed(b"\x09" + struct.pack("<d", 1e9) + b"\x1a\x0dbrain.Event:2"))
        step = 0
        while file.tell() < size:
            rows = []
            for _ in range(2000):
                step += 1
                for tag in tags:
                    value = b"\x0a" + bytes([len(tag)]) + tag + b"\x15" + struct.pack("<f", 2 + r.random())
                    summary = b"\x0a" + bytes([len(value)]) + value
                    event = b"\x09" + struct.pack("<d", 1e9 + step) + b"\x10" + varint(step)
                    rows.append(framed(event + b"\x2a" + bytes([len(summary)]) + summary))
            file.write(b"".join(rows))


def speed(size: int) -> None:
    """Print processor seconds, which other work on the machine moves less than the clock."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.out.tfevents.1"
        event_file(path, size)
        began = time.process_time()
        curves = read_curves([str(path)]).curves
        read = time.process_time() - began
        findings(curves)
        total = time.process_time() - began
        values = sum(map(len, curves))
        megabytes = path.stat().st_size / 1e6
        print(
            f"event file of {megabytes:.0f} MB, {values:,} values: read {read:.1f} s, judged {total:.1f} s (bar: 5 s)"
        )
        log = Path(folder) / "train.log"
        r = random.Random(3)
        count = 30_000
        with log.open("w") as file:
            for i, row in enumerate(_rows(r, base(r, count, start=10, floor=2, power=0.5, noise=0.02), [1e-4] * count)):
                file.write(f"{megatron(i, row)}\n" + "[rank0] an ordinary line of a log with some words in it\n" * 4)
        began = time.process_time()
        findings(read_curves([str(log)]).curves)
        own = time.process_time() - began
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "dtdebug", "triage", str(log)], check=False, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        whole = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        megabytes = log.stat().st_size / 1e6
        print(
            f"log of {megabytes:.0f} MB, each fifth line a step: curves {own:.2f} s of {whole:.2f} s of triage, "
            f"{own / (whole - own):.0%} more (bar: 20 %)"
        )


def main() -> None:
    """Run what the options ask for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--shapes", choices=("first", "second"), default="first")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--size", type=int, default=100_000_000)
    options = parser.parse_args()
    if options.speed:
        speed(options.size)
    else:
        quality(options.seed, options.count, second=options.shapes == "second", show=options.show)


if __name__ == "__main__":
    main()
