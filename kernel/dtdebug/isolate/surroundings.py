"""What the processes of a run are told by their environment, and by the file that it names."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from dtdebug.agent.arming import BOOTSTRAP
from dtdebug.isolate.command import searched
from dtdebug.isolate.differs import NOT_SET
from dtdebug.isolate.inside import notes
from dtdebug.isolate.run import ENVIRONMENT, VERSION, Choices
from dtdebug_taxonomy.factors import Factor

_OFFLINE = {"WANDB_MODE": "offline", "MLFLOW_TRACKING_URI": "file:mlruns", "COMET_MODE": "OFFLINE"}
"""Nothing that a run measures is sent anywhere."""
_LIBRARIES = re.compile(
    r"(?:NCCL|TORCH|TORCHDYNAMO|TORCHINDUCTOR|PYTORCH|GLOO|CUDA|CUBLAS|UCX|FI|TOKENIZERS|KMP|MKL|GOMP|MALLOC)_\w{1,60}\Z"
    r"|PYTHON(?:WARNINGS|OPTIMIZE|DEVMODE|MALLOC|UTF8|INTMAXSTRDIGITS|ASYNCIODEBUG)\Z|OMP_(?!NUM_THREADS)\w{1,60}\Z"
)
_PLACES = re.compile(r"\w{0,60}(?:HOME|DIR|PATH|FILE|ROOT|VISIBLE_DEVICES|TOKEN|KEY|VERSION|ARCH_LIST)\Z")
"""Variables of libraries that may be what matters, and those that only say where things are, who one is, or of what an
image was built."""
_OF_HOST = re.compile(
    r"(?:LOCAL_|GROUP_|ROLE_|NODE_)?(?:RANK|WORLD_SIZE)\Z|(?:MASTER|SLURM|OMPI|PMI|PMIX|LC|XDG|SSH|DTDEBUG)_"
    r"|(?:USER|LOGNAME|SHELL|TERM|LANG|PWD|HOSTNAME|DISPLAY|COLUMNS|LINES|OMP_NUM_THREADS)\Z"
)
"""Variables without which a program is not started as it was."""


class Paths(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run takes place."""

    home: Path
    """The user's working directory."""
    copy: Path
    """The one of the run."""
    place: Path
    """Where its notes are kept."""
    overlay: str = ""
    """Packages in other versions; empty if there are none."""


class Seeds(msgspec.Struct, frozen=True, kw_only=True):
    """What ranks are to seed their generators with, where that is changed."""

    own: str = "0"
    """That of rank 0 in the last run that changed none."""
    recorded: str = ""


def run_variables(
    setting: Mapping[str, str], chosen: Sequence[Factor], paths: Paths, choices: Choices, *, seeds: Seeds, begun: float
) -> dict[str, str]:
    """The variables of a run's processes; writes what the ranks are to change beside its notes.

    `chosen`: the factors of the setting; `begun`: when the search began, seconds of the epoch.
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
    path = [BOOTSTRAP, *filter(None, [paths.overlay, searched(kept, paths.home, paths.copy)])]
    return {
        **kept,
        **_OFFLINE,
        **added,
        "PWD": str(paths.copy),
        "PYTHONPATH": os.pathsep.join(path),
        "DTDEBUG_STATE": str(place / "state"),
        notes.VARIABLE: str(change),
    }


def variables_to_try() -> dict[str, str]:
    """Variables of libraries that are set, each with what it is changed to."""
    return {name: NOT_SET for name in sorted(os.environ) if _LIBRARIES.match(name) and not _PLACES.match(name)}


def variables_read(saw: Mapping[str, str]) -> dict[str, str]:
    """The same of variables that the program itself asks for, as a run has noted them."""
    read = [name.removeprefix("variable.") for name in saw if name.startswith("variable.")]
    theirs = (name for name in sorted(read) if name in os.environ and not _PLACES.match(name))
    return {name: NOT_SET for name in theirs if not _OF_HOST.match(name)}


def knob(factor: Factor) -> str:
    """What the start-up hook in the ranks calls the change of a factor; empty where none is made there."""
    return factor.knob or next((name for name in factor.uses if name.startswith("argument.")), "")
