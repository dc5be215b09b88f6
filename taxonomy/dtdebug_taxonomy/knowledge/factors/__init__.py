"""Changes to a job from outside, without touching its files: one file per factor, read once.

A factor states its change, when it applies, and what the job's response rules in or out.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Literal

import msgspec

_HOME = Path(__file__).parent


class Factor(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One possible change."""

    id: str = ""
    """Name of its file, without the suffix."""
    title: str
    """Name of the changed thing: `loader workers`."""
    to: str
    """New value, as a table shows it: `0`, `off`."""
    stage: Literal["communication", "part", "process", "workload"]
    """communication: values of other ranks; part: something that the program uses and can do without, tried together
    with the others; process: one rank without the launcher's settings, tried if one rank also fails and no part is
    responsible; workload: what it works on, tried last."""
    knob: str = ""
    """Change that is made inside the ranks."""
    environment: dict[str, str] = {}
    """Environment variables to set."""
    arguments: tuple[str, ...] = ()
    """Names of the program's own options, as argparse stores them; the first one that the program has is set."""
    value: str = ""
    """Value for an argument: a number, or `half`."""
    uses: tuple[str, ...]
    """Features that the first run must have shown, all of them; otherwise the factor does not apply."""
    within: str = ""
    """Part that contains this one: this one is tried only after that part was found responsible."""
    unless: tuple[str, ...] = ()
    """Features that the first run must not have shown."""
    said: str = ""
    """Pattern, in lower case, for users' reports that this change helps, in the words of `contrasts.contrast`."""
    order: int
    """Lower is tried first: likelier and more informative factors."""
    same: str
    """Conclusion if the job still fails in the same way."""
    gone: str
    """Conclusion if it no longer does."""
    fix: str = ""
    """Fix if the factor is responsible, in the imperative; empty if none follows."""
    slow: str = ""
    """The same if the job is only slow."""
    pattern: str = "fix behavior logic"
    """Published name of the kind of fix."""
    calls: tuple[str, ...] = ()
    """Functions that the program calls with that option, by its own names: the change as a patch of the user's file."""
    alters: bool = False
    """True if a healthy program also computes other numbers or makes other calls with it."""
    set: dict[str, str] = {}
    """Keyword arguments of that call, as Python source."""
    because: str
    """Why it may matter, and where that is documented."""


@lru_cache(maxsize=1)
def load() -> tuple[Factor, ...]:
    """Return all factors in the order in which to try them."""
    found = []
    for path in sorted(_HOME.glob("*.toml")):
        factor = msgspec.toml.decode(path.read_bytes(), type=Factor)
        found.append(msgspec.structs.replace(factor, id=path.stem))
    return tuple(sorted(found, key=lambda f: (f.order, f.id)))
