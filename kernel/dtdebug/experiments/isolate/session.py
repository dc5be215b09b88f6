"""Saves the runs of a search to disk after each run, so that it can be resumed."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from dtdebug.errors import UsageError
from dtdebug.experiments.isolate import recording_diff
from dtdebug.experiments.isolate.environment_changes import variables_read
from dtdebug.experiments.isolate.failure_identity import FailureIdentity
from dtdebug.experiments.isolate.job_command import JobCommand
from dtdebug.experiments.isolate.kill_run import interruptible
from dtdebug.experiments.isolate.prior_knowledge import UserReport
from dtdebug.experiments.isolate.render import duration, progress
from dtdebug.experiments.isolate.run_history import Tries
from dtdebug.experiments.isolate.run_types import ENVIRONMENT, VERSION, Choices, Run
from dtdebug.experiments.isolate.runner import Runner
from dtdebug.experiments.isolate.search import Search
from dtdebug.experiments.isolate.search_state import SearchState
from dtdebug.privacy.sanitize import arguments, clean
from dtdebug.storage import state_dir
from dtdebug_taxonomy.knowledge.factors import Factor

_KEPT = 10
"""Maximum number of searches kept for --resume."""
_NO_INPUT = ("EOFError", "BdbQuit", "bdb.BdbQuit")
"""Exceptions of a program without standard input: `input` and `getpass`, a breakpoint."""
_LIMIT = 16 << 20
_LOOKING = 20.0
"""Seconds to inspect and end the ranks of a hang."""


class StoredSearch(msgspec.Struct, frozen=True, kw_only=True):
    """Search that can be resumed."""

    command: tuple[str, ...]
    home: str
    kind: str = "fails"
    runs: tuple[Run, ...] = ()


class SearchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Search as requested by the user."""

    budget: float
    factors: tuple[Factor, ...]
    variables: Mapping[str, str]
    """Variables that may matter, with the value to try."""
    versions: Mapping[str, str] = {}
    """Packages in another version."""
    told: UserReport = UserReport()
    hang: bool = False
    not_varied: tuple[str, ...] = ()


