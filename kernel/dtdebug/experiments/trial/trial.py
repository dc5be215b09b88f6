"""Runs a job in a copy of its folder with files changed, and compares how it ends with how it failed before."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from dtdebug.errors import UsageError
from dtdebug.experiments.isolate.failure_identity import FailureIdentity, of_case
from dtdebug.experiments.isolate.job_command import parse_job
from dtdebug.experiments.isolate.kill_run import interruptible
from dtdebug.experiments.isolate.run_types import Choices, Run
from dtdebug.experiments.isolate.runner import Runner
from dtdebug.live.job.saved_case import case_of
from dtdebug.privacy.sanitize import one_line
from dtdebug.storage.last_failure import LastFailure

_HANG_AFTER = 60.0
"""Seconds without progress after which a job is ended; one on a busy host starts slowly."""
_TEXT = 200


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a trial."""

    outcome: Literal["works", "same", "later", "other", "unfinished", "unfailing"]
    text: str
    """One clause: "with this diff the job succeeds after 12 s"."""


def try_fix(
    command: Sequence[str], home: Path, texts: Mapping[Path, str], reference: FailureIdentity | None, limit: float
) -> Trial:
    """Return how the job ends in a copy of its folder in which some files have other texts.

    Without `reference`, the failure that the fix is to prevent, the job is run as it is first. Each run takes at most
    `limit` seconds; what the program starts is ended with it.

    Raises:
        UsageError: the folder can't be copied, the command can't be started, or it writes elsewhere.

    """
    job, choices = parse_job(command), Choices(hang_after=min(_HANG_AFTER, limit / 2))
    folder = Path(tempfile.mkdtemp(prefix="dtdebug-try-"))
    try:
        with interruptible():
            if reference is None:
                first = _wait_for(Runner(job, home, folder, choices).run({}, None, limit))
                if first.outcome == "ok":
                    return Trial(outcome="unfailing", text=f"the job succeeds without it, after {first.seconds:.0f} s")
                if first.failure is None:
                    return Trial(outcome="unfinished", text=f"the job does not fail without it in {limit:.0f} s")
                reference = first.failure
            run = _wait_for(Runner(job, home, folder, choices, texts=texts).run({}, reference, limit))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return _compare(run, reference, limit)


def failure_of(last: LastFailure) -> FailureIdentity | None:
    """Return the failure that was diagnosed last, if ranks or an exception show one."""
    snapshot = last.snapshot
    world = max((s.world_size or 0 for s in snapshot.ranks), default=0)
    found = of_case(case_of(snapshot, last.diagnosis), snapshot.output, 1, world)
    return None if found.type == "exit status 1" else found


def _wait_for(run: Run) -> Run:
    if run.denied:
        raise UsageError(
            f"fix --try: the program writes to {run.denied[0]}, which is outside of its folder and was there before; "
            "let it write elsewhere"
        )
    return run


def _compare(run: Run, before: FailureIdentity, limit: float) -> Trial:
    took, now = f"{max(1, round(run.seconds))} s", run.failure
    place = f"{before.file}:{before.line}" if before.file and before.line else ""
    if run.outcome == "ok":
        without = f"; without it, it {'hung' if before.hung else 'failed'} at {place}" if place else ""
        return Trial(outcome="works", text=f"with this diff the job succeeds after {took}{without}")
    if now is None:
        return Trial(outcome="unfinished", text=f"with this diff the job still ran after {limit:.0f} s")
    if now.hung and now.type in ("not_understood", "none"):
        return Trial(outcome="unfinished", text=f"with this diff the job was ended without progress after {took}")
    said = one_line(now.text, _TEXT).rstrip(".")
    if run.outcome == "same":
        return Trial(outcome="same", text=f"with this diff the job fails as before: {said}")
    if place and (now.file, now.function) == (before.file, before.function) and now.line > before.line:
        return Trial(outcome="later", text=f"with this diff the job gets past {place} and fails later: {said}")
    return Trial(outcome="other", text=f"with this diff the job fails otherwise: {said}")
