"""Whose code a frame of a stack is: the user's own, or a library's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from msgspec.structs import replace

from dtdebug_taxonomy.claims import Claim
from dtdebug_taxonomy.ranks import CallSite, Frame, RankState

_LIBRARY = re.compile(
    r"[/\\](?:site|dist)-packages[/\\]"
    r"|[/\\]lib(?:64)?[/\\]python\d"
    r"|(?i:[/\\]python[\d.]*[/\\]lib[/\\])"
    r"|^<frozen "
    r"|[/\\]torch[/\\](?:_\w+|autograd|cuda|distributed|multiprocessing|nn|optim|utils)[/\\.]"  # a source tree
    r"|[/\\]kernel[/\\]dtdebug[/\\](?:agent|bootstrap|course|flight|isolate|job|notebook|probe|records|watch)[/\\]"
    r"|[/\\]dtdebug_taxonomy[/\\]"  # what a rank's agent was in when a signal ended the rank
)


_AGENT = re.compile(r"[/\\]dtdebug[/\\]agent[/\\]")
_FRAMEWORK = re.compile(
    r"[/\\](?:torch\w{0,20}|tensorflow|horovod|deepspeed|megatron|colossalai|pytorch_lightning|mpi4py|vllm|sglang"
    r"|nanotron|nemo_rl|nemo_automodel|mindspeed\w{0,10}|llamafactory|chatlearn|bmtrain|torchrec|hivemind|fairscale|orbax|slime[/\\](?:backends|ray|rollout)|verl[/\\](?:workers|models|trainer|utils)"
    r"|(?:(?:site|dist)-packages|src|python)[/\\](?:keras|lightning|accelerate|transformers|datasets|ray|jax))[/\\]"
)
"""Words that programs use for folders of their own count below what packages lie in, installed or as a source tree."""


_MADE = re.compile(r"<(?!ipython|stdin|cell|frozen|dynamic-code)[^>]{1,200}>$")
_SITES = 64


@lru_cache(maxsize=8192)
def is_framework(file: str) -> bool:
    """Packages that train or load data: their errors are described in messages."""
    return _FRAMEWORK.search(file) is not None


@lru_cache(maxsize=8192)
def is_library(file: str) -> bool:
    """Installed packages, the standard library and PyTorch wherever it lies; a notebook's cell is the user's."""
    return _LIBRARY.search(file) is not None


def before_agent(stack: Sequence[Frame]) -> tuple[Frame, ...]:
    """The part of a stack that the rank's agent has not added: where the program called or raised."""
    first = next((n for n, frame in enumerate(stack) if _AGENT.search(frame.file)), len(stack))
    return tuple(stack[:first])


def own_frame(stack: Sequence[Frame]) -> Frame | None:
    """The innermost frame in the user's own code, before code that a library has made of a text there."""
    own = [frame for frame in reversed(stack) if not is_library(frame.file)]
    return next((frame for frame in own if not is_made(frame.file)), own[0] if own else None)


def is_made(file: str) -> bool:
    """Code that was made of a text: by a dataclass, a proxy of multiprocessing, or `python -c`."""
    return _MADE.match(file) is not None


def own_frames(stack: Sequence[Frame]) -> tuple[Frame, ...]:
    """The part of a stack in the user's own code, outermost first."""
    return tuple(frame for frame in stack if not is_library(frame.file))


def shown_frame(stack: Sequence[Frame]) -> Frame | None:
    """Where a stack is said to be: the innermost frame in the user's own code, else the innermost of all."""
    return own_frame(stack) or (stack[-1] if stack else None)


def call_site(rank: int | None, stack: Sequence[Frame]) -> CallSite | None:
    """Where a rank is; None where its stack is not known."""
    frame = shown_frame(stack)
    return None if frame is None or rank is None else CallSite(rank, frame.file, frame.line, frame.function)


def call_sites(states: Iterable[RankState]) -> tuple[CallSite, ...]:
    """Where ranks are, of at most 64 of them."""
    return tuple(site for s in states if (site := call_site(s.rank, s.stack)) is not None)[:_SITES]


def placed(claim: Claim, frame: Frame | None) -> Claim:
    """The claim with the place of a frame."""
    return claim if frame is None else replace(claim, file=frame.file, line=frame.line, function=frame.function)


def short(file: str) -> str:
    """The end of a path that tells files apart: `torch/nn/modules/module.py`, `train.py`."""
    for mark in ("site-packages", "dist-packages"):
        if mark in file:
            return file.split(mark, 1)[1].lstrip("/\\")
    parts = re.split(r"[/\\]", file)
    return "/".join(parts[-2:]) if is_library(file) else parts[-1]