class SavedSearch:
    """Search that is saved to disk after each run."""

    def __init__(self, job: JobCommand, home: Path, folder: Path, choices: Choices, asked: SearchRequest) -> None:
        self.interrupted = False
        self._job, self._home, self._folder, self._asked = job, home, folder, asked
        self._choices, self._patience = choices, choices.hang_after + _LOOKING
        self._runner = Runner(job, home, folder, choices)
        self._runs: list[Run] = []
        self._left: Callable[[], float] = lambda: 0.0

    def search(self, known: tuple[Run, ...]) -> SearchState:
        """Search, starting with known runs."""
        asked, told = self._asked, self._asked.told
        tries = Tries(
            self._run, known, budget=asked.budget, patience=self._patience, told=dict(told.results), tell=self._tell
        )
        ranks = self._job.ranks if self._job.at >= 0 else _alone(self._job)
        self._left = tries.seconds_left
        search = Search(
            tries,
            asked.factors,
            asked.variables,
            None if self._choices.kind == "differs" else ranks,  # other ranks have other values
            agents=1 if self._choices.kind == "differs" else self._job.agents,
            suspects=lambda run: self._suspects(search.found, run),
            sometimes=told.sometimes,
        )
        search.found.not_varied += asked.not_varied
        self._runs = list(known)
        with interruptible():
            try:
                return search.run()
            except KeyboardInterrupt:
                self.interrupted = True
                return search.mark_interrupted()
            finally:
                self._runner.close()

    def _suspects(self, found: SearchState, run: Run) -> dict[str, str]:
        """Return suspects: settings that differ from the recorded run, packages installable in another version."""
        # a recording keeps only known variables: the program's own ones are found without it
        suspects = {f"{ENVIRONMENT}{name}": to for name, to in variables_read(run.saw).items()}
        if "input" in run.saw:
            found.not_varied.append("what the program reads from standard input, which is empty in all runs")
        if self._choices.recorded is not None:
            then = recording_diff.RecordedRun(self._choices.recorded)
            now = recording_diff.RecordedRun(Path(run.folder).parent / "record")
            suspects |= {f"{ENVIRONMENT}{name}": to for name, to in then.variables(now).items()}
            found.not_varied += then.told_differently(now, Path(run.folder).parent / "work", self._home)
        if self._asked.versions:
            interpreter = run.saw.get("python", sys.executable)
            had, not_had = self._runner.available(self._asked.versions, interpreter, self._left())
            suspects |= {f"{VERSION}{name}": to for name, to in had.items()}
            found.not_varied += not_had
        return suspects

    def _run(self, setting: Mapping[str, str], reference: FailureIdentity | None, limit: float) -> Run:
        run = self._runner.run(setting, reference, limit)
        if run.denied and reference is None:
            raise UsageError(
                f"isolate: the program writes to {run.denied[0]}, which is outside of its folder and was there before; "
                "let it write elsewhere, or allow it with --may-write"
            )
        if reference is None and run.failure is not None and "input" in run.saw and run.failure.type in _NO_INPUT:
            raise UsageError(
                "isolate: the program reads standard input, which is empty here; pass the value as an option instead"
            )
        if reference is None and run.failure is not None and self._choices.kind not in ("fails", run.failure.how):
            raise UsageError(f"isolate --{self._choices.kind}: the job fails: {run.failure.text}")
        if self._asked.hang and reference is None and run.failure is not None and not _may_hang(run.failure):
            raise UsageError(f"isolate --hang: the job does not hang: {run.failure.text}")
        return run

    def _tell(self, run: Run) -> None:
        self._runs.append(run)
        with suppress(OSError):
            saved = StoredSearch(
                command=_clean_command(self._job), home=str(self._home), kind=self._choices.kind, runs=tuple(self._runs)
            )
            state_dir.write(self._folder / "search.json", msgspec.json.encode(saved))
        with suppress(OSError):
            line = f"{progress(run, len(self._runs))}; {duration(self._left())} of the budget are left"
            print(f"dtdebug isolate: {line}", file=sys.stderr, flush=True)


def _may_hang(failure: FailureIdentity) -> bool:
    """True for a hang or a conflict between ranks, which can end in an exception in one run and hang in the next."""
    return failure.hung or failure.how == "ranks"


def _clean_command(job: JobCommand) -> tuple[str, ...]:
    """Return the command without secrets."""
    return tuple(clean(word) for word in arguments(job.words))


def _alone(job: JobCommand) -> int | None:
    """Return 1 for torchrun, which starts one rank by default."""
    return 1 if job.launcher == "torchrun" else None


def new_folder() -> Path:
    """Create a folder for a search; raises UsageError."""
    parent = state_dir.folder() / "isolate"
    try:
        state_dir.home()
        parent.mkdir(mode=0o700, exist_ok=True)
        for old in _searches()[_KEPT - 1 :]:
            shutil.rmtree(old, ignore_errors=True)
        return Path(tempfile.mkdtemp(dir=parent, prefix=time.strftime("%Y%m%d-%H%M%S-")))
    except OSError as error:
        raise UsageError(f"isolate: {error.filename or parent}: {error.strerror}") from None


def _searches() -> list[Path]:
    """Return the folders of searches, newest first."""
    with suppress(OSError):
        return sorted((p for p in (state_dir.folder() / "isolate").iterdir() if p.is_dir()), reverse=True)
    return []


def last_search(job: JobCommand, home: Path, kind: str) -> tuple[Path, StoredSearch] | None:
    """Return the last search of that command in that folder, or None."""
    for folder in _searches():
        with suppress(OSError, ValueError):
            saved = msgspec.json.decode(state_dir.read_start(folder / "search.json", _LIMIT), type=StoredSearch)
            if (saved.command, saved.home, saved.kind) == (_clean_command(job), str(home), kind):
                return folder, saved
    return None
