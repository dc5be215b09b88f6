"""Compares a run with a recorded one: their results, and their settings."""

from __future__ import annotations

import json
import re
from pathlib import Path

from dtdebug.errors import UsageError
from dtdebug.experiments.collectives import diff, recording_format
from dtdebug.experiments.isolate.failure_identity import FailureIdentity
from dtdebug.privacy.sanitize import clean

_MOST = 64
NOT_SET = "not set"
_OF_RUN = re.compile(r"(?:LOCAL_|GROUP_|ROLE_)?(?:RANK|WORLD_SIZE|NAME)\Z|MASTER_|TORCHELASTIC|TORCH_FR|DTDEBUG|PWD\Z")
"""Variables that the launcher and dtdebug set for each run."""


def difference(recorded: Path, run: Path) -> FailureIdentity | None:
    """Return the first collective at which a run diverges from the recorded one, or None if they agree.

    Raises:
        UsageError: the recording can't be read, or has another number of ranks.

    """
    found = diff.runs(recorded, run)
    first = found.first
    if first is None:
        return None
    where = f"{clean(first.file)}:{first.line}" if first.line else "a line that is not known"
    tensor = f" of tensor {first.tensor}" if first.tensor is not None else ""
    return FailureIdentity(
        how="differs",
        type=first.what,
        op=first.op,
        file=Path(clean(first.file)).name,
        line=first.line,
        text=f"Rank {first.rank} is the first to differ, at its collective #{first.index}: {first.what}{tensor} of "
        f"{first.op} at {where}.",
    )


class RecordedRun:
    """Settings of a recorded run."""

    def __init__(self, folder: Path) -> None:
        """Read the headers of a recording; raises UsageError if it is not one."""
        self.folder = folder
        names = recording_format.ranks(folder)
        self._headers = {rank: recording_format.load(folder, name).header for rank, name in list(names.items())[:_MOST]}
        self._first = next(iter(self._headers.values()))
        self.world = self._first.world

    def seeds(self) -> str:
        """Return each rank's generator seed at the import of torch, as JSON for the ranks."""
        return json.dumps({str(rank): h.seed for rank, h in self._headers.items() if h.seed is not None})

    def variables(self, now: RecordedRun) -> dict[str, str]:
        """Return variable -> recorded value for those that differ in another run; `not set` if it was not set."""
        then, other = self._first.environment, now._first.environment
        names = (n for n in then.keys() | other.keys() if then.get(n) != other.get(n) and not _OF_RUN.match(n))
        return {name: then.get(name, NOT_SET) for name in sorted(names)}

    def told_differently(self, now: RecordedRun, copy: Path, home: Path) -> list[str]:
        """Return versions and arguments that differ in another run, which no run changes unless asked to.

        `copy`: where that run worked instead of `home`.
        """
        then, other = self._first, now._first
        rows = ((name, then.versions.get(name), other.versions.get(name)) for name in sorted(then.versions))
        found = [f"{name}: {a} then, {b} now (--version {name}=={a})" for name, a, b in rows if b and a != b]
        called = tuple(word.replace(str(copy), str(home)) for word in other.command)
        if then.command != called:
            found.append(f"arguments: {' '.join(then.command)} then, {' '.join(called)} now")
        return [clean(line) for line in found]


def checked_recording(folder: Path, ranks: int | None) -> RecordedRun:
    """Return the recorded run.

    Raises:
        UsageError: it is not a recording, or has another number of ranks.

    """
    found = RecordedRun(folder)
    if ranks is not None and found.world != ranks:
        raise UsageError(f"isolate --differs {folder}: recorded with {found.world} ranks, the command asks for {ranks}")
    return found
