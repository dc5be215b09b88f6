"""Implements `dtdebug rehearse --memory`: will it fit?"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import msgspec

from dtdebug.errors import FOUND, NOTHING

V = 1
"""Version of the JSON."""


def add_options(rehearse: argparse.ArgumentParser) -> None:
    """Add the options of `dtdebug rehearse`."""
    group = rehearse.add_argument_group("will it fit?")
    group.add_argument(
        "--memory",
        action="store_true",
        help="forecast the peak memory of each rank instead: two steps on tensors that have sizes and no data",
    )
    group.add_argument(
        "--gpu", default="", metavar="80GiB", help="size or name of the GPU; say whether it fits, and the largest batch"
    )


def forecast(options: argparse.Namespace, command: Sequence[str], ranks: Sequence[int]) -> int:
    """Run the ranks, and print the answer."""
    from dtdebug.experiments.memory import answer, forecast
    from dtdebug.presentation.terminal import code_at, format_answer

    gpu = forecast.gpu_bytes(options.gpu) if options.gpu else 0
    found = forecast.forecast(
        command, options.world, ranks=ranks, per_host=options.per_host, timeout=options.timeout, gpu=gpu
    )
    worst = found.peaks[found.worst].peak
    fits = worst <= forecast.usable(gpu) if gpu else None
    short = answer.answer(found, code_at)
    if options.format == "json":
        told = {"v": V, "answer": msgspec.to_builtins(short), "fits": fits, **msgspec.to_builtins(found)}
        print(msgspec.json.encode(told).decode())
    else:
        print(format_answer(short, sys.stdout, more="more: --format json"))
    return FOUND if fits is False or forecast.growth(found.peaks[found.worst]) else NOTHING
