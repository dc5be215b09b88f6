"""Whose code a frame of a stack is: the user's own, or a library's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from dtdebug_taxonomy.ranks import Frame

_LIBRARY = re.compile(
    r"[/\\](?:site|dist)-packages[/\\]"
    r"|[/\\]lib(?:64)?[/\\]python\d"
    r"|(?i:[/\\]python[\d.]*[/\\]lib[/\\])"
    r"|^<frozen "
    r"|[/\\]torch[/\\](?:_\w+|autograd|cuda|distributed|multiprocessing|nn|optim|utils)[/\\.]"  # a source tree
    r"|[/\\]dtdebug[/\\](?:ranks|live|flight)[/\\]"
)


_FRAMEWORK = re.compile(
    r"[/\\](?:torch\w{0,20}|tensorflow|keras|horovod|deepspeed|megatron|colossalai|(?:pytorch_)?lightning|accelerate"
    r"|transformers|datasets|ray|jax|mpi4py)[/\\]"
)


@lru_cache(maxsize=8192)
def is_framework(file: str) -> bool:
    """Packages that train or load data: their errors are described in messages."""
    return _FRAMEWORK.search(file) is not None


@lru_cache(maxsize=8192)
def is_library(file: str) -> bool:
    """Installed packages, the standard library and PyTorch wherever it lies; a notebook's cell is the user's."""
    return _LIBRARY.search(file) is not None


def own_frame(stack: Sequence[Frame]) -> Frame | None:
    """The innermost frame in the user's own code."""
    return next((frame for frame in reversed(stack) if not is_library(frame.file)), None)


def own_frames(stack: Sequence[Frame]) -> tuple[Frame, ...]:
    """The part of a stack in the user's own code, outermost first."""
    return tuple(frame for frame in stack if not is_library(frame.file))


def short(file: str) -> str:
    """The end of a path that tells files apart: `torch/nn/modules/module.py`, `train.py`."""
    for mark in ("site-packages", "dist-packages"):
        if mark in file:
            return file.split(mark, 1)[1].lstrip("/\\")
    parts = re.split(r"[/\\]", file)
    return "/".join(parts[-2:]) if is_library(file) else parts[-1]
