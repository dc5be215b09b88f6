"""Sets the environment of a run's processes, and the file that it names."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from dtdebug.experiments.isolate.inside import record_writer
from dtdebug.experiments.isolate.job_command import python_path
from dtdebug.experiments.isolate.recording_diff import NOT_SET
from dtdebug.experiments.isolate.run_types import ENVIRONMENT, VERSION, Choices
from dtdebug.live.agent.arm import BOOTSTRAP
from dtdebug_taxonomy.knowledge.factors import Factor

_OFFLINE = {"WANDB_MODE": "offline", "MLFLOW_TRACKING_URI": "file:mlruns", "COMET_MODE": "OFFLINE"}
"""Settings that keep trackers from uploading a run's metrics."""
_LIBRARIES = re.compile(
    r"(?:NCCL|TORCH|TORCHDYNAMO|TORCHINDUCTOR|PYTORCH|GLOO|CUDA|CUBLAS|UCX|FI|TOKENIZERS|KMP|MKL|GOMP|MALLOC)_\w{1,60}\Z"
    r"|PYTHON(?:WARNINGS|OPTIMIZE|DEVMODE|MALLOC|UTF8|INTMAXSTRDIGITS|ASYNCIODEBUG)\Z|OMP_(?!NUM_THREADS)\w{1,60}\Z"
)
_PLACES = re.compile(r"\w{0,60}(?:HOME|DIR|PATH|FILE|ROOT|VISIBLE_DEVICES|TOKEN|KEY|VERSION|ARCH_LIST)\Z")
"""Library variables that may matter, and those that only name places, identities or the base of an image."""
_OF_HOST = re.compile(
    r"(?:LOCAL_|GROUP_|ROLE_|NODE_)?(?:RANK|WORLD_SIZE)\Z|(?:MASTER|SLURM|OMPI|PMI|PMIX|LC|XDG|SSH|DTDEBUG)_"
    r"|(?:USER|LOGNAME|SHELL|TERM|LANG|PWD|HOSTNAME|DISPLAY|COLUMNS|LINES|OMP_NUM_THREADS)\Z"
)
"""Variables without which a program would be started differently."""


class Paths(msgspec.Struct, frozen=True, kw_only=True):
    """Folders of a run."""

    home: Path
    """The user's working directory."""
    copy: Path
    """The run's working directory."""
    place: Path
    """Folder of its notes."""
    overlay: str = ""
    """Folder of packages in other versions; empty if there are none."""


class Seeds(msgspec.Struct, frozen=True, kw_only=True):
    """Seeds for the ranks' generators, if they are changed."""

    own: str = "0"
    """Rank 0's seed in the last run that changed none."""
    recorded: str = ""


def run_variables(
    setting: Mapping[str, str], chosen: Sequence[Factor], paths: Paths, choices: Choices, *, seeds: Seeds, begun: float
) -> dict[str, str]:
    """Return the environment of a run's processes; writes the changes for the ranks next to its notes.

    `chosen`: the factors of the setting; `begun`: when the search began, in seconds since the epoch.
    """
    told_of = {n.removeprefix(ENVIRONMENT): to for n, to in setting.items() if n.startswith(ENVIRONMENT)}
    taken = {name for name, to in told_of.items() if to == NOT_SET}
    added = {name: value for f in chosen for name, value in f.environment.items()}
    added |= {name: to for name, to in told_of.items() if to != NOT_SET}
    own = {"seeds": seeds.own, "recorded-seed": seeds.recorded}
    place, change = paths.place, paths.place / "change.json"
    (place / "notes").mkdir(mode=0o700)
    told = {
        "notes": str(place / "notes"),
        "change": {name: own.get(name, f.value) for f in chosen if (name := knob(f))},
        "versions": {n.removeprefix(VERSION): to for n, to in setting.items() if n.startswith(VERSION)},
        "environment": {**added, **dict.fromkeys(taken)},
        "ours": [] if choices.in_place else [str(paths.copy), str(place), *choices.may_write],
        "begun": begun,
    }
    change.write_text(json.dumps(told), encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if name not in taken and name != "DTDEBUG_RUN"}
    path = [BOOTSTRAP, *filter(None, [paths.overlay, python_path(kept, paths.home, paths.copy)])]
    return {
        **kept,
        **_OFFLINE,
        **added,
        "PWD": str(paths.copy),
        "PYTHONPATH": os.pathsep.join(path),
        "DTDEBUG_STATE": str(place / "state"),
        record_writer.VARIABLE: str(change),
    }


def variables_to_try() -> dict[str, str]:
    """Return the library variables that are set, each with the value to try."""
    return {name: NOT_SET for name in sorted(os.environ) if _LIBRARIES.match(name) and not _PLACES.match(name)}


def variables_read(saw: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that the program itself reads, from a run's notes, with the value to try."""
    read = [name.removeprefix("variable.") for name in saw if name.startswith("variable.")]
    theirs = (name for name in sorted(read) if name in os.environ and not _PLACES.match(name))
    return {name: NOT_SET for name in theirs if not _OF_HOST.match(name)}


def knob(factor: Factor) -> str:
    """Return the name of a factor's change in the ranks' start-up hook, or ""."""
    return factor.knob or next((name for name in factor.uses if name.startswith("argument.")), "")
