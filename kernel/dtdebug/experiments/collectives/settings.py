"""Writes the instructions to ranks about their collectives: a file, and the variable with its path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from dtdebug.experiments.collectives.inside.install import VARIABLE
from dtdebug.storage import state_dir

FILE = "course.json"


def job_variables(folder: Path, do: Sequence[str], options: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables for ranks that run the modules `do` of `inside` with `options`.

    The job's processes must also have the folder of dtdebug's `sitecustomize` first on their path, as those of
    `dtdebug run` do (`live.agent.arm`).

    Raises:
        OSError: the folder can't be written.

    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = (folder / FILE).absolute()
    state_dir.write(path, msgspec.json.encode({**options, "folder": str(folder.absolute()), "do": list(do)}))
    return {VARIABLE: str(path)}
