"""What can be changed of a job from outside, without its files: one file a factor, read once.

A factor says what it changes, when it applies, and what the job's answer to the change rules in or out.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Literal

import msgspec

_HOME = Path(__file__).parent


class Factor(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that can be changed."""

    id: str = ""
    """The name of its file."""
    title: str
    """What is changed, in few words: `loader workers`."""
    to: str
    """What it is changed to, as a table shows it: `0`, `off`."""
    stage: Literal["communication", "part", "process", "workload"]
    """communication: values of other ranks; part: something that the program uses and can do without, tried together
    with the others; process: one rank without what a launcher sets, tried when one rank fails too and no part is it;
    workload: what it works on, tried last."""
    knob: str = ""
    """The change that is made inside of the ranks."""
    environment: dict[str, str] = {}
    """Variables that are set."""
    arguments: tuple[str, ...] = ()
    """Names of the program's own options, as argparse stores them; the first that the program has is set."""
    value: str = ""
    """What an argument is set to: a number, or `half`."""
    uses: tuple[str, ...]
    """What the first run must have shown of the program, all of it: else the factor does not apply."""
    within: str = ""
    """The part of which this is only a part: tried where that part was seen to be responsible, and not before."""
    unless: tuple[str, ...] = ()
    """What it must not have shown."""
    said: str = ""
    """How users say that it works with this change, in the words of `contrasts.contrast`: a pattern, of lower case."""
    order: int
    """Lower is tried first: what is likelier and says more."""
    same: str
    """What is known if the job still fails in the same way."""
    gone: str
    """What is responsible if it then does not."""
    fix: str = ""
    """What to do where it is responsible, as an order; empty where that does not follow."""
    slow: str = ""
    """The same where the job is only slow."""
    pattern: str = "fix behavior logic"
    """Published name of the kind of fix."""
    calls: tuple[str, ...] = ()
    """What the program calls with that option, by its own name: the change as a patch of the user's file."""
    alters: bool = False
    """A healthy program, too, computes other numbers or makes other calls with it."""
    set: dict[str, str] = {}
    """Keyword arguments of that call, as Python."""
    because: str
    """Why it may matter, and where that is documented."""


@lru_cache(maxsize=1)
def load() -> tuple[Factor, ...]:
    """All factors, those to try first before the others."""
    found = []
    for path in sorted(_HOME.glob("*.toml")):
        factor = msgspec.toml.decode(path.read_bytes(), type=Factor)
        found.append(msgspec.structs.replace(factor, id=path.stem))
    return tuple(sorted(found, key=lambda f: (f.order, f.id)))
