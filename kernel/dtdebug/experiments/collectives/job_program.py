"""Extracts the program of a rank from a job's command, without the launcher."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path, PurePath

from dtdebug.errors import UsageError

_PYTHON = ("python", "pypy")


def of(command: Sequence[str]) -> list[str]:
    """Return the command line of one rank: `[PYTHON, script, arguments...]` or `[PYTHON, -m, module, arguments...]`.

    Raises:
        UsageError: no Python program is named.

    """
    words = list(command)
    python = sys.executable
    if words and PurePath(words[0]).name.startswith(_PYTHON):
        python = words[0]
    for index, word in enumerate(words):
        if word.endswith(".py") and not word.startswith("-"):
            return [python, *words[index:]]
        module = words[index + 1] if word in ("-m", "--module") and index + 1 < len(words) else ""
        if module and not module.startswith(("torch.distributed.", "accelerate.commands", "deepspeed")):
            return [python, "-m", *words[index + 1 :]]
    raise UsageError(f"{' '.join(words[:6])}: no Python program; name it as in `-- train.py --epochs 1`")


def script(rank_command: Sequence[str]) -> Path | None:
    """Return the program's file if the command names one."""
    return Path(rank_command[1]) if len(rank_command) > 1 and rank_command[1] != "-m" else None
