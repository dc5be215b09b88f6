"""Reads curves from tables: CSV of loggers and exports, the state of a Hugging Face Trainer, metric files of MLflow."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from dtdebug.recorded.curves.curve import Owner
from dtdebug.recorded.curves.names import Name, meaning
from dtdebug.recorded.curves.series import Series, put

_LEAST = 2
_OF_RUN = re.compile(r"(.{1,200}) - (.{1,120}?)(__MIN|__MAX)?\Z")
"""Column of an export of Weights & Biases; source: https://docs.wandb.ai/guides/app/features/panels/line-plot"""
_COUNTERS = (
    "trainer/global_step",
    "global_step",
    "step",
    "_step",
    "iteration",
    "iter",
    "num_updates",
    "update",
    "batch",
)


class History(msgspec.Struct):
    """`trainer_state.json` of a Hugging Face Trainer.

    Source: https://github.com/huggingface/transformers/blob/main/src/transformers/trainer_callback.py
    """

    log_history: list[dict[str, msgspec.Raw]]


def csv_columns(line: str) -> dict[int, tuple[str, Name]] | None:
    """Return what the columns of a CSV file mean, by their places: (run, name); None if it is of no training."""
    if "," not in line or len(line) > 65536:
        return None
    try:
        head = next(csv.reader([line.lstrip("\ufeff")]))
    except (csv.Error, StopIteration):
        return None
    found: dict[int, tuple[str, Name]] = {}
    for place, column in enumerate(head[:4096]):
        run, name = "", column.strip()
        if (of_run := _OF_RUN.match(name)) is not None:
            if of_run[3]:
                continue
            run, name = of_run[1], of_run[2]
        if (means := meaning(name)) is not None:
            found[place] = run, means
    kinds = {means.kind for _, means in found.values()}
    if not kinds & {"step", "epoch"} and not any(name in ("Step", "_step") for name in head):
        return None
    return found if kinds & {"loss", "part", "metric", "lr", "grad_norm"} else None


def read_csv(lines: Iterable[str], series: Series, file: str, rank: int | None = None) -> None:
    """Read a CSV file with a head."""
    rows = csv.reader(lines)
    try:
        head = next(rows)
        columns = csv_columns(_join(head)) or {}
        counters = {place: column.strip().lower() for place, column in enumerate(head)}
        places = {name: place for place, name in reversed(counters.items())}
        by = next((places[name] for name in _COUNTERS if name in places), None)
        if by is None:  # an export names its axis as the run does: `train/global_step`
            by = next((place for place, (_, name) in sorted(columns.items()) if name.kind == "step"), None)
        epochs = places.get("epoch")
        owners: dict[str, Owner] = {}
        for row in rows:
            step = _number(row, by)
            epoch = _number(row, epochs)
            at, unit = (step, "step") if step is not None else (epoch, "epoch")
            if at is None:
                continue
            for place, (run, name) in columns.items():
                if name.kind in ("step", "epoch") or (value := _number(row, place)) is None:
                    continue
                owner = owners.setdefault(run, Owner(file, rank, run))
                before = -1.0 if step is None or epoch is None else epoch
                if (curve := series.curve(owner, name, unit)) is not None:
                    put(curve, value, at, rows.line_num, before)
    except (csv.Error, StopIteration):
        return


def _join(row: list[str]) -> str:
    text = io.StringIO()
    csv.writer(text).writerow(row)
    return text.getvalue()


def _number(row: list[str], place: int | None) -> float | None:
    if place is None or place >= len(row) or not (text := row[place].strip()):
        return None
    try:
        return float(text)
    except ValueError:
        return None


def read_trainer_state(data: bytes, series: Series, file: str) -> bool:
    """Read the state of a Trainer; return False if it is none."""
    # JSON has no NaN, and Python writes it all the same
    plain = re.sub(rb"(?<=[:\s])(NaN|-?Infinity)(?=\s*[,}\]])", rb'"\1"', data)
    try:
        state = msgspec.json.decode(plain, type=History)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    owner = Owner(file)
    for row in state.log_history:
        numbers = {key: number for key, raw in row.items() if (number := _json_number(raw)) is not None}
        step = numbers.get("step", numbers.get("epoch"))
        if step is None or "train_runtime" in numbers:  # the summary at the end
            continue
        for key, value in numbers.items():
            if (name := meaning(key)) is None or name.kind in ("step", "epoch"):
                continue
            if (curve := series.curve(owner, name, "step" if "step" in numbers else "epoch")) is not None:
                put(curve, value, step)
    return True


def _json_number(raw: msgspec.Raw) -> float | None:
    try:
        return float(bytes(raw).strip(b'"'))
    except ValueError:
        return None


def read_mlflow(lines: Iterable[bytes], series: Series, file: str) -> None:
    """Read a metric file of MLflow: its name is that of the metric, its folder that of the run."""
    path = Path(file)
    parts = path.parts
    at = max((i for i, part in enumerate(parts) if part == "metrics"), default=len(parts) - 1)
    name = meaning("/".join(parts[at + 1 :]) or path.name)
    if name is None or name.kind in ("step", "epoch"):
        return
    curve = series.curve(Owner("/".join(parts[: at + 1]) if at < len(parts) - 1 else file), name)
    if curve is None:
        return
    for number, line in enumerate(lines, 1):
        words = line.split()
        if len(words) < _LEAST + 1:
            continue
        try:
            put(curve, float(words[1]), float(words[2]), number)
        except ValueError:
            continue
