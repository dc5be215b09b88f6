"""Classifies frames of a stack: the user's own code, or a library's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from msgspec.structs import replace

from dtdebug_taxonomy.model.claims import Claim
from dtdebug_taxonomy.model.ranks import CallSite, Frame, RankState

_LIBRARY = re.compile(
    r"[/\\](?:site|dist)-packages[/\\]"
    r"|[/\\]lib(?:64)?[/\\]python\d"
    r"|(?i:[/\\]python[\d.]*[/\\]lib[/\\])"
    r"|^<frozen "
    r"|[/\\]torch[/\\](?:_\w+|autograd|cuda|distributed|multiprocessing|nn|optim|utils)[/\\.]"  # a source tree
    r"|[/\\]kernel[/\\]dtdebug[/\\](?:bootstrap|experiments|live|notebook|recorded|storage)[/\\]"
    r"|[/\\]dtdebug_taxonomy[/\\]"  # in a rank's agent when a signal ended the rank
)


_AGENT = re.compile(r"[/\\]dtdebug[/\\]live[/\\]agent[/\\]")
_FRAMEWORK = re.compile(
    r"[/\\](?:torch\w{0,20}|tensorflow|horovod|deepspeed|megatron|colossalai|pytorch_lightning|mpi4py|vllm|sglang"
    r"|nanotron|nemo_rl|nemo_automodel|mindspeed\w{0,10}|llamafactory|chatlearn|bmtrain|torchrec|hivemind|fairscale|orbax|slime[/\\](?:backends|ray|rollout)|verl[/\\](?:workers|models|trainer|utils)"
    r"|(?:(?:site|dist)-packages|src|python)[/\\](?:keras|lightning|accelerate|transformers|datasets|ray|jax))[/\\]"
)
"""Names that programs also use for their own folders count only below package folders, installed or in a checkout."""


_MADE = re.compile(r"<(?!ipython|stdin|cell|frozen|dynamic-code)[^>]{1,200}>$")
_SITES = 64


@lru_cache(maxsize=8192)
def is_framework(file: str) -> bool:
    """True for packages that train or load data: `messages` describe their errors."""
    return _FRAMEWORK.search(file) is not None


@lru_cache(maxsize=8192)
def is_library(file: str) -> bool:
    """True for installed packages, the standard library, and PyTorch anywhere; a notebook's cell is the user's."""
    return _LIBRARY.search(file) is not None


def before_agent(stack: Sequence[Frame]) -> tuple[Frame, ...]:
    """Return the stack without the frames of the rank's agent: it ends where the program called or raised."""
    first = next((n for n, frame in enumerate(stack) if _AGENT.search(frame.file)), len(stack))
    return tuple(stack[:first])


def spell_place(file: str, line: int) -> str:
    """Return `train.py:16`, or `cell In[4], line 2` in a notebook."""
    if file.startswith("cell "):
        return f"{file}, line {line}"
    return f"{short(file)}:{line}" if line else short(file)


def own_frame(stack: Sequence[Frame]) -> Frame | None:
    """Return the innermost frame in the user's own code; code that a library generated comes last."""
    own = [frame for frame in reversed(stack) if not is_library(frame.file)]
    return next((frame for frame in own if not is_made(frame.file)), own[0] if own else None)


def is_made(file: str) -> bool:
    """True for code generated from a string: by a dataclass, a proxy of multiprocessing, or `python -c`."""
    return _MADE.match(file) is not None


def own_frames(stack: Sequence[Frame]) -> tuple[Frame, ...]:
    """Return the frames in the user's own code, outermost first."""
    return tuple(frame for frame in stack if not is_library(frame.file))


def shown_frame(stack: Sequence[Frame]) -> Frame | None:
    """Return the frame that represents a stack: the innermost in the user's own code, else the innermost of all."""
    return own_frame(stack) or (stack[-1] if stack else None)


def call_site(rank: int | None, stack: Sequence[Frame]) -> CallSite | None:
    """Return the call site of a rank; None if its stack is unknown."""
    frame = shown_frame(stack)
    return None if frame is None or rank is None else CallSite(rank, frame.file, frame.line, frame.function)


def call_sites(states: Iterable[RankState]) -> tuple[CallSite, ...]:
    """Return the call sites of ranks, at most 64."""
    return tuple(site for s in states if (site := call_site(s.rank, s.stack)) is not None)[:_SITES]


def place_claim(claim: Claim, frame: Frame | None) -> Claim:
    """Return the claim with the place of a frame, if there is one."""
    return claim if frame is None else replace(claim, file=frame.file, line=frame.line, function=frame.function)


def short(file: str) -> str:
    """Return the end of a path that identifies the file: `torch/nn/modules/module.py`, `train.py`."""
    for mark in ("site-packages", "dist-packages"):
        if mark in file:
            return file.split(mark, 1)[1].lstrip("/\\")
    parts = re.split(r"[/\\]", file)
    return "/".join(parts[-2:]) if is_library(file) else parts[-1]
