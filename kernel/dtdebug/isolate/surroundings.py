"""What the processes of a run are told by their environment, and by the file that it names."""

from __future__ import annotations

import json
import os
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


def knob(factor: Factor) -> str:
    """What the start-up hook in the ranks calls the change of a factor; empty where none is made there."""
    return factor.knob or next((name for name in factor.uses if name.startswith("argument.")), "")
